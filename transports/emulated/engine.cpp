#include "transports/emulated/engine.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>
#include <vector>

#include "base/log.h"
#include "device/host/copy.h"
#include "sync/message_ring.h"
#include "transports/emulated/line_times.h"

namespace tessera::emulated {
namespace {

struct Message {
  uint64_t due = 0;  // ns
  PortSignal signal;
};
constexpr uint64_t kRingEntries = 128;
using Ring = MessageRing<Message, kRingEntries>;
static_assert(alignof(Ring) == kCacheLine);

constexpr size_t kLargePut = size_t{64} << 10;     // smaller ones say little about memory
constexpr size_t kJudgedBytes = size_t{16} << 20;  // one put alone may have lost its core
constexpr double kLate = 1.03;                     // of the time that the link takes

// CLOCK_MONOTONIC, which all processes of a machine share.
uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

Ring* rings_at(const Links& links, std::byte* shared) {
  return reinterpret_cast<Ring*>(shared + LineTimes::bytes(links));
}

// Tells once that copies do not keep up with the links.
class Lateness {
 public:
  explicit Lateness(int rank) : rank_(rank) {}

  // A put that began at `begun`, passes its way at `passed` and was stored at `stored`.
  void judge(size_t bytes, uint64_t begun, uint64_t passed, uint64_t stored) {
    if (bytes < kLargePut || told_) return;
    bytes_ += bytes;
    link_ns_ += static_cast<double>(passed - begun);
    copy_ns_ += static_cast<double>(stored - begun);
    if (bytes_ < kJudgedBytes || copy_ns_ <= kLate * link_ns_) return;
    told_ = true;
    log::warn(rank_,
              "TESSERA_EMULATE: memory here is too slow for the described links: {} MiB took "
              "{:.0f} us to store, the links take {:.0f} us, so that signals come late. Slow the "
              "links down (\"slower=\") by another factor of {:.0f} at least",
              bytes_ >> 20, copy_ns_ / 1000, link_ns_ / 1000,
              std::ceil(copy_ns_ / std::max(link_ns_, 1.0)));
  }

 private:
  int rank_;
  bool told_ = false;
  size_t bytes_ = 0;
  double link_ns_ = 0, copy_ns_ = 0;
};

class EmulatedPort final : public Port {
 public:
  EmulatedPort(int from, int to, const Way& way, LineTimes& times, Lateness& lateness, Ring& ring,
               Doorbell& doorbell)
      : from_(from),
        to_(to),
        latency_(static_cast<uint64_t>(way.latency.count())),
        times_(times),
        lateness_(lateness),
        ring_(ring),
        doorbell_(doorbell) {}

  void put(uint64_t, const std::byte* data, std::byte* shadow, size_t bytes) override {
    const uint64_t now = now_ns();
    // The link begins when the put is called, whatever the copy takes.
    const uint64_t passed = times_.put(from_, to_, bytes, now);
    passed_ = std::max(passed_, passed);
    if (data == shadow || bytes == 0) return;
    host::copy(shadow, data, bytes);
    lateness_.judge(bytes, now, passed, now_ns());
  }

  void signal(const PortSignal& signal) override {
    passed_ = std::max(passed_, now_ns());  // also keeps the order of signals
    const Message message{passed_ + latency_, signal};
    if (waiting_.empty() && ring_.push(message)) {
      doorbell_.ring();
    } else {
      waiting_.push_back(message);
    }
  }

  // Hands as much to the ring as fits; true if there was any.
  bool push() {
    bool any = false;
    while (!waiting_.empty() && ring_.push(waiting_.front())) {
      waiting_.pop_front();
      any = true;
    }
    if (any) doorbell_.ring();
    return any;
  }

  bool pushed() const { return waiting_.empty(); }

