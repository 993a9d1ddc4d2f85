// Engines of several ranks over one block of memory: what arrives, in which order, and never early.
#include "transports/emulated/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "emulated/support/team.h"

namespace tessera::emulated {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr double kFast = 1000;  // bytes per ns
constexpr int kMoreThanARing = 300;

PortSignal set(uint64_t position, uint64_t value) {
  return {position, value, 0, PortSignal::Kind::kSet};
}

TEST(Engine, HasAPortForEveryOtherRank) {
  Team team(uniform_links(3, 1, {}));
  EXPECT_EQ(team.engine(1).port(1), nullptr);
  EXPECT_NE(team.engine(1).port(0), nullptr);
  EXPECT_NE(team.engine(1).port(2), nullptr);
  EXPECT_EQ(team.engine(1).wait_fd(), -1);
  EXPECT_EQ(team.engine(1).due_in(), nanoseconds::max());
  EXPECT_FALSE(team.engine(1).progress());
}

TEST(Engine, BytesAreStoredAtOnceAndSignalsWait) {
  Team team(uniform_links(2, 1, seconds(3600)));
  const std::array<std::byte, 3> data{std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> there{};
  team.port(0, 1).put(0, data.data(), there.data(), data.size());
  team.port(0, 1).signal(set(64, 1));
  EXPECT_EQ(there, data);
  EXPECT_TRUE(team.engine(0).flushed());
  EXPECT_FALSE(team.engine(1).progress());
  EXPECT_THAT(team.log(1).arrivals, IsEmpty());
  EXPECT_LE(team.engine(1).due_in(), seconds(3600));
  EXPECT_GT(team.engine(1).due_in(), seconds(3000));
  EXPECT_EQ(team.log(1).located, 0);
}

TEST(Engine, ASignalKeepsAllItsParts) {
  Team team(uniform_links(2, kFast, {}));
  team.port(1, 0).signal({kUserMemory + 8, 7, 0xfeed, PortSignal::Kind::kSlot});
  ASSERT_TRUE(team.drive(0, [&] { return !team.log(0).arrivals.empty(); }));
  const Arrival& came = team.log(0).arrivals.front();
  EXPECT_EQ(came.peer, 1);
  EXPECT_EQ(came.signal.position, kUserMemory + 8);
  EXPECT_EQ(came.signal.value, 7u);
  EXPECT_EQ(came.signal.fingerprint, 0xfeedu);
  EXPECT_EQ(came.signal.kind, PortSignal::Kind::kSlot);
}

TEST(Engine, ASignalWaitsForThePutsBeforeIt) {
  Team team(uniform_links(2, 0.1, microseconds(200)));  // 100 MB/s
  std::vector<std::byte> data(100'000), there(data.size());
  const uint64_t begin = now_ns();
  team.port(0, 1).put(0, data.data(), there.data(), data.size());  // 1 ms
  team.port(0, 1).put(0, there.data(), there.data(), data.size());
  team.port(0, 1).signal(set(0, 1));
  team.port(0, 1).signal(set(0, 2));
  ASSERT_TRUE(team.drive(1, [&] { return team.log(1).arrivals.size() == 2; }));
  EXPECT_GE(team.log(1).arrivals[0].at - begin, 2'200'000u);
  EXPECT_EQ(team.log(1).arrivals[0].signal.value, 1u);
}

// Threads send each other puts of random sizes: all bytes are there when their signal comes, the
// signals of a port come in order, and none before the line could have carried it.
TEST(Engine, RandomTrafficArrivesWholeInOrderAndNotEarly) {
  constexpr int kMessages = 60;
  constexpr size_t kMost = 8192;
  constexpr double kRate = 0.2;
  constexpr auto kLatency = microseconds(30);
  for (const int n : {2, 3, 5, 8}) {
    Team team(uniform_links(n, kRate, kLatency, {1, 0.9}));
    struct Sent {
      uint64_t at = 0;
      size_t bytes = 0;
    };
    const auto pair = [n](int from, int to) { return static_cast<size_t>(from * n + to); };
    std::vector<std::vector<Sent>> sent(pair(n, 0), std::vector<Sent>(kMessages));
    std::vector<std::vector<std::byte>> memory(pair(n, 0),
                                               std::vector<std::byte>(kMost * kMessages));
    const auto content = [](int from, int to, int k, size_t i) {
      return static_cast<std::byte>(static_cast<size_t>(from * 7 + to * 31 + k * 5) + i * 13);
    };
    const auto send = [&](int from, int to, int k, size_t bytes) {
      std::vector<std::byte> data(bytes);
      for (size_t i = 0; i < bytes; ++i) data[i] = content(from, to, k, i);
      std::byte* there = memory[pair(from, to)].data() + static_cast<size_t>(k) * kMost;
      sent[pair(from, to)][static_cast<size_t>(k)] = {now_ns(), bytes};
      const size_t half = bytes / 2;
      team.port(from, to).put(0, data.data(), there, half);
      team.port(from, to).put(half, data.data() + half, there + half, bytes - half);
      team.port(from, to).signal(set(0, static_cast<uint64_t>(k)));
    };
    const auto check = [&](int self, const Arrival& came, int k) {
      ASSERT_EQ(came.signal.value, static_cast<uint64_t>(k)) << "out of order";
      const Sent& was = sent[pair(came.peer, self)][static_cast<size_t>(k)];
      const double least = static_cast<double>(was.bytes) / kRate;
      ASSERT_GE(static_cast<double>(came.at - was.at) + 4, least + nanoseconds(kLatency).count());
      const std::byte* there =
          memory[pair(came.peer, self)].data() + static_cast<size_t>(k) * kMost;
      for (size_t i = 0; i < was.bytes; ++i)
        ASSERT_EQ(there[i], content(came.peer, self, k, i)) << i;
    };
    std::vector<std::thread> threads;
    for (int rank = 0; rank < n; ++rank) {
      threads.emplace_back([&, rank] {
        uint32_t random = static_cast<uint32_t>(rank) * 2654435761u + 1;
        std::vector<int> next(static_cast<size_t>(n));
        size_t checked = 0;
        const auto take = [&] {
          const auto& arrivals = team.log(rank).arrivals;
          for (; checked < arrivals.size(); ++checked)
            check(rank, arrivals[checked], next[static_cast<size_t>(arrivals[checked].peer)]++);
          return checked == static_cast<size_t>((n - 1) * kMessages);
        };
        for (int k = 0; k < kMessages; ++k) {
          for (int step = 1; step < n; ++step) {
            random = random * 1664525u + 1013904223u;
            send(rank, (rank + step) % n, k, (random >> 8) % (kMost + 1));
            team.engine(rank).progress();
            take();
          }
        }
        EXPECT_TRUE(team.drive(rank, take));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Engine, WhatDoesNotFitIntoTheRingFollows) {
  Team team(uniform_links(2, kFast, {}));
  for (uint64_t i = 0; i < kMoreThanARing; ++i) team.port(0, 1).signal(set(0, i));
  EXPECT_FALSE(team.engine(0).flushed());
  EXPECT_FALSE(team.engine(0).progress()) << "no room yet";
  while (team.log(1).arrivals.size() < kMoreThanARing) {
    ASSERT_TRUE(team.engine(1).progress());
    team.engine(0).progress();
  }
  EXPECT_TRUE(team.engine(0).flushed());
  for (uint64_t i = 0; i < kMoreThanARing; ++i) EXPECT_EQ(team.log(1).arrivals[i].signal.value, i);
}

TEST(Engine, ASenderThatSleepsForRoomIsWoken) {
  Team team(uniform_links(2, kFast, {}));
  constexpr int kSignals = 20'000;
  std::thread sender([&] {
    for (uint64_t i = 0; i < kSignals; ++i) team.port(0, 1).signal(set(0, i));
    EXPECT_TRUE(team.drive(0, [&] { return team.engine(0).flushed(); }));
  });
  EXPECT_TRUE(team.drive(1, [&] { return team.log(1).arrivals.size() == kSignals; }));
  sender.join();
}

TEST(Engine, APeerThatStopsHoldsUpNobodyElse) {
  Team team(uniform_links(3, kFast, microseconds(20)));
  std::byte here{}, there{};
  for (uint64_t i = 0; i < kMoreThanARing; ++i) {
    team.port(0, 1).put(0, &here, &there, 1);  // rank 1 never looks
    team.port(0, 1).signal(set(0, i));
    team.port(0, 2).signal(set(0, i));
    team.engine(0).progress();
    team.engine(2).progress();
  }
  EXPECT_TRUE(team.drive(2, [&] {
    team.engine(0).progress();
    return team.log(2).arrivals.size() == kMoreThanARing;
  }));
  EXPECT_FALSE(team.engine(0).flushed()) << "its signals wait";
  EXPECT_EQ(team.engine(0).due_in(), nanoseconds::max()) << "and not for the time";
}

TEST(Engine, ARefusedSignalEndsItsPeerAndNoOther) {
  Team team(uniform_links(3, kFast, {}));
  team.log(0).refused_position = 99;
  team.port(1, 0).signal(set(1, 1));
  team.port(1, 0).signal(set(99, 2));
  team.port(1, 0).signal(set(1, 3));
  ASSERT_TRUE(team.drive(0, [&] { return !team.log(0).ends.empty(); }));
  team.port(2, 0).signal(set(1, 4));
  ASSERT_TRUE(team.drive(0, [&] { return team.log(0).arrivals.size() == 2; }));
  EXPECT_EQ(team.log(0).arrivals[0].signal.value, 1u);
  EXPECT_EQ(team.log(0).arrivals[1].signal.value, 4u);
  EXPECT_FALSE(team.engine(0).progress());
  ASSERT_THAT(team.log(0).ends, SizeIs(1));
  EXPECT_EQ(team.log(0).ends[0].first, 1);
  EXPECT_THAT(team.log(0).ends[0].second, HasSubstr("rank 1 signalled position 0x63"));
}

TEST(Engine, WhatADeadProcessHadPostedArrives) {
  Team team(uniform_links(2, 1, microseconds(100)));
  SharedBlock memory(4096);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::array<std::byte, 1000> data;
    data.fill(std::byte{42});
    team.port(1, 0).put(0, data.data(), memory.base(), data.size());
    team.port(1, 0).signal(set(0, 1));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(team.drive(0, [&] { return !team.log(0).arrivals.empty(); }));
  EXPECT_EQ(memory.base()[999], std::byte{42});
}

// More bytes per second than any memory copies.
TEST(Engine, LinksFasterThanMemoryAreToldOnce) {
  Team team(uniform_links(2, 1e5, {}));
  std::vector<std::byte> data(size_t{8} << 20), there(data.size());
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 4; ++i) team.port(0, 1).put(0, data.data(), there.data(), data.size());
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("memory here is too slow for the described links"));
  EXPECT_EQ(text.find("too slow"), text.rfind("too slow"));
}

}  // namespace
}  // namespace tessera::emulated
