/* What needs libtessera_gemm: makes and ends the products of one rank. */
#include <nccl.h>
#include <stddef.h>
#include <tessera/gemm.h>

int main(void) {
  ncclComm_t comm;
  tsrGemm_t gemm;
  if (ncclCommInitAll(&comm, 1, NULL) != ncclSuccess) return 1;
  if (tsrGemmCreate(comm, 1, &gemm) != ncclSuccess) return 2;
  if (tsrGemmDestroy(gemm) != ncclSuccess) return 3;
  return ncclCommDestroy(comm) == ncclSuccess ? 0 : 4;
}