 private:
  const int from_, to_;
  const uint64_t latency_;
  LineTimes& times_;
  Lateness& lateness_;
  Ring& ring_;
  Doorbell& doorbell_;           // the receiver's
  uint64_t passed_ = 0;          // when all that was posted has passed the lines
  std::deque<Message> waiting_;  // for room in the ring
};

class Engine final : public PortEngine {
 public:
  Engine(std::shared_ptr<const Links> links, int rank, std::byte* shared,
         std::span<Doorbell* const> doorbells, Landing& landing)
      : links_(std::move(links)),
        rank_(rank),
        landing_(landing),
        times_(links_, shared),
        lateness_(rank),
        ports_(static_cast<size_t>(links_->ranks)),
        sources_(static_cast<size_t>(links_->ranks)) {
    Ring* rings = rings_at(*links_, shared);
    const auto ring = [&](int from, int to) -> Ring& { return rings[from * links_->ranks + to]; };
    for (int peer = 0; peer < links_->ranks; ++peer) {
      if (peer == rank) continue;
      const auto at = static_cast<size_t>(peer);
      ports_[at] = std::make_unique<EmulatedPort>(rank, peer, links_->way(rank, peer), times_,
                                                  lateness_, ring(rank, peer), *doorbells[at]);
      sources_[at] = {&ring(peer, rank), doorbells[at]};
    }
  }

  Port* port(int rank) override { return ports_[static_cast<size_t>(rank)].get(); }

  bool progress() override {
    bool any = false;
    for (const auto& port : ports_) any |= port != nullptr && port->push();
    const uint64_t now = now_ns();
    for (int peer = 0; peer < links_->ranks; ++peer) any |= take_in(peer, now);
    return any;
  }

  void retract() override {
  }  // nothing is still to come: a put has stored its bytes when it returns

  bool flushed() const override {
    return std::all_of(ports_.begin(), ports_.end(),
                       [](const auto& port) { return port == nullptr || port->pushed(); });
  }

  int wait_fd() const override { return -1; }

  std::chrono::nanoseconds due_in() const override {
    uint64_t first = kNever;
    for (const Source& source : sources_) {
      const Message* next = source.ring == nullptr ? nullptr : source.ring->front();
      if (next != nullptr) first = std::min(first, next->due);
    }
    if (first == kNever) return std::chrono::nanoseconds::max();
    const uint64_t now = now_ns();
    return std::chrono::nanoseconds(first > now ? static_cast<int64_t>(first - now) : 0);
  }

 private:
  static constexpr uint64_t kNever = ~uint64_t{0};
  struct Source {
    Ring* ring = nullptr;  // null: nothing (more) comes from there
    Doorbell* doorbell = nullptr;
  };

  // Times in a ring do not decrease, so that the first decides.
  bool take_in(int peer, uint64_t now) {
    Source& source = sources_[static_cast<size_t>(peer)];
    bool any = false, made_room = false;
    while (source.ring != nullptr) {
      const Message* next = source.ring->front();
      if (next == nullptr || next->due > now) break;
      const PortSignal signal = next->signal;
      made_room |= source.ring->pop();
      any = true;
      if (!landing_.signalled(peer, signal)) close(peer, signal);
    }
    if (made_room) source.doorbell->ring();
    return any;
  }

  void close(int peer, const PortSignal& signal) {
    sources_[static_cast<size_t>(peer)].ring = nullptr;
    const Status why =
        Status::error(Code::kRemote, "rank {}: rank {} signalled position {:#x}, which it may not",
                      rank_, peer, signal.position);
    log::warn(rank_, "{}", why.message());
    landing_.closed(peer, why);
  }

  const std::shared_ptr<const Links> links_;
  const int rank_;
  Landing& landing_;
  LineTimes times_;
  Lateness lateness_;
  std::vector<std::unique_ptr<EmulatedPort>> ports_;  // by rank
  std::vector<Source> sources_;                       // by rank
};

}  // namespace

size_t shared_bytes(const Links& links) {
  const auto ranks = static_cast<size_t>(links.ranks);
  return LineTimes::bytes(links) + ranks * ranks * sizeof(Ring);
}

std::unique_ptr<PortEngine> make_engine(std::shared_ptr<const Links> links, int rank,
                                        std::byte* shared, std::span<Doorbell* const> doorbells,
                                        Landing& landing) {
  return std::make_unique<Engine>(std::move(links), rank, shared, doorbells, landing);
}

}  // namespace tessera::emulated
