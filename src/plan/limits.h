// Caps on plans. They bound the memory and time that a plan from a file can cost; no built-in
// algorithm comes near them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

inline constexpr int kMaxRanks = 4096;
inline constexpr int kMaxLanes = 64;       // per rank
inline constexpr int kMaxSteps = 1 << 20;  // per lane
inline constexpr int kMaxChunksPerBlock = 1 << 16;
inline constexpr int kMaxScratchChunks = 1 << 20;  // per rank
inline constexpr int kMaxScratchDepth = 64;
inline constexpr int kMaxCounters = 1 << 20;    // per rank
inline constexpr int kMaxOperands = kMaxRanks;  // dsts, srcs, waits and signals of a step, each
inline constexpr uint32_t kMaxLag = 64;
inline constexpr uint32_t kMaxIncrement = 1u << 24;  // of a wait, a signal, and arrivals
inline constexpr size_t kMaxNameBytes = 128;

// Work of one verification. Plans beyond it are refused as too large to verify.
inline constexpr size_t kMaxUnrolledSteps = size_t{1} << 25;
inline constexpr size_t kMaxClockEntries = size_t{1} << 28;
inline constexpr size_t kMaxClockWork = size_t{1} << 34;  // entries joined with others
inline constexpr size_t kMaxAccesses = size_t{1} << 28;
inline constexpr size_t kMaxLocations = size_t{1} << 24;

// Names of plans are printable ASCII, so that they can stand in any message, file and picture.
constexpr bool is_plan_name(std::string_view name) {
  for (const char c : name) {
    if (c < ' ' || c > '~') return false;
  }
  return name.size() <= kMaxNameBytes;
}

}  // namespace tessera
