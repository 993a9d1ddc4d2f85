// Ranks that share a block of memory, with landings that write down what came.
// Thread safety: each rank by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "device/port.h"
#include "sync/counter.h"
#include "transports/emulated/engine.h"
#include "transports/emulated/links.h"

namespace tessera::emulated {

// Zeroed and aligned, as a mapped segment is; shared with children made by fork().
class SharedBlock {
 public:
  explicit SharedBlock(size_t bytes);
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  std::byte* base() const { return base_; }

 private:
  size_t bytes_;
  std::byte* base_;
};

struct Arrival {
  int peer;
  PortSignal signal;
  uint64_t at;  // ns
};

struct Log : Landing {
  std::byte* locate(int, uint64_t, size_t) override {
    ++located;
    return nullptr;
  }
  bool signalled(int peer, const PortSignal& signal) override;
  void closed(int peer, const Status& why) override;

  std::vector<Arrival> arrivals;
  std::vector<std::pair<int, std::string>> ends;
  uint64_t refused_position = ~uint64_t{0};
  int located = 0;
};

uint64_t now_ns();

class Team {
 public:
  explicit Team(Links links);

  int ranks() const { return links_->ranks; }
  PortEngine& engine(int rank) { return *engines_[static_cast<size_t>(rank)]; }
  Port& port(int from, int to) { return *engine(from).port(to); }
  Log& log(int rank) { return logs_[static_cast<size_t>(rank)]; }
  Doorbell& doorbell(int rank) { return *doorbells_[static_cast<size_t>(rank)]; }

  // Drives the rank as a waiting thread does, sleeping, until done(). False: the deadline passed.
  template <class Done>
  bool drive(int rank, const Done& done, Deadline deadline = Deadline::after(kTooLong)) {
    while (!done()) {
      if (deadline.passed()) return false;
      if (!engine(rank).progress()) sleep(rank);
    }
    return true;
  }

  static constexpr std::chrono::seconds kTooLong{60};

 private:
  void sleep(int rank);

  std::shared_ptr<const Links> links_;
  SharedBlock block_;
  std::vector<Doorbell*> doorbells_;  // in the block, so that children share them
  std::vector<Log> logs_;
  std::vector<std::unique_ptr<PortEngine>> engines_;
};

}  // namespace tessera::emulated
