// The rank's side of a stopwatch: communicators, buffers, and the calls that are timed.
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "tools/tune_tool/buffers.h"
#include "tools/tune_tool/cores.h"
#include "tools/tune_tool/seat.h"
#include "tools/tune_tool/stopwatch.h"

namespace tessera::tune {

class Bench {
 public:
  Bench(Seat& seat, const std::vector<Entrant>& entrants)
      : seat_(seat), entrants_(entrants), comms_(entrants.size()) {}

  // All ranks run the same batches in the same order. The microseconds of a call: the batch's, from
  // the first rank's begin to the last one's end, over its calls.
  Result<double> run(const Batch& batch);

 private:
  Result<Communicator*> communicator(uint32_t entrant);
  Status prepare(Call& call, const Batch& batch);

  Seat& seat_;
  const std::vector<Entrant>& entrants_;
  Buffers shareable_{true}, plain_{false};
  std::vector<std::unique_ptr<Communicator>> comms_;  // by entrant; made when first needed
  Cores cores_;
  int pass_ = -1;
};

}  // namespace tessera::tune
