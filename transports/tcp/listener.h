// Where a rank waits for its peers: one listening socket per address that may serve.
//
// Opened before the rendezvous, so that the endpoints can travel with it.
// Thread safety: one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "base/config.h"
#include "base/fd.h"
#include "base/status.h"
#include "transports/tcp/endpoint.h"

namespace tessera::tcp {

class Listener {
 public:
  // kInvalidUsage: no interface is left, see usable_addresses(); kSystem.
  static Result<Listener> open(const Config& config);

  // Best first; at least one, at most kMaxEndpoints.
  std::span<const Endpoint> endpoints() const { return endpoints_; }

  std::span<const LocalAddress> local() const { return local_; }
  std::span<const Fd> sockets() const { return sockets_; }

 private:
  std::vector<Endpoint> endpoints_;
  std::vector<LocalAddress> local_;
  std::vector<Fd> sockets_;
};

}  // namespace tessera::tcp
