// Forms a communicator's core from agreed members: creates or receives the segment, maps it, probes
// what the machine allows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/communicator.h"
#include "comm/core.h"

namespace tessera {

// All members call it with the same list (ranks 0 .. n-1) and secret; `rank` is the own. Rank 0
// makes the segment.
Result<std::unique_ptr<Core>> form(Membership membership, int rank, const CommOptions& options,
                                   Tuning tuning, Deadline deadline);

// A communicator among `members` (ranks of `parent`, in the order of their new ranks) of which the
// own rank is one. `exchange` is the parent's.
class SetupExchange;
Result<std::unique_ptr<Core>> form_child(Core& parent, SetupExchange& exchange,
                                         const std::vector<int>& members, SetupCall call,
                                         const CommOptions& options, Deadline deadline);

}  // namespace tessera
