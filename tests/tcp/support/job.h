// Ranks of one process, connected over loopback.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "tcp/support/memory_landing.h"
#include "transports/tcp/connect.h"
#include "transports/tcp/tcp_port.h"

namespace tessera::tcp {

inline constexpr std::array<uint8_t, 16> kSecret = {1, 2, 3, 4, 5, 6, 7, 8};

// Loopback, `sockets` of them between two ranks.
Config loopback_config(int sockets = 1);

Listener open_listener(const Config& config);
RemotePeer peer_of(int rank, const Listener& listener);

// Connects all ranks with each other, each in a thread.
struct Job {
  Job(int ranks, const Config& config, size_t memory_bytes);

  Port& port(size_t from, int to) { return *engines[from]->port(to); }
  MemoryLanding& landing(size_t rank) { return *landings[rank]; }
  // Lets all engines progress until `done`, within a generous deadline.
  void run_until(const std::function<bool()>& done);

  std::vector<std::unique_ptr<MemoryLanding>> landings;
  std::vector<std::unique_ptr<PortEngine>> engines;
};

// Two ends of a connection made by hand over socket pairs, one per entry of `rails`: what a test
// wants to cut, or to speak on itself, it reaches through `sockets`.
struct HandMade {
  // `reunited`: rails that are lost come back, for who knows this secret: rank 0's, which dials.
  explicit HandMade(const std::vector<int>& rails, size_t memory_bytes,
                    const std::array<uint8_t, 16>* reunited = nullptr);

  TcpPort& port(int of_rank);
  // All sockets live, at both ends.
  bool whole();

  std::vector<std::vector<int>> sockets;  // of rank 0, of rank 1; owned by the engines
  Endpoint door;                          // of rank 1, where rank 0 calls anew
  MemoryLanding landing0, landing1;
  std::unique_ptr<PortEngine> engine0, engine1;
};

}  // namespace tessera::tcp
