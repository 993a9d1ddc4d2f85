// Ranks as threads, and what they run side by side: in each round every rank runs the same parts, and
// the slowest counts.
// Thread safety: run() by all ranks' threads; the rest by one thread when they do not.
#pragma once

#include <nccl.h>

#include <barrier>
#include <functional>
#include <map>
#include <vector>

namespace perf::fused {

class Rounds {
 public:
  explicit Rounds(int ranks) : meet_(ranks), ends_(static_cast<size_t>(ranks)) {}

  // Runs `parts` one after the other; the end of each, from the common start, is a sample of its way.
  struct Part {
    size_t way;
    std::function<void()> run;
  };
  void run(int rank, const std::vector<Part>& parts, bool counts);

  // The median in microseconds; 0: no sample.
  double result(size_t way) const;

 private:
  std::barrier<> meet_;
  std::vector<std::vector<double>> ends_;
  std::map<size_t, std::vector<double>> samples_;
};

// Runs body(rank) in a thread for each rank.
void in_threads(int ranks, const std::function<void(int)>& body);
// The same with one communicator among them, each rank on its host (hosts.h).
void with_communicators(int ranks, const std::vector<int>& hosts,
                        const std::function<void(ncclComm_t, int)>& body);

// Ends the program with the library's text unless the result is ncclSuccess.
void check(ncclResult_t result);
void check_gemm(ncclResult_t result);  // of tessera/gemm.h

}  // namespace perf::fused
