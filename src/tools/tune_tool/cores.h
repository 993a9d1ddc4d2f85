// Which core a rank of a team runs on.
//
// Each its own where there are enough, as mpirun does it. Else the scheduler would put some together
// and leave them so for a while, and who sits beside whom decides how fast small calls are, by a
// factor of two and more: chance, once for each communicator. So the places change from pass to
// pass, the same for all that is timed in it: neighbours together, round-robin, and shifted by half.
// Thread safety: one thread of each process.
#pragma once

#include <vector>

namespace tessera::tune {

class Cores {
 public:
  Cores();  // those that the process may use

  // The calling process runs on its core in that pass from now on.
  void take(int rank, int ranks, int pass) const;
  // Of cores [0, cores) that of a rank: as many ranks on each, one more or less.
  static int place(int rank, int ranks, int cores, int pass);

 private:
  std::vector<int> allowed_;
};

}  // namespace tessera::tune
