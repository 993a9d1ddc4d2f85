/* Ranks as threads of this process; threads_all_reduce.c shows how they are started. */
#ifndef EXAMPLES_RANKS_H_
#define EXAMPLES_RANKS_H_

#include <pthread.h>

#include "check.h"

enum { kMaxRanks = 16 };

typedef struct {
  ncclComm_t comm;
  int rank, ranks;
  int wrong; /* elements that differ from what they should be */
} Worker;

/* Runs `work` with a Worker of each rank. Returns how many elements were wrong. */
static inline int run_ranks(int ranks, void* (*work)(void*)) {
  ncclComm_t comms[kMaxRanks];
  CHECK(ncclCommInitAll(comms, ranks, NULL));
  pthread_t threads[kMaxRanks];
  Worker workers[kMaxRanks];
  for (int r = 0; r < ranks; ++r) {
    workers[r] = (Worker){.comm = comms[r], .rank = r, .ranks = ranks, .wrong = 0};
    if (pthread_create(&threads[r], NULL, work, &workers[r]) != 0) exit(1);
  }
  int wrong = 0;
  for (int r = 0; r < ranks; ++r) {
    pthread_join(threads[r], NULL);
    wrong += workers[r].wrong;
  }
  for (int r = 0; r < ranks; ++r) CHECK(ncclCommDestroy(comms[r]));
  return wrong;
}

#endif /* EXAMPLES_RANKS_H_ */
