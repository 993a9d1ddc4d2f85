#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "sync/barrier.h"
#include "sync/biased_mutex.h"
#include "sync/counter.h"
#include "sync/flag.h"
#include "sync/log_ring.h"
#include "sync/once_record.h"
#include "sync/slot.h"

namespace tessera {
namespace {

constexpr auto kTooLong = std::chrono::seconds(10);

// Waits as the library does, without spinning: every wait goes through the doorbell. False if a
// wake-up was lost.
bool await(const Counter& counter, uint64_t target, Doorbell& doorbell) {
  const auto start = std::chrono::steady_clock::now();
  while (!counter.reached(target)) {
    const Sleeper sleeper{&doorbell, doorbell.prepare()};
    if (!counter.reached(target)) sleep_any(&sleeper, 1, kTooLong);
    doorbell.cancel();
  }
  return std::chrono::steady_clock::now() - start < kTooLong;
}

TEST(Counter, WhatWasWrittenBeforeAPublishIsSeenAfterTheWait) {
  PaddedCounter there, back;
  Doorbell at_there, at_back;
  std::vector<int> data(1);
  constexpr int kRounds = 20'000;
  std::thread other([&] {
    for (int i = 1; i <= kRounds; ++i) {
      await(there.counter, i, at_there);
      ASSERT_EQ(data[0], i);
      data[0] = -i;
      back.counter.publish(1);
      at_back.ring();
    }
  });
  for (int i = 1; i <= kRounds; ++i) {
    data[0] = i;
    there.counter.publish(1);
    at_there.ring();
    await(back.counter, i, at_back);
    ASSERT_EQ(data[0], -i);
  }
  other.join();
}

TEST(Doorbell, NoWakeUpIsLostBetweenProcesses) {
  struct Shared {
    PaddedCounter there, back;
    Doorbell at_there, at_back;
  };
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared;
  constexpr uint64_t kRounds = 20000;
  const pid_t child = fork();
  register_for_barriers();
  // publish_value(): a plain store, which nothing but the sleeper's barrier keeps before ring()'s
  // look
  if (child == 0) {
    bool lost = false;
    for (uint64_t i = 1; i <= kRounds && !lost; ++i) {
      lost = !await(shared->there.counter, i, shared->at_there);
      shared->back.counter.publish_value(i);
      shared->at_back.ring();
    }
    _exit(lost ? 1 : 0);
  }
  for (uint64_t i = 1; i <= kRounds; ++i) {
    shared->there.counter.publish_value(i);
    shared->at_there.ring();
    ASSERT_TRUE(await(shared->back.counter, i, shared->at_back)) << "round " << i;
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  munmap(memory, sizeof(Shared));
}

TEST(Doorbell, ASleeperOnSeveralWakesForAnyOfThem) {
  constexpr int kDoorbells = 5;
  Doorbell doorbells[kDoorbells];
  PaddedCounter counters[kDoorbells];
  PaddedCounter seen;
  Doorbell at_seen;
  std::thread waiter([&] {
    for (int i = 0; i < 200; ++i) {
      Counter& counter = counters[i % kDoorbells].counter;
      const uint64_t target = i / kDoorbells + 1;
      while (!counter.reached(target)) {
        Sleeper sleepers[kDoorbells];
        for (int d = 0; d < kDoorbells; ++d) sleepers[d] = {&doorbells[d], doorbells[d].prepare()};
        if (!counter.reached(target)) sleep_any(sleepers, kDoorbells, std::chrono::seconds(10));
        for (Doorbell& doorbell : doorbells) doorbell.cancel();
      }
      seen.counter.publish(1);
      at_seen.ring();
    }
  });
  for (int i = 0; i < 200; ++i) {
    counters[i % kDoorbells].counter.publish(1);
    doorbells[i % kDoorbells].ring();
    await(seen.counter, i + 1, at_seen);
  }
  waiter.join();
}

TEST(OnceRecord, TheFirstWriterWinsAndEverybodyReadsItsValue) {
  for (int round = 0; round < 200; ++round) {
    OnceRecord<std::array<int, 8>> record{};
    std::vector<std::thread> threads;
    std::atomic<int> wins{0};
    for (int t = 1; t <= 4; ++t) {
      threads.emplace_back([&, t] {
        std::array<int, 8> mine;
        mine.fill(t);
        if (record.set(mine)) ++wins;
        while (record.get() == nullptr) yield();
        const auto& got = *record.get();
        for (const int word : got) EXPECT_EQ(word, got[0]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wins, 1);
  }
}

TEST(LogRing, AReaderGetsARecordWholeOrNotAtAll) {
  struct Record {
    uint64_t words[4];
  };
  LogRing<Record, 4> ring{};
  Flag stop;
  std::thread writer([&] {
    for (uint64_t n = 1; n < 200'000; ++n) ring.write(n, {{n, n * 3, n * 5, n * 7}});
    stop.raise();
  });
  uint64_t reads = 0;
  while (!stop.raised()) {
    const uint64_t last = ring.last();
    if (const auto record = ring.read(last)) {
      ASSERT_EQ(record->words[0], last);
      ASSERT_EQ(record->words[1], last * 3);
      ASSERT_EQ(record->words[3], last * 7);
      ++reads;
    }
  }
  writer.join();
  EXPECT_EQ(ring.last(), 199'999U);
  EXPECT_TRUE(ring.read(199'999).has_value());
  EXPECT_FALSE(ring.read(199'995).has_value());  // overwritten
  EXPECT_FALSE(ring.read(200'000).has_value());  // not yet there
  (void)reads;
}

// One thread locks often and gets the bias; at a random moment others come in, once the owner is
// used to being alone. A lost exclusion shows in the sum, a lost wake-up as a test that hangs.
TEST(BiasedMutex, AtMostOneThreadIsInsideWhileOthersTakeTheBiasAway) {
  for (int round = 0; round < 300; ++round) {
    register_for_barriers();
    BiasedMutex mutex;
    uint64_t sum = 0;  // plain: guarded by the mutex
    Flag others_done;
    uint64_t own = 0;
    std::thread owner([&] {
      while (!others_done.raised() || own < 100) {
        const std::lock_guard lock(mutex);
        sum += 1;
        ++own;
      }
    });
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i) {
      others.emplace_back([&, i] {
        for (int spin = 0; spin < (round * 37 + i * 11) % 500; ++spin) pause();
        for (int n = 0; n < 50; ++n) {
          const std::lock_guard lock(mutex);
          sum += 1;
        }
      });
    }
    for (std::thread& thread : others) thread.join();
    others_done.raise();
    owner.join();
    ASSERT_EQ(sum, own + 150) << "round " << round;
  }
}

TEST(BiasedMutex, WhoTakesTheBiasAwayWaitsForAnOwnerWhoStaysInside) {
  register_for_barriers();
  BiasedMutex mutex;
  for (int i = 0; i < 100; ++i) {
    mutex.lock();
    mutex.unlock();
  }
  mutex.lock();
  bool inside = true, met = false;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    met = inside;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  inside = false;
  mutex.unlock();
  other.join();
  EXPECT_FALSE(met);
}

TEST(Slot, SmallDataLiesInTheHeadersLineAndLargeDataBehindIt) {
  alignas(64) std::byte memory[256];
  auto* slot = reinterpret_cast<SlotHeader*>(memory);
  EXPECT_EQ(slot_data(slot, 1), memory + 16);
  EXPECT_EQ(slot_data(slot, 48), memory + 16);
  EXPECT_EQ(slot_data(slot, 49), memory + 64);
}

}  // namespace
}  // namespace tessera
