// The JSON form of plans: readable, loadable, and strict, since users may bring plans of their own.
//
//   {"format": "tessera-plan", "version": 1, "name": "ring", "collective": "all-gather",
//    "ranks": 2, "root": -1, "chunks_per_block": 1, "scratch_depth": 2,
//    "programs": [
//      {"scratch_chunks": 1, "counters": [{"kind": "step", "arrivals": 0}],
//       "lanes": [{"steps": [
//         {"op": "copy", "chunk": 0, "chunks": 1,
//          "dsts": [{"rank": 1, "buffer": "scratch", "chunk": 0}],
//          "srcs": [{"rank": 0, "buffer": "input", "chunk": 0}],
//          "waits": [{"counter": 0, "increment": 1, "lag": 2}],
//          "signals": [{"rank": 1, "counter": 0, "increment": 1}]}, ...]}]}, ...]}
//
// Operations are "copy", "reduce", "accumulate" and "sync"; a "sync" has neither chunk, chunks, dsts
// nor srcs. All other fields are required, no others are allowed.
// Thread safety: pure functions; read_plan() reads a file.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "plan/plan.h"

namespace tessera {

inline constexpr size_t kMaxPlanText = size_t{64} << 20;  // bytes of JSON

// One step a line. The plan's form must be correct (as of a plan that was loaded, or that an
// algorithm built).
std::string save_json(const Plan& plan);

// The plan as written, with every number in range, but not verified. Errors (kPlanInvalid) name the
// place: "programs[2].lanes[0].steps[5].srcs[1].chunk: 9 is out of range 0..7", or line and column
// where the text is no JSON.
Result<Plan> load_json(std::string_view text);

// The same of a text that begins with "{", or of the file that `text_or_file` names. Errors name the
// file, too; kInvalidArgument if it cannot be read.
Result<Plan> read_plan(const std::string& text_or_file);

}  // namespace tessera
