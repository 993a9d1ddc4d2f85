// Times all candidates of all fields, side by side.
//
// The first pass looks at everybody, field by field, from large sizes to small: what is hopeless for
// large messages is left out early, where it costs. Those who come near the best run again, pass
// after pass, all fields and sizes in each, so that what is timed of a size is spread over the whole
// time; from pass to pass fewer stay. Where somebody is judged, only the winner, the chosen one and
// the automatic one run after the passes that find the winner.
//
// Cost: a field has some 10 to 25 contestants for each of about 12 sizes in the first pass, up to 10
// in the second, 2 to 4 in the last ones.
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tools/tune_tool/standing.h"
#include "tools/tune_tool/stopwatch.h"

namespace tessera::tune {

inline constexpr size_t kJudgingPass = 4;  // the first that counts for a verdict

// Called now and then with how far it is, 0 to 1, and what comes next.
using Show = std::function<void(double share, const std::string& what)>;

// All cells, by field and ascending size. It ends about then: batches are as long as that allows,
// and the largest blocks are left out for which it does not suffice; those up to kAlwaysTimed bytes
// only where it is grossly too late, so that it may take some seconds longer, or as long as the first
// field takes. `config`: of communicators, the profile of the
// automatic ones included.
Result<std::vector<Cell>> tournament(const std::vector<Field>& fields, const Config& config,
                                     std::chrono::steady_clock::time_point end, const Start& start,
                                     const Show& show);

}  // namespace tessera::tune
