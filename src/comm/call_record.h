// Calls in a form that ranks compare (I7) and people read.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "comm/segment_layout.h"

namespace tessera {

// The record of the same call made once more, as call `number`.
CallRecord repeat(const CallRecord& record, uint64_t number);

// `number` counts the calls of the communicator (or of the pair and direction) from 1. The fingerprint covers everything that ranks must agree on.
CallRecord make_record(const Call& call, uint64_t number);

// "all-reduce 17 (count 1000, float32, sum)"
std::string describe(const CallRecord& record);

// A sentence that names what differs first and both values: "rank 1 passes count 1001, rank 3 passes count 1000"; empty when they agree.
std::string difference(int rank_a, const CallRecord& a, int rank_b, const CallRecord& b);

}  // namespace tessera
