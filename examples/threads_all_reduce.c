/* All-reduce among threads of one process: every thread is a rank with plain host memory. C99.
 *
 *   threads_all_reduce [ranks]      default 4 */
#include <pthread.h>

#include "check.h"

enum { kCount = 1000003, kMaxRanks = 64 };

typedef struct {
  ncclComm_t comm;
  int rank;
  int ranks;
  int wrong; /* elements that differ from what they should be */
} Worker;

static void* work(void* argument) {
  Worker* worker = argument;
  float* data = malloc(kCount * sizeof *data);
  if (data == NULL) exit(1);
  for (size_t i = 0; i < kCount; ++i) data[i] = (float)(worker->rank + (int)(i % 7));

  /* Stream NULL on a host rank: the sum is there when the call returns. */
  CHECK(ncclAllReduce(data, data, kCount, ncclFloat, ncclSum, worker->comm, NULL));

  const int sum_of_ranks = worker->ranks * (worker->ranks - 1) / 2;
  for (size_t i = 0; i < kCount; ++i)
    worker->wrong += data[i] != (float)(sum_of_ranks + worker->ranks * (int)(i % 7));
  free(data);
  return NULL;
}

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? atoi(argv[1]) : 4;
  if (ranks < 1 || ranks > kMaxRanks) {
    fprintf(stderr, "usage: %s [ranks], 1 to %d\n", argv[0], (int)kMaxRanks);
    return 2;
  }
  ncclComm_t comms[kMaxRanks];
  CHECK(ncclCommInitAll(comms, ranks, NULL));

  pthread_t threads[kMaxRanks];
  Worker workers[kMaxRanks];
  for (int r = 0; r < ranks; ++r) {
    workers[r] = (Worker){.comm = comms[r], .rank = r, .ranks = ranks, .wrong = 0};
    if (pthread_create(&threads[r], NULL, work, &workers[r]) != 0) return 1;
  }
  int wrong = 0;
  for (int r = 0; r < ranks; ++r) {
    pthread_join(threads[r], NULL);
    wrong += workers[r].wrong;
  }
  for (int r = 0; r < ranks; ++r) CHECK(ncclCommDestroy(comms[r]));
  printf("%d threads, %d elements: %s\n", ranks, (int)kCount, wrong == 0 ? "correct" : "WRONG");
  return wrong != 0;
}
