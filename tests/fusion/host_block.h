// Threads of the host in place of a GPU's thread block (tessera/device_block.h), so that tests run
// what a GPU runs. The orders of memory are those that the block's contract names, and no more.
#pragma once

#include <tessera/tile_device.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace tessera::test {

struct HostWords {
  static uint64_t acquire(const uint64_t* word) {
    return std::atomic_ref(*const_cast<uint64_t*>(word)).load(std::memory_order_acquire);
  }
  static void add(uint64_t* word, uint64_t n) {
    std::atomic_ref(*word).fetch_add(n, std::memory_order_release);
  }
  static uint64_t add_below(uint64_t* word, uint64_t limit) {
    const std::atomic_ref atomic(*word);
    uint64_t now = atomic.load(std::memory_order_relaxed);
    do {
      if (now >= limit) return 0;
    } while (!atomic.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel,
                                           std::memory_order_relaxed));
    return now + 1;
  }
};

// What the threads of a block share.
struct BlockOfThreads {
  explicit BlockOfThreads(int threads) : threads(threads), barrier(threads) {}
  const int threads;
  std::barrier<> barrier;
  int told = 0;
};

// One thread's view of its block.
class HostBlock {
 public:
  using Words = HostWords;

  HostBlock(BlockOfThreads& shared, int thread) : shared_(shared), thread_(thread) {}

  int thread() const { return thread_; }
  int threads() const { return shared_.threads; }

  void meet() { shared_.barrier.arrive_and_wait(); }
  bool leads() const { return thread_ == 0; }
  int tell(int value) {
    if (leads()) shared_.told = value;
    meet();
    const int all = shared_.told;
    meet();
    return all;
  }
  uint64_t now_ns() const {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                 std::chrono::nanoseconds(1));
  }
  void pause() const { std::this_thread::yield(); }

 private:
  BlockOfThreads& shared_;
  int thread_;
};

// Runs `kernel(block, b)` on every thread of block b, for all blocks at once.
inline void run_blocks(int blocks, int threads,
                       const std::function<void(HostBlock&, int)>& kernel) {
  std::vector<std::unique_ptr<BlockOfThreads>> shared;
  std::vector<std::thread> running;
  for (int b = 0; b < blocks; ++b) {
    shared.push_back(std::make_unique<BlockOfThreads>(threads));
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, b, t, own = shared.back().get()] {
        HostBlock block(*own, t);
        kernel(block, b);
      });
    }
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace tessera::test
