// A rank of these tests: plain memory, and what has happened to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/port.h"

namespace tessera::tcp {

class MemoryLanding : public Landing {
 public:
  explicit MemoryLanding(size_t bytes) : memory_(bytes) {}

  std::byte* locate(int, uint64_t position, size_t bytes) override {
    const bool user = position >= kUserMemory;
    if (user && over_) return nullptr;
    const uint64_t offset = user ? position - kUserMemory : position;
    if (bytes > memory_.size() || offset > memory_.size() - bytes) return nullptr;
    return memory_.data() + offset;
  }
  bool is_over(int, uint64_t position) const override { return over_ && position >= kUserMemory; }
  bool signalled(int peer, const PortSignal& signal) override {
    if (refuse_signals_) return false;
    signals_.push_back({peer, signal});
    return true;
  }
  void closed(int peer, const Status& why) override { closed_.push_back({peer, why}); }

  struct Seen {
    int peer;
    PortSignal signal;
  };
  struct End {
    int peer;
    Status why;
  };

  std::vector<std::byte>& memory() { return memory_; }
  const std::vector<Seen>& signals() const { return signals_; }
  const std::vector<End>& ends() const { return closed_; }
  void refuse_signals() { refuse_signals_ = true; }
  // From now on user memory is of a call that has ended.
  void end_call() { over_ = true; }

 private:
  std::vector<std::byte> memory_;
  std::vector<Seen> signals_;
  std::vector<End> closed_;
  bool refuse_signals_ = false, over_ = false;
};

}  // namespace tessera::tcp
