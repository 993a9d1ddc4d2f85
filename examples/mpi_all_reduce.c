/* All-reduce among processes: MPI only launches them and hands out the unique id. C99.
 *
 *   mpirun -n 4 mpi_all_reduce */
#include <mpi.h>

#include "check.h"

enum { kCount = 1000003 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  ncclUniqueId id;
  if (rank == 0) CHECK(ncclGetUniqueId(&id));
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, ranks, id, rank));

  /* Memory that the peers can map: a registered window needs no staging copy. Any other memory
   * works too. */
  int* data = NULL;
  ncclWindow_t window = NULL;
  CHECK(ncclMemAlloc((void**)&data, kCount * sizeof *data));
  CHECK(ncclCommWindowRegister(comm, data, kCount * sizeof *data, &window, NCCL_WIN_DEFAULT));
  for (int i = 0; i < kCount; ++i) data[i] = rank + i;

  CHECK(ncclAllReduce(data, data, kCount, ncclInt, ncclSum, comm, NULL));

  long wrong = 0;
  for (int i = 0; i < kCount; ++i)
    wrong +=
        (unsigned)data[i] != (unsigned)ranks * (unsigned)i + (unsigned)(ranks * (ranks - 1) / 2);

  CHECK(ncclCommWindowDeregister(comm, window));
  CHECK(ncclMemFree(data));
  CHECK(ncclCommFinalize(comm));
  CHECK(ncclCommDestroy(comm));

  long all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d processes, %d elements: %s\n", ranks, (int)kCount,
           all_wrong == 0 ? "correct" : "WRONG");
  MPI_Finalize();
  return wrong != 0;
}
