// Ports through a net plugin, between ranks of different hosts, with ports of another transport (tcp)
// beside them.
//
// The other transport reaches every peer and is authenticated. Through it ranks exchange the handles
// of their listening objects with a token for each peer, which is the first thing that a connection
// has to carry; through it they learn that a peer has died, which a plugin need not notice, or why it
// gave up. The data goes through the plugin alone.
//
//   rank 0                                        rank 1
//   listen            --- kOffer (tcp) --->       connect
//   connect           <-- kOffer (tcp) ---        listen
//   sending object    --- token, frames --->      receiving object
//   receiving object  <-- token, frames ---       sending object
//
//   auto engine = Engine::create(network, rank, peers, landing);
//   auto tcp = tcp::connect(..., engine->control(), ...);
//   Status status = engine->connect(std::move(tcp), deadline);
//
// Plugins move data only when they are asked, and have no descriptor to wait for: whoever waits has
// to look now and then (due_in()), the more seldom the longer nothing has come.
// Thread safety: one thread; nothing is shared between engines.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "device/port.h"
#include "transports/net_plugin/network.h"
#include "transports/net_plugin/peer.h"

namespace tessera::net_plugin {

struct PeerName {
  int rank;
  std::string name;  // "rank 3 (host b)"
};

class Engine final : public PortEngine, private Landing {
 public:
  // `landing` outlives the engine. kRemote, kSystem: the plugin cannot listen.
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<Network> network,
                                                std::span<const PeerName> peers, Landing& landing);
  // What is posted still reaches peers that are alive and take it within a second.
  ~Engine() override;

  // What the other transport is to hand over to.
  Landing& control() { return *this; }
  // All ranks call it with one another; blocks until all pairs are connected. kRemote: the plugin
  // fails, or a peer has gone or given up; kTimeout. Both name the peer. `meanwhile`, if there is
  // one, is called now and then until then; its error ends this.
  Status connect(std::unique_ptr<PortEngine> spare, Deadline deadline,
                 const std::function<Status()>& meanwhile = {});

  Port* port(int rank) override;
  bool progress() override;
  void retract() override {}  // the landing is asked for each frame
  bool flushed() const override;
  int wait_fd() const override { return -1; }
  std::chrono::nanoseconds due_in() const override;

 private:
  using Clock = std::chrono::steady_clock;

  // One of so many calls looks at the other transport.
  static constexpr uint32_t kLookAtSpare = 16;
  static constexpr std::chrono::seconds kLinger{1};
  static constexpr std::chrono::microseconds kSoonest{100}, kLatest{1000};

  Engine(std::unique_ptr<Network> network, Landing& landing);

  std::byte* locate(int peer, uint64_t position, size_t bytes) override;
  bool signalled(int peer, const PortSignal& signal) override;
  void closed(int peer, const Status& why) override;

  Peer* peer(int rank) const;
  Status meet(bool& all_met);
  Status too_late() const;
  void look_at(Peer& peer, bool& moved);
  void give_up(Peer& peer, const Status& why);

  std::unique_ptr<Network> network_;  // outlives connections
  Landing& landing_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; null: not elsewhere
  std::unique_ptr<PortEngine> spare_;
  bool connected_ = false;
  uint32_t calls_ = 0;
  Clock::time_point moved_ = Clock::now();
};

}  // namespace tessera::net_plugin
