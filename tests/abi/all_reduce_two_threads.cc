// A program that knows nothing but NCCL's header: two ranks, two threads, one sum. It is built
// against the toolkit's own nccl.h, too, and calls nothing of the CUDA run time.
#include <nccl.h>

#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kRanks = 2;
constexpr size_t kCount = 1000;

bool rank_sums(ncclUniqueId id, int rank) {
  ncclComm_t comm = nullptr;
  if (ncclCommInitRank(&comm, kRanks, id, rank) != ncclSuccess) return false;
  std::vector<float> data(kCount);
  for (size_t i = 0; i < kCount; ++i)
    data[i] = static_cast<float>(i) * static_cast<float>(rank + 1);
  bool good = ncclAllReduce(data.data(), data.data(), kCount, ncclFloat32, ncclSum, comm,
                            static_cast<cudaStream_t>(nullptr)) == ncclSuccess;
  for (size_t i = 0; i < kCount; ++i) good = good && data[i] == 3 * static_cast<float>(i);
  return ncclCommDestroy(comm) == ncclSuccess && good;
}

}  // namespace

int main() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess || version != NCCL_VERSION_CODE) {
    std::printf("the library is version %d, the header %d\n", version, NCCL_VERSION_CODE);
    return 1;
  }
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) {
    std::printf("%s\n", ncclGetLastError(nullptr));
    return 1;
  }
  bool good[kRanks] = {};
  std::thread other([&] { good[1] = rank_sums(id, 1); });
  good[0] = rank_sums(id, 0);
  other.join();
  if (good[0] && good[1]) return 0;
  std::printf("rank 0 %d, rank 1 %d: %s\n", good[0], good[1], ncclGetLastError(nullptr));
  return 1;
}
