#include <mpi.h>

#include <climits>
#include <vector>

#include "common/baseline.h"
#include "common/outcome.h"

namespace tessera::perf {
namespace {

// MPI_DATATYPE_NULL: MPI has no such type.
MPI_Datatype mpi_type(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return MPI_INT8_T;
    case ncclUint8:
      return MPI_UINT8_T;
    case ncclInt32:
      return MPI_INT32_T;
    case ncclUint32:
      return MPI_UINT32_T;
    case ncclInt64:
      return MPI_INT64_T;
    case ncclUint64:
      return MPI_UINT64_T;
    case ncclFloat32:
      return MPI_FLOAT;
    case ncclFloat64:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op mpi_op(OpKind kind) {
  switch (kind) {
    case OpKind::kSum:
      return MPI_SUM;
    case OpKind::kProd:
      return MPI_PROD;
    case OpKind::kMin:
      return MPI_MIN;
    case OpKind::kMax:
      return MPI_MAX;
    default:
      return MPI_OP_NULL;
  }
}

class MpiBaseline final : public Baseline {
 public:
  MpiBaseline(MPI_Comm comm, const Collective& collective) : comm_(comm), collective_(collective) {}

  bool supports(const Call& call, const Operation* op, bool in_place) const override {
    // In place MPI_Alltoallv demands equal counts in both directions of a pair.
    if (in_place && collective_.mpi_peer() == MpiPeer::kAlltoallv) return false;
    return mpi_type(call.type->nccl) != MPI_DATATYPE_NULL &&
           (op == nullptr || mpi_op(op->kind) != MPI_OP_NULL) && call.count <= INT_MAX;
  }

  void run(const Call& c, const Operation* op, bool in_place) override {
    const MPI_Datatype type = mpi_type(c.type->nccl);
    const auto n = static_cast<int>(c.count);
    const MPI_Op reduction = op == nullptr ? MPI_OP_NULL : mpi_op(op->kind);
    const void* send = in_place ? MPI_IN_PLACE : c.send;
    const bool at_root = c.rank == c.root;
    int result = MPI_SUCCESS;
    switch (collective_.mpi_peer()) {
      case MpiPeer::kAllreduce:
        result = MPI_Allreduce(send, c.recv, n, type, reduction, comm_);
        break;
      case MpiPeer::kAllgather:
        result = MPI_Allgather(send, n, type, c.recv, n, type, comm_);
        break;
      case MpiPeer::kReduceScatterBlock:
        // MPI's in-place result lies at the start of the send buffer, not at the rank's block.
        result = in_place ? MPI_Reduce_scatter_block(MPI_IN_PLACE, const_cast<void*>(c.send), n,
                                                     type, reduction, comm_)
                          : MPI_Reduce_scatter_block(c.send, c.recv, n, type, reduction, comm_);
        break;
      case MpiPeer::kBcast:
        // MPI broadcasts in place only; the root's own buffer is the source either way.
        result = MPI_Bcast(at_root ? const_cast<void*>(c.send) : c.recv, n, type, c.root, comm_);
        break;
      case MpiPeer::kReduce:
        result = MPI_Reduce(in_place && at_root ? MPI_IN_PLACE : c.send, c.recv, n, type, reduction,
                            c.root, comm_);
        break;
      case MpiPeer::kGather:
        result = MPI_Gather(in_place && at_root ? MPI_IN_PLACE : c.send, n, type, c.recv, n, type,
                            c.root, comm_);
        break;
      case MpiPeer::kScatter:
        result = MPI_Scatter(c.send, n, type, in_place && at_root ? MPI_IN_PLACE : c.recv, n, type,
                             c.root, comm_);
        break;
      case MpiPeer::kAlltoall:
        result = MPI_Alltoall(send, n, type, c.recv, n, type, comm_);
        break;
      case MpiPeer::kAlltoallv:
        result = all_to_all_v(c, type);
        break;
      case MpiPeer::kSendrecv:
        result = send_receive(c, in_place, type);
        break;
    }
    if (result != MPI_SUCCESS) fail(kInternalError, "the MPI baseline returned an error");
  }

 private:
  int all_to_all_v(const Call& c, MPI_Datatype type) {
    const auto ranks = static_cast<size_t>(c.ranks);
    if (laid_out_for_ != key(c)) lay_out(c);
    const int* counts = layout_.data();
    return MPI_Alltoallv(c.send, counts, counts + ranks, type, c.recv, counts + 2 * ranks,
                         counts + 3 * ranks, type, comm_);
  }

  static size_t key(const Call& c) { return c.count * 16 + c.type->size; }

  // Send counts, send displacements, receive counts, receive displacements.
  void lay_out(const Call& c) {
    const auto ranks = static_cast<size_t>(c.ranks);
    layout_.assign(4 * ranks, 0);
    int sent = 0, received = 0;
    for (size_t peer = 0; peer < ranks; ++peer) {
      const int p = static_cast<int>(peer);
      layout_[peer] =
          static_cast<int>(collective_.pair_count(c.count, c.type->size, c.rank, p, c.ranks));
      layout_[ranks + peer] = sent;
      layout_[2 * ranks + peer] =
          static_cast<int>(collective_.pair_count(c.count, c.type->size, p, c.rank, c.ranks));
      layout_[3 * ranks + peer] = received;
      sent += layout_[peer];
      received += layout_[2 * ranks + peer];
    }
    laid_out_for_ = key(c);
  }

  int send_receive(const Call& c, bool in_place, MPI_Datatype type) {
    const auto n = static_cast<int>(c.count);
    const int to = (c.rank + 1) % c.ranks;
    const int from = (c.rank + c.ranks - 1) % c.ranks;
    if (in_place) {
      return MPI_Sendrecv_replace(c.recv, n, type, to, 0, from, 0, comm_, MPI_STATUS_IGNORE);
    }
    return MPI_Sendrecv(c.send, n, type, to, 0, c.recv, n, type, from, 0, comm_, MPI_STATUS_IGNORE);
  }

  MPI_Comm comm_;
  const Collective& collective_;
  std::vector<int> layout_;
  size_t laid_out_for_ = ~size_t{0};
};

}  // namespace

std::unique_ptr<Baseline> make_baseline(const World& world, const Collective& collective) {
  const void* comm = world.mpi_communicator();
  if (comm == nullptr) return nullptr;
  return std::make_unique<MpiBaseline>(*static_cast<const MPI_Comm*>(comm), collective);
}

}  // namespace tessera::perf
