#include "tools/tune_tool/busy.h"

#include <chrono>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include "command_line/print.h"

namespace tessera::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook(200);
constexpr std::chrono::microseconds kGap(50);  // shorter ones are the kernel's own
constexpr double kTooMuch = 0.05;

double lost() {
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  Clock::duration gaps{};
  while (last - start < kLook) {
    const Clock::time_point now = Clock::now();
    if (now - last > kGap) gaps += now - last;
    last = now;
  }
  return static_cast<double>(gaps.count()) / static_cast<double>((last - start).count());
}

}  // namespace

double disturbance(int cores) {
  std::vector<double> shares(static_cast<size_t>(cores));
  std::vector<std::thread> threads;
  try {
    for (double& share : shares) threads.emplace_back([&share] { share = lost(); });
  } catch (const std::system_error&) {  // no more threads may be started: those that were tell
  }
  for (std::thread& thread : threads) thread.join();
  return std::accumulate(shares.begin(), shares.end(), 0.0) / cores;
}

void warn_if_disturbed(int cores) {
  const double share = disturbance(cores);
  if (share < kTooMuch) return;
  command_line::print(stderr,
                      "tessera-tune: warning: this machine is busy: other work takes {:.0f} % of "
                      "its {} cores' time, so times will mislead\n",
                      100 * share, cores);
}

}  // namespace tessera::tune
