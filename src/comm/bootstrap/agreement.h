// What the ranks of a rendezvous must agree on, and the words for when they do not. Pure functions.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "comm/bootstrap/wire.h"

namespace tessera::bootstrap {

inline constexpr int32_t kMaxRanks = 65536;

// "rank 3 (pid 4711 on node7)"
std::string name_of(const Member& member);

// "2, 5-8, 11": runs of three and more are shortened.
std::string list_of(std::span<const int> ranks);

// Whether `hello` may join those that came before. ok or kInvalidUsage naming the ranks and both
// values.
Status check_hello(const Hello& hello, std::span<const Hello* const> earlier);

// A rank of another library version says hello.
Status version_mismatch(int32_t rank, uint32_t version, std::span<const Hello* const> earlier);

std::vector<int> missing(std::span<const Hello* const> joined, int ranks);

// "ranks 2, 5 of 8 have not joined within 30 s"
std::string missing_text(std::span<const int> missing, int ranks, std::chrono::milliseconds waited);

}  // namespace tessera::bootstrap
