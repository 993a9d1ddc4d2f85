#include "comm/bootstrap/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error_text.h"
#include "base/interface_filter.h"

namespace tessera::bootstrap {
namespace {

struct Interface {
  std::string name;
  SocketAddress address;
};

// Interfaces that are up and have an address one can bind without more knowledge. IPv4 first.
Result<std::vector<Interface>> usable_interfaces(const std::string& family) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    if (ran_out(errno))
      return Status::error(Code::kSystem, "rendezvous: getifaddrs: {}", error_text(errno));
    return std::vector<Interface>();  // forbidden here: then by loopback
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    if (at->ifa_addr->sa_family == AF_INET && family != "AF_INET6") {
      const auto* in = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
      found.push_back({at->ifa_name, make_address(in->sin_addr, 0)});
    } else if (at->ifa_addr->sa_family == AF_INET6 && family != "AF_INET") {
      const auto* in6 = reinterpret_cast<const sockaddr_in6*>(at->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) && in6->sin6_scope_id == 0) continue;
      found.push_back({at->ifa_name, make_address(in6->sin6_addr, 0, in6->sin6_scope_id)});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Interface& a, const Interface& b) {
    return a.address.family() == AF_INET && b.address.family() != AF_INET;
  });
  return found;
}

Status bad_comm_id(const std::string& text, std::string_view why) {
  return Status::error(Code::kInvalidArgument,
                       "NCCL_COMM_ID=\"{}\": {}; it must be host:port or [ipv6]:port", text, why);
}

std::optional<uint16_t> parse_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (port < 1 || port > 65535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

}  // namespace

SocketAddress make_address(const in_addr& ip, uint16_t port) {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr = ip;
  in.sin_port = htons(port);
  SocketAddress address;
  std::memcpy(&address.storage, &in, sizeof in);
  address.bytes = sizeof in;
  return address;
}

SocketAddress make_address(const in6_addr& ip, uint16_t port, uint32_t scope) {
  sockaddr_in6 in6 = {};
  in6.sin6_family = AF_INET6;
  in6.sin6_addr = ip;
  in6.sin6_port = htons(port);
  in6.sin6_scope_id = scope;
  SocketAddress address;
  std::memcpy(&address.storage, &in6, sizeof in6);
  address.bytes = sizeof in6;
  return address;
}

uint16_t port_of(const SocketAddress& address) {
  return ntohs(address.family() == AF_INET
                   ? reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port
                   : reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

SocketAddress with_port(SocketAddress address, uint16_t port) {
  if (address.family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
  }
  return address;
}

std::string to_text(const SocketAddress& address) {
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  if (::getnameinfo(address.get(), address.bytes, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown address";
  }
  return address.family() == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                      : fmt::format("{}:{}", host, port);
}

Result<SocketAddress> parse_comm_id(const std::string& text) {
  std::string_view host = text;
  const size_t colon = host.rfind(':');
  if (colon == std::string_view::npos) return bad_comm_id(text, "there is no port");
  const std::optional<uint16_t> port = parse_port(host.substr(colon + 1));
  if (!port) return bad_comm_id(text, "the port is not a number from 1 to 65535");
  host = host.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty()) return bad_comm_id(text, "there is no host");
  if (!bracketed && host.find_first_of(":[]") != std::string_view::npos) {
    return bad_comm_id(text, "an IPv6 address needs brackets");
  }
  addrinfo hints = {};
  hints.ai_family = bracketed ? AF_INET6 : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  if (bracketed) hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(std::string(host).c_str(), nullptr, &hints, &list);
  if (error != 0) return bad_comm_id(text, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  // IPv4 where there is a choice, so that all ranks choose alike.
  const addrinfo* best = list;
  for (const addrinfo* at = list; at != nullptr && best->ai_family != AF_INET; at = at->ai_next) {
    if (at->ai_family == AF_INET) best = at;
  }
  if (best->ai_family == AF_INET) {
    return make_address(reinterpret_cast<const sockaddr_in*>(best->ai_addr)->sin_addr, *port);
  }
  const auto* in6 = reinterpret_cast<const sockaddr_in6*>(best->ai_addr);
  return make_address(in6->sin6_addr, *port, in6->sin6_scope_id);
}

Result<std::vector<SocketAddress>> choose_addresses(const std::string& ifname,
                                                    const std::string& family) {
  const Result<std::vector<Interface>> usable = usable_interfaces(family);
  if (!usable.ok()) return usable.status();
  const std::vector<Interface>& interfaces = usable.value();
  std::vector<SocketAddress> chosen;
  if (ifname.empty()) {
    // Bridges of containers and virtual machines lead nowhere else.
    const InterfaceFilter outward("^lo,docker,virbr");
    for (const Interface& interface : interfaces) {
      if (outward.passes(interface.name) && !interface.address.link_local())
        chosen.push_back(interface.address);
    }
    if (!chosen.empty()) return chosen;
    if (family == "AF_INET6") return std::vector{make_address(in6addr_loopback, 0, 0)};
    return std::vector{make_address(in_addr{htonl(INADDR_LOOPBACK)}, 0)};
  }
  const InterfaceFilter filter(ifname);
  std::vector<std::string> names;
  for (const Interface& interface : interfaces) {
    if (filter.passes(interface.name)) return std::vector{interface.address};
    if (std::find(names.begin(), names.end(), interface.name) == names.end()) {
      names.push_back(interface.name);
    }
  }
  return Status::error(
      Code::kInvalidUsage,
      "NCCL_SOCKET_IFNAME=\"{}\" matches no interface with a usable address{}; this "
      "host has: {}",
      ifname, family.empty() ? "" : fmt::format(" (NCCL_SOCKET_FAMILY={})", family),
      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace tessera::bootstrap
