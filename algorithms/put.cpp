// Puts: data goes from the owner's input straight into peers' outputs, without scratch; nobody reads
// what is a peer's. For peers that can be written but not read: behind a port, on another host.
//
//      all-gather, 3 ranks      rank r   input --> output block r of 0, 1, 2
//      all-to-all               rank r   input block s --> output block r of s
//      broadcast, scatter       root     input (block s) --> output of s
//      gather                   rank r   input --> output block r of root
//
// A rank writes into a peer's output after the peer has entered, and leaves when all that is written
// into its own has come.
//
// Cost: all-gather, all-to-all  2 alpha + (n-1)/n S beta     send/recv  2 alpha + S beta
//       broadcast  2 alpha + (n-1) S beta                    gather, scatter  2 alpha + (n-1)/n S beta
#include <utility>
#include <vector>

#include "algorithms/families.h"
#include "algorithms/visits.h"

namespace tessera {
namespace {

constexpr const char* kPutName = "put";

// One block from a rank's input into somebody's output.
struct Move {
  int rank;
  Ref dst, src;
};

// The moves of a rank are made in the order given.
Plan plan_of(Collective collective, const AlgorithmParams& params, const std::vector<Move>& moves) {
  const int n = params.ranks;
  if (n == 1) return alone(kPutName, collective, params);
  PlanBuilder plan(kPutName, collective, n, params.root, 1, 1);
  Visits visits(plan, n);
  for (const Move& move : moves) {
    if (move.dst.rank != move.rank) visits.allow(move.rank, move.dst.rank);
  }
  visits.enter();
  for (const Move& move : moves) {
    StepRef step = plan.lane(move.rank).copy(0, move.dst, move.src);
    if (move.dst.rank == move.rank) continue;
    visits.begin(step, move.rank, move.dst.rank);
    visits.end(step, move.rank, move.dst.rank);
  }
  visits.leave();
  return std::move(plan).build();
}

// Every rank starts with its neighbour, so that no rank gets all puts at once, and ends with itself:
// nobody waits for that.
template <class MoveOf>
std::vector<Move> all_pairs(int n, const MoveOf& move_of) {
  std::vector<Move> moves;
  for (int rank = 0; rank < n; ++rank) {
    for (int s = 1; s <= n; ++s) moves.push_back(move_of(rank, (rank + s) % n));
  }
  return moves;
}

// The same between the root and each rank.
template <class MoveOf>
std::vector<Move> all_with_root(const AlgorithmParams& params, const MoveOf& move_of) {
  std::vector<Move> moves;
  for (int s = 1; s <= params.ranks; ++s)
    moves.push_back(move_of((params.root + s) % params.ranks));
  return moves;
}

}  // namespace

Plan put_all_gather(const AlgorithmParams& params) {
  return plan_of(Collective::kAllGather, params, all_pairs(params.ranks, [](int rank, int to) {
                   return Move{rank, output(to, rank), input(rank, 0)};
                 }));
}

Plan put_all_to_all(const AlgorithmParams& params) {
  return plan_of(Collective::kAllToAll, params, all_pairs(params.ranks, [](int rank, int to) {
                   return Move{rank, output(to, rank), input(rank, to)};
                 }));
}

Plan put_broadcast(const AlgorithmParams& params) {
  const int root = params.root;
  return plan_of(Collective::kBroadcast, params, all_with_root(params, [&](int to) {
                   return Move{root, output(to, 0), input(root, 0)};
                 }));
}

Plan put_scatter(const AlgorithmParams& params) {
  const int root = params.root;
  return plan_of(Collective::kScatter, params, all_with_root(params, [&](int to) {
                   return Move{root, output(to, 0), input(root, to)};
                 }));
}

Plan put_gather(const AlgorithmParams& params) {
  const int root = params.root;
  return plan_of(Collective::kGather, params, all_with_root(params, [&](int from) {
                   return Move{from, output(root, from), input(from, 0)};
                 }));
}

Plan put_send_recv(const AlgorithmParams& params) {
  return plan_of(Collective::kSendRecv, params, {{0, output(1, 0), input(0, 0)}});
}

}  // namespace tessera
