// Socket addresses of the rendezvous: from text, from an interface, to text.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace tessera::bootstrap {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  bool link_local() const {  // such an IPv6 address means nothing on another host
    return family() == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  }
};

SocketAddress make_address(const in_addr& ip, uint16_t port);
SocketAddress make_address(const in6_addr& ip, uint16_t port, uint32_t scope);

uint16_t port_of(const SocketAddress& address);
SocketAddress with_port(SocketAddress address, uint16_t port);

std::string to_text(const SocketAddress& address);  // "127.0.0.1:4711", "[::1]:4711"

// The value of NCCL_COMM_ID: host:port or [ipv6]:port; names are resolved. kInvalidArgument.
Result<SocketAddress> parse_comm_id(const std::string& text);

// Where a root can be reached, port 0, best first, at least one. `ifname` is the value of
// NCCL_SOCKET_IFNAME (prefixes separated by commas; ^ excludes, = wants the whole name): the first
// that matches; empty: all that may lead out of this host, else loopback. `family` is the value of
// NCCL_SOCKET_FAMILY. kInvalidUsage, naming the interfaces there are, when nothing matches.
Result<std::vector<SocketAddress>> choose_addresses(const std::string& ifname,
                                                    const std::string& family = "");

}  // namespace tessera::bootstrap
