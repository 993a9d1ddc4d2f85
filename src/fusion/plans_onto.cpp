// Sums of two ranks whose kernels add tiles where their owner has them (onto.h). Per chunk of rank d:
//
//   d      copy its part from the input to the output        once its tiles are there
//   peer   reduce the output at d: what is there + its part  once its tiles are, and d has copied
//          all-reduce: copy it to the own output             after that, while it is in the caches
//
// Kernels have done the first two, tile by tile: the steps move nothing (matrix_space.h). An order of
// chunks that the plan proves holds for their tiles a fortiori, since each waits for the opening of
// its own. A chunk has landed at d when the peer needs it no more: then d may write it again.
//
// Cost: no bytes besides the kernels'; in an all-reduce, S/2 for each rank.
#include "fusion/weaver.h"

namespace tessera {

void weave_onto_sums(Weaver& weaver) {
  for (int owner = 0; owner < weaver.ranks(); ++owner) {
    const int peer = 1 - owner;
    for (int c = weaver.chunks() - 1; c >= 0; --c) {
      const int chunk = weaver.in_matrix(owner, c), piece = weaver.in_block(owner, c);
      const Ref sum = weaver.result(owner, c);
      const int stored = weaver.counter(peer);
      StepRef store = weaver.lane(owner, owner, c).copy(piece, sum, input(owner, chunk));
      weaver.await_tiles(store, chunk);
      store.signal(peer, stored);
      StepRef add = weaver.lane(peer, owner, c).reduce(piece, {sum}, {sum, input(peer, chunk)});
      weaver.await_tiles(add, chunk);
      add.wait(stored);
      if (!weaver.returns()) {
        weaver.tell_landed(add, owner, sum.chunk);
        continue;
      }
      StepRef bring = weaver.lane(peer, owner, c).copy(piece, output(peer, chunk), sum);
      weaver.tell_landed(bring, owner, sum.chunk);
      weaver.tell_landed(bring, peer, chunk);
    }
  }
}

}  // namespace tessera
