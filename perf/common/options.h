// The command line: nccl-tests' grammar, and what tessera adds to it (long options only).
#pragma once

#include <string>
#include <vector>

#include "common/types.h"

namespace tessera::perf {

enum class BufferKind { kNcclMem, kMalloc };

struct Options {
  int threads = 1;
  int gpus = 1;  // ranks driven by one thread
  size_t min_bytes = 32 << 20;
  size_t max_bytes = 32 << 20;
  size_t step_bytes = 1 << 20;
  size_t step_factor = 1;  // > 1: sizes are multiplied, step_bytes unused
  int iterations = 20;
  int aggregate = 1;
  int warmup = 1;
  int cycles = 1;  // 0: for ever
  bool parallel_init = false;
  int check = 1;  // check iterations per point; 0: none
  std::vector<const Operation*> ops;
  std::vector<const ElementType*> types;
  int root = 0;  // -1: every root
  int blocking = 0;
  bool stream_null = false;
  int timeout_s = 0;  // 0: off
  int graph = 0;
  bool cpu_time = false;
  bool timestamps = false;
  std::string json;
  int average = 1;         // 0 rank 0, 1 average, 2 minimum, 3 maximum
  int local_register = 0;  // 1 ncclCommRegister, 2 symmetric windows
  int cta_policy = -1;     // -1: leave the default
  int device_implementation = 0;
  int device_ctas = 16;
  bool memory_report = false;
  int unalign = 0;  // index of the first element in its buffer
  bool per_iteration = false;
  int skip_samples = 0;

  BufferKind buffers = BufferKind::kNcclMem;
  bool baseline_mpi = false;
  bool adaptive = false;  // iteration counts by time; implied by baseline_mpi
  bool limits = false;
  std::string plot;
  std::string csv;

  // Sizes of the sweep, in order.
  std::vector<size_t> sizes() const;
};

struct Parsed {
  Options options;
  int exit_code = -1;  // >= 0: end the program with it, after printing `text`
  std::string text;    // help, or why the arguments were refused
};

Parsed parse_options(int argc, char** argv);
std::string help_text(const char* program);

// "8", "64K", "1.5M": binary suffixes; false for anything else.
bool parse_size(const std::string& text, size_t* bytes);

}  // namespace tessera::perf
