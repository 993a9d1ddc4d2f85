#include "comm/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/deadline.h"
#include "base/log.h"
#include "sync/counter.h"

namespace tessera {

Health::Health(SegmentView view, int rank, int ranks, std::string name, Liveness liveness,
               const Ports* ports)
    : view_(view),
      header_(&view.header()),
      rank_(rank),
      ranks_(ranks),
      name_(std::move(name)),
      liveness_(std::move(liveness)),
      ports_(ports) {}

// Whoever claimed the record writes it within microseconds, unless it dies.
const ErrorRecord* Health::await_reason() const {
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(200));
  while (header_->error.claimed() && header_->error.get() == nullptr && !deadline.passed()) yield();
  return header_->error.get();
}

void Health::await_claim() const {
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(200));
  while (!header_->error.claimed() && !deadline.passed()) yield();
}

std::string Health::who() const {
  return name_.empty() ? fmt::format("rank {}", rank_)
                       : fmt::format("rank {} of \"{}\"", rank_, name_);
}

Status Health::status() const {
  if (aborted_.raised()) return {Code::kInvalidUsage, who() + ": aborted by this rank"};
  if (revoked_.raised()) {
    return {Code::kInvalidUsage,
            who() + ": revoked by this rank; only split, shrink, destroy and abort may follow"};
  }
  if (const ErrorRecord* record = await_reason()) return record->status();
  if (header_->error.claimed()) {
    return {Code::kRemote, who() + ": a peer found an error and has not yet written what it was"};
  }
  return {};
}

Status Health::raise(const Status& status) {
  ErrorRecord record{};
  record.code = status.code();
  record.rank = rank_;
  const size_t length = std::min(status.message().size(), sizeof(record.text) - 1);
  std::memcpy(record.text, status.message().data(), length);
  if (header_->error.set(record)) {
    log::warn(rank_, "{}", status.message());
    wake_all();
    return status;
  }
  return this->status();
}

Status Health::look() {
  if (!good()) return status();
  if (ports_ == nullptr && liveness_.dead() < 0) return {};
  for (int dead = 0; dead < ranks_; ++dead) {
    // Who destroyed its communicator has done its part and may end; a call that needs it says so
    // itself.
    if (!peer_dead(dead) || view_.rank(dead).left.raised()) continue;  // in this order
    if (const std::string* why = connection_lost(dead)) {
      return raise(Status::error(Code::kRemote,
                                 "{}: {}; shrink the communicator to go on without rank {}, or "
                                 "abort",
                                 who(), *why, dead));
    }
    return raise(
        Status::error(Code::kRemote,
                      "{}: the process of rank {} has ended; shrink the communicator to go "
                      "on without it, or abort",
                      who(), dead));
  }
  return {};
}

std::vector<int> Health::dead_among(std::span<const int> ranks) const {
  std::vector<int> dead = liveness_.dead_among(ranks);
  for (const int rank : ranks) {
    if (connection_lost(rank) != nullptr) dead.push_back(rank);
  }
  return dead;
}

void Health::stop(Flag& flag, const char* how) {
  flag.raise();
  ErrorRecord record{};
  record.code = Code::kRemote;
  record.rank = rank_;
  const auto end =
      fmt::format_to_n(record.text, sizeof(record.text) - 1, "{} {} this communicator", who(), how);
  *end.out = '\0';
  header_->error.set(record);
  wake_all();
}

void Health::wake_all() {
  // Whoever waits in poll() looks again within Idle::kLongestSleep.
  for (int r = 0; r < ranks_; ++r) view_.rank(r).doorbell.ring();
}

}  // namespace tessera
