// The tables of functions that tuner plugins of NCCL export, versions 2 to 6, as C structures.
//
//   symbol                  structure  says what it wants by
//   ncclTunerPlugin_v2      TunerV2    algorithm and protocol, by number
//   ncclTunerPlugin_v3      TunerV3    a table of costs that it may change
//   ncclTunerPlugin_v4      TunerV4    the same, and is told whether buffers are registered
//   ncclTunerPlugin_v5      TunerV5    the same, and is told of communicator and NVLink domains
//   ncclTunerPlugin_v6      TunerV6    the same, and may choose the size of chunks
//
// Names are this library's; order and types of the members are NCCL's and must stay. Enumerations
// are ints in the C ABI. Thread safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::plugin_abi {

inline constexpr int kAlgorithms = 7, kProtocols = 3;
enum Algorithm : int { kTree = 0, kRing = 1, kPat = 6 };  // those that exist here
enum Protocol : int { kLl = 0, kLl128 = 1, kSimple = 2 };
enum Function : int { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce };
inline constexpr int kFunctions = 5;
inline constexpr int kUndefined = -1;     // version 2: nothing chosen
inline constexpr float kIgnored = -1.0F;  // of a cost: nothing stands for this entry
enum LogLevel : int { kLogWarn = 2, kLogInfo = 3, kLogAbort = 4 };

using Outcome = int;  // ncclResult_t; 0 is success
// NOLINTNEXTLINE(google-runtime-int): the type is NCCL's
using Logger = void (*)(int level, unsigned long subsystems, const char* file, int line,
                        const char* format, ...);
// In truth float[algorithms][protocols], row after row.
using Table = float**;

// How many groups of ranks share NVLink, and how many ranks the smallest and the largest have.
struct NvlDomains {
  int domains, fewest_ranks, most_ranks;
};

// Constants of NCCL's own model, for versions 5 and 6: four generations of GPUs, one, two or more
// nodes, three kinds of links.
struct Constants {
  double base_latency[kAlgorithms][kProtocols];
  double link_latency[3][kAlgorithms][kProtocols];
  double ll_most[4][3];
  double ring_ll128_most[4][3];
  double tree_ll128_most[4][3];
  double tree_most[4][3];
  double nvls_tree_most[4][3];
};
static_assert(sizeof(Constants) == 144 * sizeof(double));

using InitV2 = Outcome (*)(size_t ranks, size_t nodes, Logger log, void** context);
using InitV5 = Outcome (*)(void** context, uint64_t communicator, size_t ranks, size_t nodes,
                           Logger log, NvlDomains* domains, Constants* constants);
using AskV2 = Outcome (*)(void* context, int function, size_t bytes, int collnet, int nvls,
                          int operations, int* algorithm, int* protocol, int* channels);
using AskV3 = Outcome (*)(void* context, int function, size_t bytes, int operations, Table costs,
                          int algorithms, int protocols, int* channels);
using AskV4 = Outcome (*)(void* context, int function, size_t bytes, int operations, Table costs,
                          int algorithms, int protocols, int registered, int* channels);
using ChunkV6 = Outcome (*)(void* context, int function, size_t bytes, int algorithm, int protocol,
                            int channels, size_t* chunk);
using Finalize = Outcome (*)(void* context);

struct TunerV2 {
  const char* name;
  InitV2 init;
  AskV2 ask;
  Finalize finalize;
};
struct TunerV3 {
  const char* name;
  InitV2 init;
  AskV3 ask;
  Finalize finalize;
};
struct TunerV4 {
  const char* name;
  InitV2 init;
  AskV4 ask;
  Finalize finalize;
};
struct TunerV5 {
  const char* name;
  InitV5 init;
  AskV4 ask;
  Finalize finalize;
};
struct TunerV6 {
  const char* name;
  InitV5 init;
  AskV4 ask;
  Finalize finalize;
  ChunkV6 chunk;  // may be null
};

}  // namespace tessera::plugin_abi
