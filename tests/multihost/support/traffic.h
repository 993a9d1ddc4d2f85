// What ranks do while something happens to them: random calls, each checked bit for bit.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "multihost/support/job.h"

namespace tessera::multihost {

struct Traffic {
  int rounds = 1'000'000'000;
  size_t largest = 200'000;  // elements of a block
  uint32_t seed = 1;
};

// "remote: ..." of the first call that failed, else "". Counts its rounds on the board; when the
// test raises Board::enough, all ranks end after the same round.
std::string run_traffic(Communicator& comm, Board& board, const Traffic& traffic);

// Whether the test has seen enough, as rank 0 reads it. Collective.
Result<bool> agree_to_end(Communicator& comm, Board& board);

// The text of run_traffic() for a status.
std::string describe(const Status& status);

}  // namespace tessera::multihost
