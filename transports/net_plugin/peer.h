// One peer as a net plugin reaches it: first the way to a connection in each direction, then a port.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "device/port.h"
#include "transports/net_plugin/inbox.h"
#include "transports/net_plugin/network.h"
#include "transports/net_plugin/outbox.h"

namespace tessera::net_plugin {

// What a rank tells a peer for it to connect.
struct Offer {
  std::array<std::byte, abi::kHandleBytes> handle{};
  Token token{};
  uint64_t message_bytes = 0;  // the longest that it can receive
};

// Why a rank gives up on a peer that is alive.
struct Farewell {
  char text[512] = {};
};

class Peer final : public Port {
 public:
  // `name`: "rank 3 (host b)".
  Peer(const Network& network, Landing& landing, int rank, std::string name);
  ~Peer() override;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  int rank() const { return rank_; }
  const std::string& name() const { return name_; }

  // Makes the own offer. kRemote: the plugin fails; kSystem.
  Status listen();
  Offer& offer() { return offer_; }
  // Where the peer's is to be stored, and that it is there.
  Offer& heard_offer() { return heard_; }
  void offered() { has_offer_ = true; }
  // Goes as far towards a connection in both directions as is possible now.
  Status meet();
  bool met() const { return outbox_ != nullptr && inbox_ != nullptr && inbox_->greeted(); }
  const char* what_is_missing() const;

  void put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes) override;
  void signal(const PortSignal& signal) override;

  // After met(): takes in and sends. When it has failed: what came before has been handed over.
  Status progress(bool& moved);
  // The last that is posted: nothing comes any more.
  void end();
  // Sends only.
  Status send(bool& moved) { return outbox_->progress(moved); }
  bool flushed() const { return !open_ || outbox_ == nullptr || outbox_->flushed(); }

  // What each tells the other when it gives up.
  Farewell& own_farewell() { return own_farewell_; }
  Farewell& farewell() { return farewell_; }
  // The other transport knows why nothing comes any more.
  void left_alone(const Status& why);
  // For so long that nothing will come through the plugin either.
  bool silent() const;
  const Status& why() const { return why_; }

  bool open() const { return open_; }
  void close() { open_ = false; }

 private:
  using Clock = std::chrono::steady_clock;
  // What a process sent before it ended arrives within that time.
  static constexpr std::chrono::milliseconds kLast{500};

  Status connect();
  Status accept();

  const Network& network_;
  Landing& landing_;
  const int rank_;
  const std::string name_;
  Offer offer_, heard_;
  bool has_offer_ = false;
  void* listening_ = nullptr;
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<Inbox> inbox_;
  bool open_ = true;
  Farewell own_farewell_, farewell_;
  Status why_;  // ok: the other transport knows of nothing
  Clock::time_point since_;
};

}  // namespace tessera::net_plugin
