// How an entry point gets its two names: pncclX is the function, ncclX a weak alias that a profiler
// may replace.
//   TSR_API(ncclResult_t, GetVersion, (int* version)) { ... }
#pragma once

#define TSR_VISIBLE __attribute__((visibility("default")))

#define TSR_API(result, name, parameters)                                                          \
  extern "C" TSR_VISIBLE result pnccl##name parameters;                                            \
  extern "C" TSR_VISIBLE __attribute__((weak, alias("pnccl" #name))) result nccl##name parameters; \
  extern "C" result pnccl##name parameters
