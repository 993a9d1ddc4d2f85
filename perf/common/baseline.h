// The MPI collective that does the same work on the same buffers.
#pragma once

#include <memory>

#include "common/collective.h"
#include "common/world.h"

namespace tessera::perf {

class Baseline {
 public:
  virtual ~Baseline() = default;

  // False ("N/A" is printed): MPI has no such type or operation, or the count exceeds int.
  virtual bool supports(const Call& call, const Operation* op, bool in_place) const = 0;

  // Runs it once; supports() must hold. `in_place` is passed to MPI as MPI_IN_PLACE where the
  // operation has one.
  virtual void run(const Call& call, const Operation* op, bool in_place) = 0;
};

// Null where MPI is absent. The baseline has one rank per process: a run with threads or several
// ranks per thread has none.
std::unique_ptr<Baseline> make_baseline(const World& world, const Collective& collective);

}  // namespace tessera::perf
