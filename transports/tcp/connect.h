// tcp: ports over TCP sockets, for ranks of different hosts.
//
// Before the rendezvous every rank opens a Listener; its endpoints travel to the others. Then all
// call connect() with one another. The lower rank of a pair dials.
// Thread safety: one thread; nothing is shared between calls.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/deadline.h"
#include "base/status.h"
#include "device/port.h"
#include "transports/tcp/listener.h"

namespace tessera::tcp {

using Meanwhile = std::function<Status(std::span<const int> missing)>;

struct RemotePeer {
  int rank;
  std::string host_name;
  std::vector<Endpoint> endpoints;
};

// Connects this rank with all `peers`, each of which calls connect() too, by Config's
// sockets_per_peer() sockets or by one per rail, if that is more. Both sides prove that they know
// `secret`. `landing` must outlive the engine.
//
// `meanwhile`, if there is one, is called every few milliseconds until then with the ranks of the
// peers that are not connected yet; its error ends this.
//
// kRemote: somebody answers at each of a peer's addresses, but not the peer; kTimeout: it has not
// answered, or called, in time. Both name the peer and what became of each address. kSystem.
Result<std::unique_ptr<PortEngine>> connect(Listener listener, int rank,
                                            std::span<const RemotePeer> peers,
                                            const std::array<uint8_t, 16>& secret,
                                            const Config& config, Landing& landing,
                                            Deadline deadline, const Meanwhile& meanwhile = {});

}  // namespace tessera::tcp
