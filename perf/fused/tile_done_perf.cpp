// What a report of a tile costs: nanoseconds per tsrTileDone on one thread, before the launch (the
// tracker alone) and during it (with looks at the plan), and on several threads that report tiles of
// one operator in turn.
//
//   tile_done_perf [threads]      default 2
//
// Figures are the best of several launches; tiles are not made, only reported.
#include <tessera/fused.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace {

constexpr int kLaunches = 15;

void check(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s\n", ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::exit(1);
}

using Clock = std::chrono::steady_clock;

// Every `step`-th tile from the `first`.
void report(const tsrTiles& tiles, int64_t first, int64_t step) {
  for (int64_t i = first; i < tsrTileCount(&tiles); i += step) {
    int32_t row = 0, col = 0;
    tsrTileOrder(&tiles, i, &row, &col);
    check(tsrTileDone(&tiles, row, col));
  }
}

double ns_per_tile(const tsrTiles& tiles, int threads) {
  std::barrier meet(threads);
  std::vector<Clock::time_point> starts(threads), ends(threads);
  std::vector<std::thread> reporters;
  for (int t = 0; t < threads; ++t) {
    reporters.emplace_back([&, t] {
      meet.arrive_and_wait();
      starts[t] = Clock::now();
      report(tiles, t, threads);
      ends[t] = Clock::now();
    });
  }
  for (std::thread& thread : reporters) thread.join();
  const auto time =
      *std::max_element(ends.begin(), ends.end()) - *std::min_element(starts.begin(), starts.end());
  return std::chrono::duration<double, std::nano>(time).count() /
         static_cast<double>(tsrTileCount(&tiles));
}

void measure(ncclComm_t comm, int threads, bool straddling, bool launched) {
  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER;
  config.type = ncclInt8;
  config.rows = config.cols = 4096;
  config.tile_rows = straddling ? 24 : 32;
  config.tile_cols = 32;
  tsrFused_t op = nullptr;
  check(tsrFusedCreate(&config, comm, &op));
  check(tsrFusedSetBudget(op, launched ? 5 : 50, 16));
  std::vector<char> input(4096 * 4096), output(input.size());
  tsrTiles tiles;
  check(tsrFusedInput(op, input.data(), &tiles));
  double best = 1e9;
  for (int launch = 0; launch < kLaunches; ++launch) {
    if (launched) check(tsrFusedLaunch(op, input.data(), output.data(), nullptr));
    best = std::min(best, ns_per_tile(tiles, threads));
    if (!launched) check(tsrFusedLaunch(op, input.data(), output.data(), nullptr));
    check(tsrFusedWait(op));
  }
  std::printf("%d thread(s), %s tiles, %s: %.1f ns per tile\n", threads,
              straddling ? "straddling" : "aligned", launched ? "launched" : "before the launch",
              best);
  check(tsrFusedDestroy(op));
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  ncclComm_t comm = nullptr;
  check(ncclCommInitAll(&comm, 1, nullptr));
  for (const bool launched : {false, true}) {
    for (const bool straddling : {false, true}) {
      measure(comm, 1, straddling, launched);
      if (threads > 1) measure(comm, threads, straddling, launched);
    }
  }
  check(ncclCommDestroy(comm));
  return 0;
}
