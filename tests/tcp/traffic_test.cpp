// What arrives is what was sent, in the order that ports promise.
#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "base/deadline.h"
#include "tcp/support/job.h"
#include "transports/tcp/zero_copy.h"

namespace tessera::tcp {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(size_t n, std::mt19937_64& random) {
  Bytes bytes(n);
  for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
    const uint64_t number = random();
    std::memcpy(bytes.data() + i, &number, std::min(n - i, sizeof number));
  }
  return bytes;
}

// Comparing vectors takes a sanitized build seconds.
bool same(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

PortSignal add(uint64_t value) { return {8, value, 0, PortSignal::Kind::kAdd}; }

class Traffic : public ::testing::TestWithParam<int> {  // sockets between two ranks
 protected:
  Config config() const { return loopback_config(GetParam()); }
};

TEST_P(Traffic, ASmallPutAndItsSignalArriveWithAllTheirFields) {
  Job job(2, config(), 4096);
  const uint64_t value = 0x1122334455667788;
  std::byte shadow[8];
  job.port(0, 1).put(1000, reinterpret_cast<const std::byte*>(&value), shadow, sizeof value);
  const PortSignal sent = {64, 17, 0xfeed, PortSignal::Kind::kSlot};
  job.port(0, 1).signal(sent);
  job.run_until([&] { return !job.landing(1).signals().empty(); });
  EXPECT_EQ(std::memcmp(job.landing(1).memory().data() + 1000, &value, sizeof value), 0);
  const auto& seen = job.landing(1).signals()[0];
  EXPECT_EQ(seen.peer, 0);
  EXPECT_EQ(seen.signal.position, sent.position);
  EXPECT_EQ(seen.signal.value, sent.value);
  EXPECT_EQ(seen.signal.fingerprint, sent.fingerprint);
  EXPECT_EQ(seen.signal.kind, sent.kind);
}

TEST_P(Traffic, PutsOfAllSizesArriveByteForByte) {
  constexpr size_t kSizes[] = {1,     7,     31,    32,        33,     4095,      16384,
                               16385, 65537, 99999, (1 << 17), 131073, (1 << 20), 3'333'333};
  std::mt19937_64 random(1);
  Job job(2, config(), 4 << 20);
  for (const size_t size : kSizes) {
    const Bytes data = random_bytes(size, random);
    Bytes shadow(size);
    const size_t seen = job.landing(1).signals().size();
    job.port(0, 1).put(13, data.data(), shadow.data(), size);
    job.port(0, 1).signal(add(1));
    job.run_until([&] { return job.landing(1).signals().size() > seen; });
    ASSERT_EQ(std::memcmp(job.landing(1).memory().data() + 13, data.data(), size), 0) << size;
  }
}

TEST_P(Traffic, TheCallersBytesMayChangeAsSoonAsPutReturns) {
  constexpr size_t kBytes = 16 << 20;  // more than the kernel takes
  std::mt19937_64 random(2);
  Job job(2, config(), kBytes);
  const Bytes original = random_bytes(kBytes, random);
  Bytes data = original, shadow(kBytes);
  job.port(0, 1).put(0, data.data(), shadow.data(), kBytes);
  std::fill(data.begin(), data.end(), std::byte{0});
  job.port(0, 1).signal(add(1));
  job.run_until([&] { return !job.landing(1).signals().empty(); });
  EXPECT_TRUE(same(job.landing(1).memory(), original));
}

TEST_P(Traffic, BytesMayLieInTheirShadowAlready) {
  constexpr size_t kBytes = 16 << 20;
  std::mt19937_64 random(3);
  Job job(2, config(), kBytes);
  Bytes data = random_bytes(kBytes, random);
  job.port(0, 1).put(0, data.data(), data.data(), kBytes);
  job.port(0, 1).signal(add(1));
  job.run_until([&] { return !job.landing(1).signals().empty() && job.engines[0]->flushed(); });
  EXPECT_TRUE(same(job.landing(1).memory(), data));
}

TEST_P(Traffic, UserMemoryIsTheUsersAgainAfterACallThatFailed) {
  constexpr size_t kBytes = 16 << 20;
  std::mt19937_64 random(4);
  Job job(2, config(), kBytes);
  const Bytes original = random_bytes(kBytes, random);
  for (const size_t piece : {ZeroCopy::kFrom - 1, kBytes}) {  // copied by the kernel; perhaps not
    Bytes data = original;
    const size_t seen = job.landing(1).signals().size();
    std::fill(job.landing(1).memory().begin(), job.landing(1).memory().end(), std::byte{0});
    for (size_t at = 0; at < kBytes; at += piece) {
      job.port(0, 1).put(kUserMemory + at, data.data() + at, data.data() + at,
                         std::min(piece, kBytes - at));
    }
    job.port(0, 1).signal(add(1));
    job.engines[0]->progress();
    std::thread receiver([&] {
      const Deadline deadline = Deadline::after(std::chrono::seconds(20));
      while (job.landing(1).signals().size() == seen && !deadline.passed())
        job.engines[1]->progress();
    });
    job.engines[0]->retract();
    std::fill(data.begin(), data.end(), std::byte{0});
    job.engines[0]->retract();  // once more changes nothing
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (!job.engines[0]->flushed() && !deadline.passed()) job.engines[0]->progress();
    receiver.join();
    ASSERT_GT(job.landing(1).signals().size(), seen);
    EXPECT_TRUE(same(job.landing(1).memory(), original)) << piece;
  }
}

TEST_P(Traffic, WhatComesForACallThatIsOverIsDroppedAndTheConnectionStays) {
  Job job(2, config(), 4 << 20);
  Bytes data(3 << 20, std::byte{7}), shadow(8);
  job.landing(1).end_call();
  for (const size_t bytes : {size_t{100}, data.size()})
    job.port(0, 1).put(kUserMemory, data.data(), data.data(), bytes);
  job.port(0, 1).put(0, data.data(), shadow.data(), 8);
  job.port(0, 1).signal(add(1));
  job.run_until([&] { return !job.landing(1).signals().empty(); });
  EXPECT_TRUE(job.landing(1).ends().empty());
  EXPECT_EQ(job.landing(1).memory()[7], std::byte{7});
  EXPECT_EQ(job.landing(1).memory()[8], std::byte{0});
}

// Each signal says how many bytes lie before it; a landing that looks at once must find them.
TEST_P(Traffic, ASignalComesAfterAllBytesBeforeItAndSignalsKeepTheirOrder) {
  constexpr size_t kBytes = 8 << 20;
  struct Checking : MemoryLanding {
    using MemoryLanding::MemoryLanding;
    bool signalled(int peer, const PortSignal& signal) override {
      for (size_t i = checked; i < signal.value; ++i) {
        if (memory()[i] != std::byte{0xab}) return false;
      }
      checked = signal.value;
      return MemoryLanding::signalled(peer, signal);
    }
    size_t checked = 0;
  };
  Job job(2, config(), 1);
  job.engines.clear();
  // The same ranks again, with the landing that looks.
  Checking landing(kBytes);
  MemoryLanding other(1);
  const Config setting = config();
  Listener listeners[] = {open_listener(setting), open_listener(setting)};
  const std::vector<RemotePeer> of0 = {peer_of(1, listeners[1])};
  const std::vector<RemotePeer> of1 = {peer_of(0, listeners[0])};
  std::unique_ptr<PortEngine> sender, receiver;
  std::thread thread([&] {
    auto engine = connect(std::move(listeners[0]), 0, of0, kSecret, setting, other,
                          Deadline::after(std::chrono::seconds(60)));
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    sender = std::move(engine.value());
  });
  auto engine = connect(std::move(listeners[1]), 1, of1, kSecret, setting, landing,
                        Deadline::after(std::chrono::seconds(60)));
  thread.join();
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  receiver = std::move(engine.value());

  const Bytes data(kBytes, std::byte{0xab});
  Bytes shadow(kBytes);
  std::mt19937_64 random(4);
  size_t at = 0, posted = 0;
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (landing.checked < kBytes) {
    ASSERT_FALSE(deadline.passed());
    ASSERT_TRUE(landing.ends().empty()) << landing.ends()[0].why.message();
    if (at < kBytes) {
      const size_t size =
          std::min<size_t>(1 + random() % (posted % 3 == 0 ? 600'000 : 900), kBytes - at);
      sender->port(1)->put(at, data.data() + at, shadow.data() + at, size);
      at += size;
      if (random() % 2 == 0 || at == kBytes) sender->port(1)->signal({0, at, 0, {}});
      ++posted;
    }
    sender->progress();
    if (random() % 4 == 0) receiver->progress();
  }
  for (size_t i = 1; i < landing.signals().size(); ++i)
    EXPECT_LE(landing.signals()[i - 1].signal.value, landing.signals()[i].signal.value);
}

TEST_P(Traffic, BothSidesMayFillAllBuffersWithoutReading) {
  constexpr size_t kBytes = 24 << 20;
  std::mt19937_64 random(5);
  Job job(2, config(), kBytes);
  const Bytes data[] = {random_bytes(kBytes, random), random_bytes(kBytes, random)};
  Bytes shadow[] = {Bytes(kBytes), Bytes(kBytes)};
  for (size_t rank : {0U, 1U}) {
    job.port(rank, static_cast<int>(1 - rank))
        .put(0, data[rank].data(), shadow[rank].data(), kBytes);
    job.port(rank, static_cast<int>(1 - rank)).signal(add(1));
  }
  job.run_until(
      [&] { return !job.landing(0).signals().empty() && !job.landing(1).signals().empty(); });
  EXPECT_TRUE(same(job.landing(1).memory(), data[0]));
  EXPECT_TRUE(same(job.landing(0).memory(), data[1]));
}

// Ranks in threads put random pieces into the others' memory, each in an area of its own.
TEST_P(Traffic, RandomTrafficOfFourRanksIsComparedByteForByte) {
  constexpr int kRanks = 4;
  constexpr size_t kArea = 2 << 20;
  Job job(kRanks, config(), kArea * kRanks);
  std::vector<std::vector<Bytes>> sent(kRanks, std::vector<Bytes>(kRanks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      std::mt19937_64 random(static_cast<uint64_t>(100 + rank));
      const auto own = static_cast<size_t>(rank);
      PortEngine& engine = *job.engines[own];
      std::vector<Bytes> shadows(kRanks, Bytes(kArea));
      std::vector<size_t> at(kRanks, 0);
      for (Bytes& data : sent[own]) data = random_bytes(kArea, random);
      int open = kRanks - 1;
      const Deadline deadline = Deadline::after(std::chrono::seconds(60));
      while (open > 0 || !engine.flushed() ||
             job.landing(own).signals().size() < size_t{kRanks} - 1) {
        ASSERT_FALSE(deadline.passed());
        const int to = static_cast<int>(random() % kRanks);
        const auto peer = static_cast<size_t>(to);
        if (to != rank && at[peer] < kArea) {
          const size_t size = std::min<size_t>(1 + random() % (random() % 8 == 0 ? 700'000 : 3000),
                                               kArea - at[peer]);
          engine.port(to)->put(own * kArea + at[peer], sent[own][peer].data() + at[peer],
                               shadows[peer].data() + at[peer], size);
          at[peer] += size;
          if (at[peer] == kArea) {
            engine.port(to)->signal(add(1));
            --open;
          }
        }
        if (random() % 4 != 0) engine.progress();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t to = 0; to < kRanks; ++to) {
    for (size_t from = 0; from < kRanks; ++from) {
      if (from == to) continue;
      EXPECT_EQ(
          std::memcmp(job.landing(to).memory().data() + from * kArea, sent[from][to].data(), kArea),
          0)
          << from << " to " << to;
    }
  }
}

TEST_P(Traffic, TheDescriptorTellsWhenProgressWouldGetOn) {
  Job job(2, config(), 4096);
  const auto readable = [&](int timeout_ms) {
    pollfd polled = {job.engines[1]->wait_fd(), POLLIN, 0};
    return ::poll(&polled, 1, timeout_ms) == 1;
  };
  while (job.engines[1]->progress()) {
  }
  EXPECT_FALSE(readable(0));
  job.port(0, 1).signal(add(1));
  EXPECT_FALSE(job.engines[0]->flushed());
  EXPECT_TRUE(job.engines[0]->progress());
  EXPECT_TRUE(job.engines[0]->flushed());
  EXPECT_TRUE(readable(60'000));
  EXPECT_TRUE(job.engines[1]->progress());
  EXPECT_FALSE(readable(0));
  EXPECT_LE(job.engines[1]->due_in(), std::chrono::seconds(1));
}

// Whoever sleeps on the descriptor until all is sent must not be left asleep.
TEST_P(Traffic, TheCallThatSendsTheLastByteLeavesTheEngineFlushed) {
  constexpr size_t kBytes = 16 << 20;
  Job job(2, config(), kBytes);
  Bytes data(kBytes), shadow(kBytes);
  std::thread reader([&] {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (job.landing(1).signals().empty() && !deadline.passed()) job.engines[1]->progress();
  });
  job.port(0, 1).put(0, data.data(), shadow.data(), kBytes);
  job.port(0, 1).signal(add(1));
  int asleep_in_vain = 0;
  while (!job.engines[0]->flushed() && asleep_in_vain == 0) {
    if (job.engines[0]->progress()) continue;
    pollfd polled = {job.engines[0]->wait_fd(), POLLIN, 0};
    if (::poll(&polled, 1, 20'000) == 0) ++asleep_in_vain;
  }
  reader.join();
  EXPECT_EQ(asleep_in_vain, 0);
}

INSTANTIATE_TEST_SUITE_P(Sockets, Traffic, ::testing::Values(1, 2, 5));

TEST(ManyPeers, EveryRankOfTwelveReachesEveryOther) {
  constexpr int kRanks = 12;
  Job job(kRanks, loopback_config(), size_t{kRanks} * 8);
  uint64_t shadow[kRanks][kRanks];
  for (int from = 0; from < kRanks; ++from) {
    EXPECT_EQ(job.engines[static_cast<size_t>(from)]->port(from), nullptr);
    for (int to = 0; to < kRanks; ++to) {
      if (to == from) continue;
      const uint64_t value = static_cast<uint64_t>(from * 100 + to);
      auto* own = reinterpret_cast<std::byte*>(&shadow[from][to]);
      job.port(static_cast<size_t>(from), to)
          .put(static_cast<uint64_t>(from) * 8, reinterpret_cast<const std::byte*>(&value), own, 8);
      job.port(static_cast<size_t>(from), to).signal(add(1));
    }
  }
  job.run_until([&] {
    return std::all_of(job.landings.begin(), job.landings.end(),
                       [](const auto& landing) { return landing->signals().size() == kRanks - 1; });
  });
  for (int to = 0; to < kRanks; ++to) {
    for (int from = 0; from < kRanks; ++from) {
      if (to == from) continue;
      uint64_t value = 0;
      std::memcpy(&value, job.landing(static_cast<size_t>(to)).memory().data() + from * 8, 8);
      EXPECT_EQ(value, static_cast<uint64_t>(from * 100 + to));
    }
  }
}

}  // namespace
}  // namespace tessera::tcp
