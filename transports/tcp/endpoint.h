// Addresses of ranks: as they travel to peers, as sockets want them, as people read them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"

namespace tessera::tcp {

// Where a rank can be reached. Plain data, sent to peers as it is.
struct Endpoint {
  uint8_t family = 0;  // AF_INET or AF_INET6
  uint8_t late = 0;    // 1: the interface has no carrier yet
  uint16_t port = 0;   // in the byte order of the host
  uint32_t scope = 0;
  uint8_t address[16] = {};
  uint32_t speed_mbps = 0;  // 0: unknown
  char interface[16] = {};
};
static_assert(sizeof(Endpoint) == 44);

inline constexpr int kMaxEndpoints = 8;

// From where to where to dial; the kernel chooses what is not said.
struct Way {
  Endpoint to;
  std::optional<Endpoint> from;
};

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress socket_address(const Endpoint& endpoint);
// Family, address, port and scope; the rest is left as it is.
void set_address(Endpoint& endpoint, const sockaddr* address);

bool is_loopback(const Endpoint& endpoint);
// Connecting failed, and nobody has answered: the way there may come up yet.
bool unreachable(int error);
std::string address_text(const Endpoint& endpoint);  // "10.0.0.1:4711", "[fd00::1]:4711"
std::string to_text(const Endpoint& endpoint);       // with " (eth0)"

// An address of this host.
struct LocalAddress {
  Endpoint endpoint;
  uint8_t mask[16] = {};

  bool same_subnet(const Endpoint& other) const;
};

// Addresses of interfaces that are up, as NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY want them, best
// first, at most kMaxEndpoints. Those without a carrier come last: it may come while ranks connect.
// Never link-local IPv6: such an address means nothing on another host. Loopback only if named, or
// if there is nothing else. kInvalidUsage, naming the interfaces there are, if nothing is left.
Result<std::vector<LocalAddress>> usable_addresses(const Config& config);

}  // namespace tessera::tcp
