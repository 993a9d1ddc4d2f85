// What distinguishes one perf program from another: counts, the call, the expected result,
// bandwidth and bounds.
//
// Each program links exactly one definition of collective(). After prepare() all members may be
// called from any thread.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/types.h"

namespace tessera::perf {

// The MPI operation that does the same work.
enum class MpiPeer {
  kAllreduce,
  kAllgather,
  kReduceScatterBlock,
  kBcast,
  kReduce,
  kAlltoall,
  kAlltoallv,
  kGather,
  kScatter,
  kSendrecv,
};

// Elements. In place, send = base + send_offset * rank and recv = base + recv_offset * rank in the
// receive buffer.
struct Counts {
  size_t send = 0;   // a rank's send buffer
  size_t recv = 0;   // a rank's receive buffer
  size_t param = 0;  // the count argument
  size_t send_offset = 0;
  size_t recv_offset = 0;
};

struct Call {
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;  // Counts::param
  const ElementType* type = nullptr;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  int rank = 0;
  int ranks = 1;
  ncclComm_t comm = nullptr;
};

// A part of the receive buffer after the call. Whatever no segment names must be unchanged.
struct Segment {
  enum Source { kReduced, kInput };  // the reduction over ranks, or the input of `rank`
  Source source = kInput;
  size_t offset = 0;  // in the receive buffer
  size_t count = 0;
  int rank = 0;
  size_t first = 0;  // index in the senders' buffers
};

// Bytes that memory must at least deliver and take for one call, over all ranks: see limits.h.
struct Traffic {
  double read = 0;
  double written = 0;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual const char* name() const = 0;  // "AllReduce"
  virtual bool reduces() const = 0;      // takes an operation
  virtual bool rooted() const = 0;
  virtual bool in_place() const { return true; }  // false: the in-place call is timed, not checked
  virtual bool runs_on(int /*ranks*/) const { return true; }
  virtual MpiPeer mpi_peer() const = 0;

  virtual Counts counts(size_t count, size_t type_size, int ranks) const = 0;
  virtual std::vector<Segment> expected(const Counts& counts, size_t type_size, int rank, int ranks,
                                        int root) const = 0;
  virtual double bus_factor(int ranks) const = 0;
  // Bytes that algbw divides by the time.
  virtual double base_bytes(const Counts& counts, size_t type_size, int ranks) const = 0;
  virtual Traffic traffic(const Counts& counts, size_t type_size, int ranks) const = 0;

  // Issues one step of the call on stream 0. Every rank finishes a step before any begins the next.
  virtual ncclResult_t run(const Call& call, int step) const = 0;
  virtual int steps(int /*ranks*/) const { return 1; }

  // kAlltoallv only: elements that `from` sends to `to`, for a call with `param`.
  virtual size_t pair_count(size_t param, size_t /*type_size*/, int /*from*/, int /*to*/,
                            int /*ranks*/) const {
    return param;
  }
  // Once, before all other members and before threads start. Returns why the options do not fit;
  // empty: they do.
  virtual std::string prepare(const Options& /*options*/, int /*ranks*/) { return {}; }
  // Notes for the reporting process to print before the table; whole lines.
  virtual std::string notes(int /*ranks*/) const { return {}; }
};

Collective& collective();

// Elements per rank when `count` elements are dealt to `ranks`: a multiple of 16 bytes.
inline size_t dealt(size_t count, size_t type_size, int ranks) {
  return count / static_cast<size_t>(ranks) & ~(16 / type_size - 1);
}

inline const void* at(const void* base, size_t element, size_t type_size) {
  return static_cast<const std::byte*>(base) + element * type_size;
}
inline void* at(void* base, size_t element, size_t type_size) {
  return static_cast<std::byte*>(base) + element * type_size;
}

}  // namespace tessera::perf
