// The calls that move data. Each says what it is; submit() does the rest.
#include "api/errors.h"
#include "api/export.h"
#include "api/requests.h"

using tessera::Collective;
using tessera::api::entry;
using tessera::api::Request;
using tessera::api::submit;

namespace {

constexpr int kNoRoot = -1;

ncclResult_t issue(const Request& request) {
  return entry([&] { return submit(request); });
}

}  // namespace

TSR_API(ncclResult_t, AllReduce,
        (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
         ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) {
  return issue({"ncclAllReduce", Collective::kAllReduce, false, sendbuff, recvbuff, count, datatype,
                op, kNoRoot, comm, stream});
}
TSR_API(ncclResult_t, Reduce,
        (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)) {
  return issue({"ncclReduce", Collective::kReduce, false, sendbuff, recvbuff, count, datatype, op,
                root, comm, stream});
}
TSR_API(ncclResult_t, ReduceScatter,
        (const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
         ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) {
  return issue({"ncclReduceScatter", Collective::kReduceScatter, false, sendbuff, recvbuff,
                recvcount, datatype, op, kNoRoot, comm, stream});
}
TSR_API(ncclResult_t, Broadcast,
        (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream)) {
  return issue({"ncclBroadcast", Collective::kBroadcast, false, sendbuff, recvbuff, count, datatype,
                ncclSum, root, comm, stream});
}
TSR_API(ncclResult_t, Bcast,
        (void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
         cudaStream_t stream)) {
  return issue({"ncclBcast", Collective::kBroadcast, false, buff, buff, count, datatype, ncclSum,
                root, comm, stream});
}
TSR_API(ncclResult_t, AllGather,
        (const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
         ncclComm_t comm, cudaStream_t stream)) {
  return issue({"ncclAllGather", Collective::kAllGather, false, sendbuff, recvbuff, sendcount,
                datatype, ncclSum, kNoRoot, comm, stream});
}
TSR_API(ncclResult_t, AlltoAll,
        (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
         ncclComm_t comm, cudaStream_t stream)) {
  return issue({"ncclAlltoAll", Collective::kAllToAll, false, sendbuff, recvbuff, count, datatype,
                ncclSum, kNoRoot, comm, stream});
}
TSR_API(ncclResult_t, Gather,
        (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream)) {
  return issue({"ncclGather", Collective::kGather, false, sendbuff, recvbuff, count, datatype,
                ncclSum, root, comm, stream});
}
TSR_API(ncclResult_t, Scatter,
        (const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
         ncclComm_t comm, cudaStream_t stream)) {
  return issue({"ncclScatter", Collective::kScatter, false, sendbuff, recvbuff, count, datatype,
                ncclSum, root, comm, stream});
}
TSR_API(ncclResult_t, Send,
        (const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
         cudaStream_t stream)) {
  return issue({"ncclSend", Collective::kSendRecv, false, sendbuff, nullptr, count, datatype,
                ncclSum, peer, comm, stream});
}
TSR_API(ncclResult_t, Recv,
        (void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
         cudaStream_t stream)) {
  return issue({"ncclRecv", Collective::kSendRecv, true, nullptr, recvbuff, count, datatype,
                ncclSum, peer, comm, stream});
}
