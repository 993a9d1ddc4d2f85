#include "plan/shape.h"

namespace tessera {

int input_blocks(Collective collective, int ranks, int root, int rank) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
    case Collective::kAllGather:
    case Collective::kGather:
      return 1;
    case Collective::kBroadcast:
      return rank == root ? 1 : 0;
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return ranks;
    case Collective::kScatter:
      return rank == root ? ranks : 0;
    case Collective::kSendRecv:
      return rank == 0 ? 1 : 0;
    case Collective::kBarrier:
      return 0;
  }
  return 0;
}

int output_blocks(Collective collective, int ranks, int root, int rank) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return 1;
    case Collective::kReduce:
      return rank == root ? 1 : 0;
    case Collective::kAllGather:
    case Collective::kAllToAll:
      return ranks;
    case Collective::kGather:
      return rank == root ? ranks : 0;
    case Collective::kSendRecv:
      return rank == 1 ? 1 : 0;
    case Collective::kBarrier:
      return 0;
  }
  return 0;
}

bool has_in_place(Collective collective, int /*ranks*/, int root, int rank) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return true;
    case Collective::kReduce:
    case Collective::kBroadcast:
    case Collective::kGather:
    case Collective::kScatter:
      return rank == root;
    case Collective::kAllToAll:
    case Collective::kSendRecv:
    case Collective::kBarrier:
      return false;
  }
  return false;
}

int in_place_shift(Collective collective, int ranks, int root, int rank) {
  if (!has_in_place(collective, ranks, root, rank)) return 0;
  switch (collective) {
    case Collective::kAllGather:
    case Collective::kGather:
      return rank;
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return -rank;
    default:
      return 0;
  }
}

int required_input_block(Collective collective, int /*ranks*/, int root, int rank, int block,
                         int from) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return 0;
    case Collective::kReduceScatter:
      return rank;
    case Collective::kBroadcast:
      return from == root ? 0 : -1;
    case Collective::kScatter:
      return from == root ? rank : -1;
    case Collective::kAllGather:
    case Collective::kGather:
      return from == block ? 0 : -1;
    case Collective::kAllToAll:
      return from == block ? rank : -1;
    case Collective::kSendRecv:
      return from == 0 ? 0 : -1;
    case Collective::kBarrier:
      return -1;
  }
  return -1;
}

}  // namespace tessera
