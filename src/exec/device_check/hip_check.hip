// The interpreter as device code; see block_space.h.
#include <hip/hip_runtime.h>

#include "exec/device_check/block_space.h"
#include "exec/device_check/tile_check.h"

namespace tessera::device_check {

__global__ void sum_float(ProgramView program, Run<BlockSpace<float>> run, Progress* outcome) {
  run_lane(program, run, outcome);
}

}  // namespace tessera::device_check
