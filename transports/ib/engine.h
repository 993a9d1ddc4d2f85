// ib: ports over RDMA queue pairs (InfiniBand and RoCE) between ranks of different hosts, with ports
// of another transport under them.
//
// The other transport (tcp) reaches every peer. Over it ranks find out which of them can talk by
// RDMA, and over it they go on when a device or a path fails. Its loss is the peer's loss, since it
// is what notices that a host has vanished. Peers that have no RDMA port in common with this rank
// use it for everything: a communicator may mix both.
//
//   auto engine = Engine::create(rank, config, peers, landing);
//   auto tcp = tcp::connect(..., engine->landing(), ...);
//   Status status = engine->connect(std::move(tcp), peers, deadline);
//
// Thread safety: one thread; nothing is shared between engines.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/deadline.h"
#include "base/fd.h"
#include "device/port.h"
#include "transports/ib/device.h"
#include "transports/ib/handshake.h"
#include "transports/ib/ib_port.h"
#include "transports/ib/registrations.h"

namespace tessera::ib {

struct PeerName {
  int rank;
  std::string name;  // "rank 3 (host b)"
};

class Engine final : public PortEngine, private Landing {
 public:
  // Of `rank` of `ranks`. Opens the devices that the config leaves; none is an error only where
  // NCCL_NET wants them. `landing` outlives the engine.
  static Result<std::unique_ptr<Engine>> create(int rank, int ranks, const Config& config,
                                                Landing& landing);
  // Posted bytes still reach peers that are alive, within a second.
  ~Engine() override;

  // What the spare transport is to hand over to.
  Landing& control() { return *this; }
  // All ranks call it with one another; blocks until each pair has agreed. kRemote: a peer has
  // gone; kTimeout: it does not answer. Both name it. `meanwhile`, if there is one, is called now and
  // then until then; its error ends this.
  Status connect(std::unique_ptr<PortEngine> spare, std::span<const PeerName> peers,
                 Deadline deadline, const std::function<Status()>& meanwhile = {});

  Port* port(int rank) override;
  bool progress() override;
  void retract() override;
  void end_call() override;
  bool flushed() const override;
  int wait_fd() const override;
  std::chrono::nanoseconds due_in() const override { return spare_->due_in(); }

  // Whether any peer is reached by RDMA, once connected.
  bool in_use() const { return !listed_.empty(); }
  // Of this rank's registrations, for tests; null without devices.
  const Registrations* registrations() const { return registrations_.get(); }

 private:
  // One of so many calls looks at the spare, where it carries nothing, and at devices' events.
  static constexpr uint32_t kLookAtSpare = 16;
  static constexpr uint32_t kLookAtEvents = 64;
  static constexpr std::chrono::seconds kLinger{1};

  Engine(int rank, int ranks, const Config& config, Landing& landing);

  std::byte* locate(int peer, uint64_t position, size_t bytes) override;
  bool is_over(int peer, uint64_t position) const override {
    return landing_.is_over(peer, position);
  }
  bool signalled(int peer, const PortSignal& signal) override;
  void closed(int peer, const Status& why) override;

  Status open_wait_fd();
  Status await(Deadline deadline, const std::function<Status()>& meanwhile);
  bool serve(Device& device);
  void look_at_events();
  void look_at_failing(IbPort& port, int peer);
  void list_ports();
  void report() const;
  IbPort* rdma(int peer) const { return ports_[static_cast<size_t>(peer)].get(); }

  const int rank_;
  const Config config_;
  Landing& landing_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Registrations> registrations_;
  std::unique_ptr<PortEngine> spare_;
  std::vector<std::unique_ptr<Handshake>> handshakes_;  // by rank; of peers
  std::vector<std::unique_ptr<IbPort>> ports_;          // by rank; null: the spare's is used
  std::vector<int> listed_;                             // ranks with a port here
  Status lost_;                                         // a peer, during connect()
  bool spare_in_use_ = true;
  uint32_t calls_ = 0;
  Fd wait_, ready_;  // an epoll of all there is to wait for; an event that makes it readable
};

}  // namespace tessera::ib
