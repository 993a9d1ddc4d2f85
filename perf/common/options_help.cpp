#include <fmt/format.h>

#include "common/options.h"

namespace tessera::perf {

std::string help_text(const char* program) {
  return fmt::format(
      R"(USAGE: {}
  Ranks
    -t,--nthreads <n>               threads per process (1)
    -g,--ngpus <n>                  ranks per thread (1); a rank here is host memory
    -p,--parallel_init <0/1>        threads initialise concurrently (0)
  Sizes; K, M, G are binary
    -b,--minbytes <bytes>           smallest size (32M)
    -e,--maxbytes <bytes>           largest size (32M)
    -i,--stepbytes <bytes>          additive step (1M)
    -f,--stepfactor <factor>        multiplicative step (off)
    -u,--unalign <n>                index of the first element in its buffer (0)
  What is run
    -o,--op <sum|prod|min|max|avg|mulsum|all>        reduction (sum)
    -d,--datatype <int8|uint8|int32|uint32|int64|uint64|half|float|double|bfloat16|f8e4m3|f8e5m2|all>
                                    element type (float)
    -r,--root <n>                   root; -1: every root (0)
    -n,--iters <n>                  timed iterations (20)
    -m,--agg_iters <n>              calls per group and iteration (1)
    -w,--warmup_iters <n>           untimed iterations per point (1)
    -N,--run_cycles <n>             repeat the table n times, 0: for ever (1)
    -c,--check <n>                  checked iterations per point, 0: none (1)
    -z,--blocking <0..3>            1: barrier after every call; calls always complete before they return (0)
    -y,--stream_null <0/1>          accepted; stream 0 is always used (0)
    -R,--local_register <0/1/2>     1 register buffers, 2 symmetric windows (0)
    -x,--cta_policy <0/1/2>         CTA policy of the communicators (library's default)
    -G,--cudagraph <n>              graphs do not exist on host memory: n > 0 ends with code 5 (0)
    -D,--device_implementation <n>  device kernels do not exist on host memory: n > 0 ends with code 5, or 6 without -R 2 (0)
    -V,--device_cta_count <n>       accepted, unused (16)
    -T,--timeout <seconds>          abort a call that takes longer and end with code 4 (off)
  What is reported
    -a,--average <0/1/2/3>          time of rank 0, average, minimum, maximum over ranks (1)
    -C,--report_cputime <0/1>       CPU time of the calling thread instead of wall time (0)
    -S,--report_timestamps <0/1>    a time stamp per row (0)
    -I,--per_iter_timing <0/1>      minimum, maximum, 99th percentile and variation of iterations (0)
    -K,--skip_samples <n>           leave the first n iterations out of these (0)
    -M,--memory <0/1>               memory report (0)
    -J,--output_file <file>         JSON report
    -h,--help
  Beyond nccl-tests
    --baseline mpi                  measure the matching MPI collective in alternation; adds mpi(us) and ratio (> 1: faster than MPI)
    --adaptive                      batches of about 2 ms, at least 5, medians, instead of -n iterations; implied by --baseline
    --buffers <ncclmem|malloc>      where buffers come from (ncclmem)
    --limits                        probe the machine first; adds each row's fraction of the bound
    --plot <file.svg>               draw time and bus bandwidth against size
    --csv <file>                    raw rows as CSV
  Environment: NCCL_TESTS_DEVICE, NCCL_TESTS_SPLIT, NCCL_TESTS_SPLIT_MASK, NCCL_TESTS_MIN_BW,
    NCCL_TESTS_ALLTOALLV_MATRIX_FILE, NCCL_TESTS_ALLTOALLV_MATRIX_SCALE, NCCL_TESTS_ALLTOALLV_SPREAD,
    NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY
  Exit codes: 0 passed, 1 internal, 3 library error, 4 time-out, 5 not implemented, 6 invalid usage,
    7 wrong data or bandwidth below NCCL_TESTS_MIN_BW, 255 bad arguments
)",
      program);
}

}  // namespace tessera::perf
