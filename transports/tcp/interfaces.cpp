// Which addresses of this host may serve.
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/error_text.h"
#include "base/fd.h"
#include "base/interface_filter.h"
#include "transports/tcp/endpoint.h"

namespace tessera::tcp {
namespace {

// What the driver says; 0 when it says nothing (loopback, bridges, many virtual machines).
uint32_t speed_of(const char* interface) {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_cmd command = {};
  command.cmd = ETHTOOL_GSET;
  ifreq request = {};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&command);
  if (::ioctl(fd.get(), SIOCETHTOOL, &request) != 0) return 0;
  const uint32_t speed = ethtool_cmd_speed(&command);
  return speed == static_cast<uint32_t>(SPEED_UNKNOWN) ? 0 : speed;
}

bool is_link_local(const sockaddr* address) {
  if (address->sa_family != AF_INET6) return false;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
}

// Bridges of containers and virtual machines have the same address on every host.
bool likely_private(std::string_view interface) {
  constexpr std::string_view kPrefixes[] = {"docker", "virbr", "br-", "cni", "lxc", "podman"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return interface.starts_with(prefix); });
}

// Less is better.
auto preference(const LocalAddress& address) {
  const Endpoint& endpoint = address.endpoint;
  return std::make_tuple(likely_private(endpoint.interface), endpoint.family != AF_INET,
                         -int64_t{endpoint.speed_mbps});
}

bool has_carrier(const ifaddrs& at) { return (at.ifa_flags & IFF_RUNNING) != 0; }

LocalAddress describe(const ifaddrs& at) {
  LocalAddress local;
  set_address(local.endpoint, at.ifa_addr);
  std::strncpy(local.endpoint.interface, at.ifa_name, sizeof local.endpoint.interface - 1);
  local.endpoint.speed_mbps = speed_of(at.ifa_name);
  local.endpoint.late = has_carrier(at) ? 0 : 1;
  if (at.ifa_netmask != nullptr) {
    Endpoint mask;
    set_address(mask, at.ifa_netmask);
    std::memcpy(local.mask, mask.address, sizeof local.mask);
  }
  return local;
}

}  // namespace

Result<std::vector<LocalAddress>> usable_addresses(const Config& config) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return Status::error(Code::kSystem, "tcp: getifaddrs: {}", error_text(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  const InterfaceFilter filter(config.socket_ifname);
  std::vector<LocalAddress> found, loopback, late;
  std::vector<std::string> seen;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || is_link_local(at->ifa_addr)) continue;
    const std::string name = at->ifa_name;
    if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(name);
    if (config.socket_family == "AF_INET" && family != AF_INET) continue;
    if (config.socket_family == "AF_INET6" && family != AF_INET6) continue;
    if (!filter.passes(name)) continue;
    const bool aside = (at->ifa_flags & IFF_LOOPBACK) != 0 && !filter.names(name);
    // A bridge without a carrier is one that no container uses.
    if (!has_carrier(*at) && likely_private(name)) continue;
    (aside ? loopback : has_carrier(*at) ? found : late).push_back(describe(*at));
  }
  if (found.empty() && late.empty()) found = std::move(loopback);
  if (found.empty() && late.empty()) {
    return Status::error(Code::kInvalidUsage,
                         "no interface of this host can carry data between ranks: "
                         "NCCL_SOCKET_IFNAME=\"{}\", NCCL_SOCKET_FAMILY=\"{}\"; interfaces that "
                         "are up and have an address that is not link-local: {}",
                         config.socket_ifname, config.socket_family,
                         seen.empty() ? "none" : fmt::format("{}", fmt::join(seen, ", ")));
  }
  const auto better = [](const LocalAddress& a, const LocalAddress& b) {
    return preference(a) < preference(b);
  };
  std::stable_sort(found.begin(), found.end(), better);
  std::stable_sort(late.begin(), late.end(), better);
  found.insert(found.end(), late.begin(), late.end());
  if (found.size() > kMaxEndpoints) found.resize(kMaxEndpoints);
  return found;
}

}  // namespace tessera::tcp
