// One NCCL call that moves data, as the user wrote it, and its way to a Call of the communicator.
#pragma once

#include <nccl.h>

#include "api/comm_state.h"
#include "comm/communicator.h"

namespace tessera::api {

struct Request {
  const char* function;  // "ncclAllReduce"
  Collective collective;
  bool receives;  // kSendRecv only
  const void* send;
  void* recv;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;  // or the peer
  ncclComm_t comm;
  cudaStream_t stream;
};

// Whether new operations may start: initialised, not finalised or revoked, nothing in progress.
// Under the call lock.
Status check_usable(const CommState& state, const char* function);

// Checks every argument, also for a count of zero, and translates. Under the call lock.
Result<Call> check(const Request& request, const CommState& state);

// A count of zero moves nothing; only sends and receives still have to meet.
inline bool moves_nothing(const Call& call) {
  return call.count == 0 && call.collective != Collective::kSendRecv;
}

inline bool to_itself(const Call& call, const CommState& state) {
  return call.collective == Collective::kSendRecv && call.root == state.comm->rank();
}

// Runs, enqueues or collects the call, as group and stream say.
Status submit(const Request& request);

}  // namespace tessera::api
