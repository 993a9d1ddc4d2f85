// The first pass of a tournament over a field: everybody who is not hopeless runs.
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <vector>

#include "tools/tune_tool/standing.h"
#include "tools/tune_tool/stopwatch.h"

namespace tessera::tune {

// The runners of each size, ascending; none where there was no time for the size. `team`: of
// entrants_of(field).
Result<std::vector<std::vector<Runner>>> look(const Field& field, Stopwatch& team,
                                              std::chrono::steady_clock::time_point until);

}  // namespace tessera::tune
