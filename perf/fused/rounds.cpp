#include "fused/rounds.h"

#include <tessera/gemm.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>

#include "fused/hosts.h"

namespace perf::fused {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(ncclResult_t result, const char* text) {
  std::fprintf(stderr, "%s: %s\n", ncclGetErrorString(result), text);
  std::exit(1);
}

ncclUniqueId unique_id() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  return id;
}

}  // namespace

void Rounds::run(int rank, const std::vector<Part>& parts, bool counts) {
  std::vector<double>& ends = ends_[static_cast<size_t>(rank)];
  ends.clear();
  meet_.arrive_and_wait();
  const Clock::time_point start = Clock::now();
  for (const Part& part : parts) {
    part.run();
    ends.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  meet_.arrive_and_wait();
  if (rank == 0 && counts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      double slowest = 0;
      for (const std::vector<double>& of_rank : ends_) slowest = std::max(slowest, of_rank[i]);
      samples_[parts[i].way].push_back(slowest);
    }
  }
  meet_.arrive_and_wait();
}

double Rounds::result(size_t way) const {
  const auto found = samples_.find(way);
  if (found == samples_.end()) return 0;
  std::vector<double> values = found->second;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void in_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(body, r);
  for (std::thread& thread : threads) thread.join();
}

void with_communicators(int ranks, const std::vector<int>& hosts,
                        const std::function<void(ncclComm_t, int)>& body) {
  std::promise<ncclUniqueId> first;
  const std::shared_future<ncclUniqueId> id = first.get_future().share();
  in_threads(ranks, [&](int rank) {
    enter_host(hosts, rank, ranks);
    if (rank == 0) first.set_value(unique_id());
    ncclComm_t comm = nullptr;
    check(ncclCommInitRank(&comm, ranks, id.get(), rank));
    body(comm, rank);
    check(ncclCommDestroy(comm));
  });
}

void check(ncclResult_t result) {
  if (result != ncclSuccess) give_up(result, ncclGetLastError(nullptr));
}

void check_gemm(ncclResult_t result) {
  if (result != ncclSuccess) give_up(result, tsrGemmGetLastError());
}

}  // namespace perf::fused
