#include "comm/ports.h"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/deadline.h"
#include "base/error_text.h"
#include "sync/fence.h"
#include "sync/slot.h"

namespace tessera {

Ports::Ports(int rank, std::vector<bool> elsewhere, size_t arena_bytes)
    : rank_(rank),
      ranks_(static_cast<int>(elsewhere.size())),
      elsewhere_(std::move(elsewhere)),
      arena_bytes_(arena_bytes),
      bytes_(SegmentView::bytes(ranks_, arena_bytes)),
      losses_(elsewhere_.size()),
      pairs_(elsewhere_.size()) {}

Result<std::unique_ptr<Ports>> Ports::create(int rank, std::vector<bool> elsewhere,
                                             size_t arena_bytes) {
  std::unique_ptr<Ports> ports(new Ports(rank, std::move(elsewhere), arena_bytes));
  if (std::find(ports->elsewhere_.begin(), ports->elsewhere_.end(), true) ==
      ports->elsewhere_.end())
    return ports;
  void* mirror = ::mmap(nullptr, ports->bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mirror == MAP_FAILED) {
    return Status::error(Code::kSystem, "rank {}: no {} bytes of address space for other hosts: {}",
                         rank, ports->bytes_, error_text(errno));
  }
  ports->mirror_ = static_cast<std::byte*>(mirror);
  return ports;
}

Ports::~Ports() {
  engine_.reset();
  if (mirror_ != nullptr) ::munmap(mirror_, bytes_);
}

SegmentView Ports::view() const { return {segment_, ranks_, arena_bytes_}; }

uint64_t Ports::position(const void* at) const {
  const auto* byte = static_cast<const std::byte*>(at);
  const bool mirrored = byte >= mirror_ && byte < mirror_ + bytes_;
  return static_cast<uint64_t>(byte - (mirrored ? mirror_ : segment_));
}

void Ports::share(int peer, const void* from, size_t bytes) {
  if (!elsewhere(peer)) return;
  const uint64_t at = position(from);
  port(peer)->put(at, static_cast<const std::byte*>(from), memory(at), bytes);
}

void Ports::share(const void* from, size_t bytes) {
  for (int peer = 0; peer < ranks_; ++peer) share(peer, from, bytes);
}

void Ports::share_value(int peer, const Counter& counter) {
  if (!elsewhere(peer)) return;
  port(peer)->signal({position(&counter), counter.value(), 0, PortSignal::Kind::kSet});
}

void Ports::share_value(const Counter& counter) {
  for (int peer = 0; peer < ranks_; ++peer) share_value(peer, counter);
}

void Ports::spread_error() {
  const ErrorRecord* error = view().header().error.get();
  if (spread_ || error == nullptr || !any_elsewhere()) return;
  spread_ = true;
  told_ = *error;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (!elsewhere(peer) || lost(peer) != nullptr) continue;
    // The header's position stands for the error; it lands in heard_.
    port(peer)->put(0, reinterpret_cast<const std::byte*>(&told_),
                    reinterpret_cast<std::byte*>(&told_), sizeof(told_));
    port(peer)->signal({});
  }
  flush(std::chrono::milliseconds(100));
}

// Who raises an error stores it, passes a fence and tries to get in; who leaves lets go, passes a
// fence and looks for one. One of the two sees the other.
void Ports::unlock() {
  mutex_.unlock();
  full_fence();
  if (view().header().error.get() != nullptr) spread_error_if_idle();
}

void Ports::spread_error_if_idle() {
  full_fence();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) spread_error();
}

void Ports::flush(std::chrono::milliseconds at_most) {
  const Deadline deadline = Deadline::after(at_most);
  while (!flushed() && !deadline.passed()) {
    if (progress()) continue;
    pollfd polled{wait_fd(), POLLIN, 0};
    if (polled.fd < 0) {
      yield();
      continue;
    }
    ::poll(&polled, 1, 1);
  }
}

// A rank elsewhere writes what it says of itself, what it says to this rank, and this rank's arena.
bool Ports::may_write(int peer, uint64_t at, size_t bytes) const {
  const SegmentView layout(nullptr, ranks_, arena_bytes_);
  const auto within = [&](const void* begin, size_t size) {
    const auto first = reinterpret_cast<uint64_t>(begin);
    return at >= first && bytes <= size && at - first <= size - bytes;
  };
  return within(layout.arena(rank_), arena_bytes_) ||
         within(&layout.rank(peer), sizeof(RankArea)) ||
         within(&layout.pair(rank_, peer), sizeof(PairArea)) ||
         within(&layout.pair(peer, rank_), sizeof(PairArea));
}

std::byte* Ports::locate(int peer, uint64_t at, size_t bytes) {
  if (!elsewhere(peer)) return nullptr;
  if (at >= kUserMemory) {
    const bool pair = at >= kPairMemory;
    const UserMemory& memory = pair ? pairs_[static_cast<size_t>(peer)] : collective_;
    const uint64_t offset = at - (pair ? kPairMemory : kUserMemory);
    if (memory.base == nullptr || bytes > memory.bytes || offset > memory.bytes - bytes)
      return nullptr;
    return static_cast<std::byte*>(memory.base) + offset;
  }
  if (at == 0 && bytes == sizeof(heard_)) return reinterpret_cast<std::byte*>(&heard_);
  if (!may_write(peer, at, bytes)) return nullptr;
  return (at >= view().arena_offset(rank_) ? segment_ : mirror_) + at;
}

// Peers put into user memory only after this rank has named it: what comes while it names none was on
// its way when the call ended here.
bool Ports::is_over(int peer, uint64_t at) const {
  if (!elsewhere(peer) || at < kUserMemory) return false;
  const UserMemory& memory = at >= kPairMemory ? pairs_[static_cast<size_t>(peer)] : collective_;
  return memory.base == nullptr;
}

bool Ports::signalled(int peer, const PortSignal& signal) {
  if (elsewhere(peer) && signal.position == 0) {
    adopt_error();
    return true;
  }
  const bool slot = signal.kind == PortSignal::Kind::kSlot;
  const size_t bytes = slot ? sizeof(SlotHeader) : sizeof(Counter);
  if (signal.position % alignof(Counter) != 0 || !may_write(peer, signal.position, bytes))
    return false;
  const bool arena = signal.position >= view().arena_offset(rank_);
  std::byte* at = (arena ? segment_ : mirror_) + signal.position;
  auto& counter = *reinterpret_cast<Counter*>(at);
  if (slot) reinterpret_cast<SlotHeader*>(at)->fingerprint = signal.fingerprint;
  if (signal.kind == PortSignal::Kind::kAdd)
    counter.publish(signal.value);
  else
    counter.publish_value(signal.value);
  return true;
}

void Ports::retract() {
  collective_ = {};
  pairs_.assign(pairs_.size(), {});
  engine_->retract();
}

void Ports::adopt_error() {
  heard_.text[sizeof(heard_.text) - 1] = '\0';
  if (!view().header().error.set(heard_)) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!elsewhere(rank)) view().rank(rank).doorbell.ring();
  }
}

void Ports::closed(int peer, const Status& why) {
  Loss& loss = losses_[static_cast<size_t>(peer)];
  loss.why = why.message();
  loss.happened.raise();
}

}  // namespace tessera
