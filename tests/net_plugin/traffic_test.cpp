// What arrives is what was sent, in the order that ports promise, through plugins of every version
// and mood.
#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <thread>

#include "net_plugin/support/job.h"

namespace tessera::net_plugin {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(size_t n, std::mt19937_64& random) {
  Bytes bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

PortSignal add(uint64_t value) { return {8, value, 0, PortSignal::Kind::kAdd}; }

struct Setup {
  const char* plugin;
  const char* variable;  // of a fault
  const char* value;
};
void PrintTo(const Setup& setup, std::ostream* out) {
  *out << setup.plugin << " " << setup.variable << "=" << setup.value;
}

class PluginTraffic : public ::testing::TestWithParam<Setup> {
 protected:
  ~PluginTraffic() override {
    EXPECT_EQ(asked(GetParam().plugin, "plugin_open"), 0) << "left open";
  }
  std::string plugin() const { return GetParam().plugin; }

 private:
  const Fault fault_{GetParam().variable, GetParam().value};
};

TEST_P(PluginTraffic, ASmallPutAndItsSignalArriveWithAllTheirFields) {
  Job job(2, plugin(), 4096);
  job.expect_connected();
  const uint64_t value = 0x1122334455667788;
  std::byte shadow[8];
  job.port(0, 1).put(1000, reinterpret_cast<const std::byte*>(&value), shadow, sizeof value);
  const PortSignal sent = {64, 17, 0xfeed, PortSignal::Kind::kSlot};
  job.port(0, 1).signal(sent);
  EXPECT_FALSE(job.engines[0]->flushed());
  job.run_until([&] { return !job.landing(1).signals().empty() && job.engines[0]->flushed(); });
  EXPECT_EQ(std::memcmp(job.landing(1).memory().data() + 1000, &value, sizeof value), 0);
  const auto& seen = job.landing(1).signals()[0];
  EXPECT_EQ(seen.peer, 0);
  EXPECT_EQ(seen.signal.position, sent.position);
  EXPECT_EQ(seen.signal.value, sent.value);
  EXPECT_EQ(seen.signal.fingerprint, sent.fingerprint);
  EXPECT_EQ(seen.signal.kind, sent.kind);
}

TEST_P(PluginTraffic, PutsOfAllSizesArriveByteForByte) {
  constexpr size_t kSizes[] = {1,     31,    32,    33,    4967,  4968,   4969,     5000,
                               65503, 65504, 65505, 65536, 99999, 131073, 1'333'333};
  std::mt19937_64 random(1);
  Job job(2, plugin(), 4 << 20);
  job.expect_connected();
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

TEST_P(PluginTraffic, TheCallersBytesMayChangeAsSoonAsPutReturnsOrLieInTheirShadow) {
  constexpr size_t kBytes = 3 << 20;  // more than all buffers take
  std::mt19937_64 random(2);
  Job job(2, plugin(), 2 * kBytes);
  job.expect_connected();
  const Bytes original = random_bytes(2 * kBytes, random);
  Bytes data = original, shadow(kBytes);
  job.port(0, 1).put(0, data.data(), shadow.data(), kBytes);
  std::fill(data.begin(), data.begin() + kBytes, std::byte{0});
  job.port(0, 1).put(kBytes, data.data() + kBytes, data.data() + kBytes, kBytes);
  job.port(0, 1).signal(add(1));
  job.run_until([&] { return !job.landing(1).signals().empty(); });
  EXPECT_EQ(job.landing(1).memory(), original);
}

TEST_P(PluginTraffic, BothSidesMayFillAllBuffersWithoutReading) {
  constexpr size_t kBytes = 2 << 20;
  std::mt19937_64 random(5);
  Job job(2, plugin(), kBytes);
  job.expect_connected();
  const Bytes data[] = {random_bytes(kBytes, random), random_bytes(kBytes, random)};
  Bytes shadow[] = {Bytes(kBytes), Bytes(kBytes)};
  for (size_t rank : {0U, 1U}) {
    const int to = static_cast<int>(1 - rank);
    job.port(rank, to).put(0, data[rank].data(), shadow[rank].data(), kBytes);
    job.port(rank, to).signal(add(1));
  }
  job.run_until(
      [&] { return !job.landing(0).signals().empty() && !job.landing(1).signals().empty(); });
  EXPECT_EQ(job.landing(1).memory(), data[0]);
  EXPECT_EQ(job.landing(0).memory(), data[1]);
}

// Each signal says how many bytes lie before it: they must be there when it comes.
TEST_P(PluginTraffic, ASignalComesAfterAllBytesBeforeItAndSignalsKeepTheirOrder) {
  constexpr size_t kBytes = 1 << 20;
  Job job(2, plugin(), kBytes);
  job.expect_connected();
  const Bytes data(kBytes, std::byte{0xab});
  Bytes shadow(kBytes);
  std::mt19937_64 random(4);
  size_t at = 0, seen = 0, checked = 0;
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (checked < kBytes) {
    ASSERT_FALSE(deadline.passed());
    if (at < kBytes) {
      const size_t size =
          std::min<size_t>(1 + random() % (random() % 8 == 0 ? 90'000 : 900), kBytes - at);
      job.port(0, 1).put(at, data.data() + at, shadow.data() + at, size);
      at += size;
      if (random() % 2 == 0 || at == kBytes) job.port(0, 1).signal({0, at, 0, {}});
    }
    job.engines[0]->progress();
    if (random() % 4 == 0) job.engines[1]->progress();
    for (; seen < job.landing(1).signals().size(); ++seen) {
      const size_t value = job.landing(1).signals()[seen].signal.value;
      ASSERT_GT(value, checked);
      for (; checked < value; ++checked)
        ASSERT_EQ(job.landing(1).memory()[checked], std::byte{0xab}) << checked;
    }
  }
}

// Ranks in threads put random pieces into the others' memory, each in an area of its own.
TEST_P(PluginTraffic, RandomTrafficOfFourRanksIsComparedByteForByte) {
  constexpr int kRanks = 4;
  constexpr size_t kArea = 1 << 20;
  Job job(kRanks, plugin(), kArea * kRanks);
  job.expect_connected();
  std::vector<std::vector<Bytes>> sent(kRanks, std::vector<Bytes>(kRanks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      std::mt19937_64 random(static_cast<uint64_t>(100 + rank));
      const auto own = static_cast<size_t>(rank);
      PortEngine& engine = *job.engines[own];
      EXPECT_EQ(engine.port(rank), nullptr);
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
          const size_t size = std::min<size_t>(1 + random() % (random() % 8 == 0 ? 300'000 : 3000),
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

TEST_P(PluginTraffic, WhoWaitsIsToldToLookAgainSoon) {
  Job job(2, plugin(), 4096);
  job.expect_connected();
  EXPECT_EQ(job.engines[0]->wait_fd(), -1);
  EXPECT_GT(job.engines[0]->due_in(), std::chrono::nanoseconds(0));
  EXPECT_LE(job.engines[0]->due_in(), std::chrono::milliseconds(1));
}

INSTANTIATE_TEST_SUITE_P(
    Plugins, PluginTraffic,
    ::testing::Values(Setup{"v8", "TEST_NET_NONE", "0"}, Setup{"v9", "TEST_NET_NONE", "0"},
                      Setup{"v10", "TEST_NET_NONE", "0"}, Setup{"v11", "TEST_NET_NONE", "0"},
                      Setup{"v12", "TEST_NET_NONE", "0"}, Setup{"v8", "TEST_NET_RARELY", "5"},
                      Setup{"v12", "TEST_NET_PIECES", "997"}, Setup{"v10", "TEST_NET_LATER", "50"}),
    [](const auto& info) {
      return std::string(info.param.plugin) + (info.param.variable + std::strlen("TEST_NET_"));
    });

}  // namespace
}  // namespace tessera::net_plugin
