#include "transports/tcp/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

namespace tessera::tcp {

SocketAddress socket_address(const Endpoint& endpoint) {
  SocketAddress address;
  if (endpoint.family == AF_INET) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = htons(endpoint.port);
    std::memcpy(&in.sin_addr, endpoint.address, sizeof in.sin_addr);
    std::memcpy(&address.storage, &in, sizeof in);
    address.bytes = sizeof in;
  } else {
    sockaddr_in6 in6 = {};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(endpoint.port);
    in6.sin6_scope_id = endpoint.scope;
    std::memcpy(&in6.sin6_addr, endpoint.address, sizeof in6.sin6_addr);
    std::memcpy(&address.storage, &in6, sizeof in6);
    address.bytes = sizeof in6;
  }
  return address;
}

void set_address(Endpoint& endpoint, const sockaddr* address) {
  endpoint.family = static_cast<uint8_t>(address->sa_family);
  if (address->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    std::memcpy(endpoint.address, &in->sin_addr, sizeof in->sin_addr);
    endpoint.port = ntohs(in->sin_port);
  } else if (address->sa_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(address);
    std::memcpy(endpoint.address, &in6->sin6_addr, sizeof in6->sin6_addr);
    endpoint.port = ntohs(in6->sin6_port);
    endpoint.scope = in6->sin6_scope_id;
  }
}

bool is_loopback(const Endpoint& endpoint) {
  if (endpoint.family == AF_INET) return endpoint.address[0] == 127;
  in6_addr in6;
  std::memcpy(&in6, endpoint.address, sizeof in6);
  return IN6_IS_ADDR_LOOPBACK(&in6) != 0;
}

bool unreachable(int error) {
  return error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == ENETDOWN ||
         error == ETIMEDOUT;
}

std::string address_text(const Endpoint& endpoint) {
  char host[INET6_ADDRSTRLEN] = {};
  if (::inet_ntop(endpoint.family, endpoint.address, host, sizeof host) == nullptr)
    return "unknown address";
  return endpoint.family == AF_INET6 ? fmt::format("[{}]:{}", host, endpoint.port)
                                     : fmt::format("{}:{}", host, endpoint.port);
}

std::string to_text(const Endpoint& endpoint) {
  const std::string name(endpoint.interface,
                         ::strnlen(endpoint.interface, sizeof endpoint.interface));
  return name.empty() ? address_text(endpoint)
                      : fmt::format("{} ({})", address_text(endpoint), name);
}

bool LocalAddress::same_subnet(const Endpoint& other) const {
  if (other.family != endpoint.family) return false;
  const int bytes = endpoint.family == AF_INET ? 4 : 16;
  for (int i = 0; i < bytes; ++i) {
    if (((endpoint.address[i] ^ other.address[i]) & mask[i]) != 0) return false;
  }
  return true;
}

}  // namespace tessera::tcp
