// Prints how many times in a millisecond this processor's time stamp counter counts: the emulated guest sees the counter as it is and must
// be told.
#include <x86intrin.h>

#include <chrono>
#include <cstdio>
#include <thread>

int main() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const unsigned long long first = __rdtsc();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const unsigned long long last = __rdtsc();
  const std::chrono::duration<double, std::milli> elapsed = Clock::now() - begin;
  std::printf("%.0f\n", static_cast<double>(last - first) / elapsed.count());
}
