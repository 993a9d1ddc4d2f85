// Calls in a form that ranks compare (I7) and people read.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "comm/segment_layout.h"
#include "tuner/candidate.h"

namespace tessera {

// The call after `last` (a record with number 0 before the first). Numbers count the calls of the
// communicator, or of the pair and direction, from 1. A fingerprint covers everything that ranks
// must agree on, in this call and in all calls before it.
CallRecord next_record(const CallRecord& last, const Call& call);
// The same call, now that it is known what it runs as.
CallRecord with_way(const CallRecord& record, uint16_t way);
// The same, where the call is the one of `last` once more.
CallRecord repeated_record(const CallRecord& last);

// Above 0, and different for whatever would not work together.
uint16_t way_of(const Candidate& candidate, const Choice& choice);

// "all-reduce 17 (count 1000, float32, sum)"
std::string describe(const CallRecord& record);

// A sentence that names what differs first and both values: "rank 1 passes count 1001, rank 3
// passes count 1000"; empty when they agree. For two records of the same number.
std::string difference(int rank_a, const CallRecord& a, int rank_b, const CallRecord& b);

// The first difference between the latest calls of two ranks up to call `number`, as a sentence;
// empty when none is on record.
std::string first_difference(int rank_a, const CallLog& a, int rank_b, const CallLog& b,
                             uint64_t number);

}  // namespace tessera
