// Asynchronous host streams: calls on a stream of tsrStreamCreate enqueue and return;
// tsrStreamSynchronize waits. C++17.
//
// Each of two ranks has one stream. On it an all-gather follows an all-reduce; the thread that
// issued them is free meanwhile.
#include <nccl.h>
#include <tessera/stream.h>

#include <array>
#include <cstdio>
#include <numeric>
#include <vector>

#include "check.h"

namespace {

constexpr int kRanks = 2;
constexpr size_t kCount = 100'000;

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<double> sum = std::vector<double>(kCount);
  std::vector<double> gathered = std::vector<double>(kCount * kRanks);
};

// One thread drives both ranks: in a group their operations progress together.
void enqueue(std::array<Rank, kRanks>& ranks) {
  CHECK(ncclGroupStart());
  for (Rank& rank : ranks)
    CHECK(ncclAllReduce(rank.sum.data(), rank.sum.data(), kCount, ncclDouble, ncclSum, rank.comm,
                        rank.stream));
  CHECK(ncclGroupEnd());
  CHECK(ncclGroupStart());
  for (Rank& rank : ranks)
    CHECK(ncclAllGather(rank.sum.data(), rank.gathered.data(), kCount, ncclDouble, rank.comm,
                        rank.stream));
  CHECK(ncclGroupEnd());
}

}  // namespace

int main() {
  std::array<Rank, kRanks> ranks;
  std::array<ncclComm_t, kRanks> comms{};
  CHECK(ncclCommInitAll(comms.data(), kRanks, nullptr));
  for (int r = 0; r < kRanks; ++r) {
    ranks[r].comm = comms[r];
    std::iota(ranks[r].sum.begin(), ranks[r].sum.end(), static_cast<double>(r));
    CHECK(tsrStreamCreate(&ranks[r].stream));
  }

  enqueue(ranks);
  for (Rank& rank : ranks) CHECK(tsrStreamSynchronize(rank.stream));

  bool correct = true;
  for (const Rank& rank : ranks)
    for (size_t i = 0; i < rank.gathered.size(); ++i)
      correct &= rank.gathered[i] == 2.0 * static_cast<double>(i % kCount) + 1.0;
  for (Rank& rank : ranks) {
    CHECK(tsrStreamDestroy(rank.stream));
    CHECK(ncclCommDestroy(rank.comm));
  }
  std::printf("%d ranks, two operations each on a stream: %s\n", kRanks,
              correct ? "correct" : "WRONG");
  return correct ? 0 : 1;
}
