// Who is timed.
// Thread safety: plain data.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "tools/tune_tool/buffers.h"
#include "tools/tune_tool/measure.h"

namespace tessera::tune {

// One contestant: a communicator that runs just this candidate.
struct Contestant {
  std::unique_ptr<Communicator> comm;
  const Buffers* buffers = nullptr;
  Span span;
  bool staged = false;
  std::optional<size_t> rule;  // who has the same algorithm in the rule's slices; none: itself
  bool promising = false;      // at the last size
  int hopeless = 0;
  int calls = 1;
  std::vector<double> times;
};

// Of a communicator that runs just this candidate; low-latency blocks have `cap` bytes at most.
inline Config config_of(const Candidate& candidate, const Config& base, size_t cap) {
  Config config = base;
  config.profile = "none";
  config.algorithm = candidate.algorithm->name;
  config.low_latency_max =
      candidate.protocol == Protocol::kLowLatency ? static_cast<int64_t>(cap) : 0;
  config.share_memory = candidate.protocol != Protocol::kSingleCopy;
  if (candidate.slot_bytes > 0) config.slice_bytes = static_cast<int64_t>(candidate.slot_bytes);
  return config;
}

}  // namespace tessera::tune
