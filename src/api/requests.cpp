#include "api/requests.h"

#include <cstdint>

#include "api/errors.h"
#include "plan/shape.h"

namespace tessera::api {
namespace {

// What stands before every text about an argument. Built on the error path only.
std::string where(const Request& request, const CommState& state) {
  return fmt::format("{} on {}", request.function, state.label());
}

Status bad(const Request& request, const CommState& state, std::string_view what) {
  return fail(Code::kInvalidArgument, "{}: {}", where(request, state), what);
}

Status check_root(const Request& request, const CommState& state, int ranks) {
  if (request.root >= 0 && request.root < ranks) return {};
  return bad(request, state,
             fmt::format("{} {} is out of range; the ranks are 0 to {}",
                         request.collective == Collective::kSendRecv ? "peer" : "root",
                         request.root, ranks - 1));
}

Status check_size(const Request& request, const CommState& state, DataType type, int ranks) {
  size_t bytes;
  if (!__builtin_mul_overflow(request.count, size_of(type) * static_cast<size_t>(ranks), &bytes))
    return {};
  return bad(request, state,
             fmt::format("count {} of {} over {} ranks is more than an address space holds",
                         request.count, to_string(type), ranks));
}

Status check_pointers(const Request& request, const CommState& state, const Call& call) {
  if (request.count == 0) return {};
  if (call.collective == Collective::kSendRecv) {
    const void* buffer = call.receives ? call.recv : call.send;
    return buffer != nullptr ? Status()
                             : bad(request, state, "the buffer is NULL, the count not 0");
  }
  const int ranks = state.comm->size();
  const int rank = state.comm->rank();
  if (call.send == nullptr && input_blocks(call.collective, ranks, call.root, rank) != 0)
    return bad(request, state, "sendbuff is NULL, the count not 0");
  if (call.recv == nullptr && output_blocks(call.collective, ranks, call.root, rank) != 0)
    return bad(request, state, "recvbuff is NULL, the count not 0");
  return {};
}

Status check_op(const Request& request, const CommState& state, Call* call) {
  if (request.op < 0) return bad(request, state, fmt::format("op {} is unknown", int{request.op}));
  if (request.op < ncclNumOps) {
    call->op = static_cast<ReduceOp>(request.op);
    return {};
  }
  Result<uint64_t> scalar = state.operations.scalar_of(request.op, call->type);
  if (!scalar.ok()) return scalar.status();
  call->op = ReduceOp::kPreMulSum;
  call->scalar = scalar.value();
  return {};
}

// Buffers that this rank does not use are dropped: their value means nothing.
void drop_unused_buffers(const CommState& state, Call* call) {
  if (call->collective == Collective::kSendRecv || !has_root(call->collective)) return;
  if (call->root == state.comm->rank()) return;
  if (call->collective == Collective::kReduce || call->collective == Collective::kGather)
    call->recv = nullptr;
  else
    call->send = nullptr;
}

Status check_phase(const CommState& state, const char* function) {
  switch (state.phase) {
    case Phase::kReady:
      return {};
    case Phase::kInitialising:
      return fail(Code::kInvalidArgument,
                  "{}: the communicator is still being initialised. Poll ncclCommGetAsyncError "
                  "until it no longer reports ncclInProgress.",
                  function);
    case Phase::kFailed:
      return state.init_error;
    case Phase::kRevoked:
      return fail(Code::kInvalidUsage,
                  "{}: {} was revoked; only ncclCommSplit, ncclCommShrink, ncclCommDestroy and "
                  "ncclCommAbort may follow",
                  function, state.label());
    case Phase::kFinalized:
      return fail(Code::kInvalidUsage,
                  "{}: {} was finalised; only ncclCommDestroy and ncclCommAbort may follow",
                  function, state.label());
  }
  return {};
}

}  // namespace

Status check_usable(const CommState& state, const char* function) {
  if (Status status = check_phase(state, function); !status.ok()) return status;
  if (state.blocking() || !state.progress.running()) return {};
  return fail(Code::kInvalidArgument,
              "{}: an earlier call on {} is still in progress. Poll ncclCommGetAsyncError until it "
              "no longer reports ncclInProgress.",
              function, state.label());
}

Result<Call> check(const Request& request, const CommState& state) {
  const int ranks = state.comm->size();
  if (request.type < 0 || request.type >= ncclNumTypes)
    return bad(request, state, fmt::format("data type {} is unknown", int{request.type}));
  Call call{.collective = request.collective,
            .receives = request.receives,
            .send = request.send,
            .recv = request.recv,
            .count = request.count,
            .type = static_cast<DataType>(request.type),
            .root = request.root};
  if (has_root(call.collective) || call.collective == Collective::kSendRecv)
    if (Status status = check_root(request, state, ranks); !status.ok()) return status;
  if (Status status = check_size(request, state, call.type, ranks); !status.ok()) return status;
  if (reduces(call.collective))
    if (Status status = check_op(request, state, &call); !status.ok()) return status;
  drop_unused_buffers(state, &call);
  if (Status status = check_pointers(request, state, call); !status.ok()) return status;
  return call;
}

}  // namespace tessera::api
