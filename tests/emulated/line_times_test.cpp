// The model of time against closed forms. Nothing here looks at a clock.
#include "transports/emulated/line_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "emulated/support/team.h"

namespace tessera::emulated {
namespace {

constexpr uint64_t kStart = 1'000'000'000;
constexpr size_t kBytes = 1 << 20;

// Lines between ranks with the rate of 1 byte per ns, so that bytes are nanoseconds.
class Times {
 public:
  explicit Times(Links links)
      : links_(std::make_shared<const Links>(std::move(links))),
        block_(LineTimes::bytes(*links_)),
        times_(links_, block_.base()) {}
  explicit Times(int ranks, const std::vector<double>& fan_out = {})
      : Times(uniform_links(ranks, 1, std::chrono::microseconds(5), fan_out)) {}

  // Times from kStart on.
  uint64_t put(int from, int to, size_t bytes, uint64_t at = 0) {
    return times_.put(from, to, bytes, kStart + at) - kStart;
  }

 private:
  std::shared_ptr<const Links> links_;
  SharedBlock block_;
  LineTimes times_;
};

TEST(LineTimes, AFlowAloneTakesBytesByRate) {
  Times times(2);
  EXPECT_EQ(times.put(0, 1, kBytes), kBytes);
  EXPECT_EQ(times.put(0, 1, 1, 5 * kBytes), 5 * kBytes + 1);
}

TEST(LineTimes, NothingTakesNoTime) {
  Times times(2);
  EXPECT_EQ(times.put(0, 1, 0, 77), 77u);
}

TEST(LineTimes, PutsOfOneFlowFollowEachOther) {
  Times times(2);
  for (uint64_t i = 1; i <= 5; ++i) EXPECT_EQ(times.put(0, 1, kBytes, i), i * kBytes + 1);
}

TEST(LineTimes, DirectionsDoNotMeet) {
  Times times(2);
  EXPECT_EQ(times.put(0, 1, kBytes), kBytes);
  EXPECT_EQ(times.put(1, 0, kBytes), kBytes);
}

TEST(LineTimes, TheSlowestLineOfAWayCounts) {
  Links links = uniform_links(3, 1, {});
  links.lines[2 * 1 + 1].rates = {0.25};  // rank 1 receives
  Times times(std::move(links));
  EXPECT_EQ(times.put(0, 1, kBytes), 4 * kBytes);
  EXPECT_EQ(times.put(0, 2, kBytes), 2 * kBytes)
      << "the sender's line was taken for one length only";
}

TEST(LineTimes, TwoSendersShareAReceiversLine) {
  Times times(4);
  EXPECT_EQ(times.put(0, 2, kBytes), kBytes);
  EXPECT_EQ(times.put(1, 2, kBytes), 2 * kBytes);
  EXPECT_EQ(times.put(3, 0, kBytes), kBytes) << "others do not notice";
}

TEST(LineTimes, SendersThatPostInTurnGetEqualShares) {
  Times times(4);
  uint64_t ready[3] = {0, 1, 2};
  int done[3] = {};
  uint64_t last = 0;
  for (int i = 0; i < 300; ++i) {
    const auto sender = std::min_element(ready, ready + 3) - ready;
    last = ready[sender] = times.put(static_cast<int>(sender), 3, kBytes, ready[sender]);
    ++done[sender];
  }
  EXPECT_EQ(last, 300 * kBytes);
  for (const int d : done) EXPECT_EQ(d, 100);
}

// Everybody to everybody: each line carries n - 1 puts and never rests.
TEST(LineTimes, AnAllToAllTakesWhatALineHasToCarry) {
  for (int n = 2; n <= 8; ++n) {
    Times times(n);
    uint64_t last = 0;
    for (int step = 1; step < n; ++step) {
      for (int from = 0; from < n; ++from)
        last = std::max(last, times.put(from, (from + step) % n, kBytes));
    }
    EXPECT_EQ(last, static_cast<uint64_t>(n - 1) * kBytes) << n;
  }
}

const std::vector<double> kFanOut = {1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7};

TEST(LineTimes, ADeviceThatTalksToMorePeersMovesLess) {
  for (int peers = 1; peers <= 7; ++peers) {
    Times times(8, kFanOut);
    uint64_t last = 0;
    for (int to = 1; to <= peers; ++to) last = std::max(last, times.put(0, to, kBytes));
    const double expected = peers * static_cast<double>(kBytes) / kFanOut[peers - 1];
    EXPECT_NEAR(static_cast<double>(last), expected, peers + 1) << peers;
  }
}

TEST(LineTimes, ADeviceThatListensToMorePeersReceivesLess) {
  for (int peers = 1; peers <= 7; ++peers) {
    Times times(8, kFanOut);
    uint64_t last = 0;
    for (int from = 1; from <= peers; ++from) last = std::max(last, times.put(from, 0, kBytes));
    const double expected = peers * static_cast<double>(kBytes) / kFanOut[peers - 1];
    EXPECT_NEAR(static_cast<double>(last), expected, peers + 1) << peers;
  }
}

// Each flow posts anew when its last put has passed: the rate is that of all peers all the time.
TEST(LineTimes, TheFanOutLimitHoldsForAsLongAsTheFlowsLast) {
  for (int peers = 1; peers <= 7; ++peers) {
    Times times(8, kFanOut);
    std::map<int, uint64_t> ready;
    for (int to = 1; to <= peers; ++to) ready[to] = 0;
    uint64_t last = 0;
    const int puts = 100 * peers;
    for (int i = 0; i < puts; ++i) {
      const auto next = std::min_element(ready.begin(), ready.end(),
                                         [](auto& a, auto& b) { return a.second < b.second; });
      last = std::max(last, next->second = times.put(0, next->first, kBytes, next->second));
    }
    const double expected = puts * static_cast<double>(kBytes) / kFanOut[peers - 1];
    EXPECT_NEAR(static_cast<double>(last), expected, 0.01 * expected) << peers;
  }
}

TEST(LineTimes, APeerThatIsServedCountsNoLonger) {
  Times times(4, kFanOut);
  times.put(0, 1, kBytes);
  times.put(0, 2, kBytes);
  EXPECT_EQ(times.put(0, 3, kBytes, 10 * kBytes), 11 * kBytes);
}

TEST(LineTimes, NoLineCarriesMoreThanItsRate) {
  std::mt19937 random(7);
  Times times(8);
  std::vector<std::pair<uint64_t, size_t>> passed[8];  // by receiver: when, bytes
  uint64_t now = 0;
  for (int i = 0; i < 2000; ++i) {
    const int from = static_cast<int>(random() % 8);
    const int to = static_cast<int>((from + 1 + random() % 7) % 8);
    const size_t bytes = 1 + random() % 100'000;
    now += random() % 5'000;
    passed[to].emplace_back(times.put(from, to, bytes, now), bytes);
  }
  for (auto& receiver : passed) {
    std::sort(receiver.begin(), receiver.end());
    uint64_t sum = 0;
    for (const auto& [when, bytes] : receiver) EXPECT_LE(sum += bytes, when);
  }
}

TEST(LineTimes, NoUseIsLostBetweenThreads) {
  Links links = uniform_links(5, 1, {});
  Times times(links);
  constexpr int kPuts = 20'000;
  std::vector<std::thread> threads;
  for (int from = 0; from < 4; ++from) {
    threads.emplace_back([&times, from] {
      for (int i = 0; i < kPuts; ++i) times.put(from, 4, 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(times.put(0, 4, 10), (4 * kPuts + 1) * 10u);
}

}  // namespace
}  // namespace tessera::emulated
