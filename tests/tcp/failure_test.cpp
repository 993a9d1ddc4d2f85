// Peers that die, cheat, or lose one of several ways.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/deadline.h"
#include "tcp/support/job.h"
#include "transports/tcp/farewell.h"
#include "transports/tcp/frame.h"

namespace tessera::tcp {
namespace {

using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;

constexpr std::chrono::seconds kPatience{60};

template <class Done>
void run_until(PortEngine* one, PortEngine* other, Done done) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!done()) {
    ASSERT_FALSE(deadline.passed());
    if (one != nullptr) one->progress();
    if (other != nullptr) other->progress();
  }
}

TEST(DeadPeer, WhatItSentBeforeIsHandedOverThenTheEndIsToldOnce) {
  Job job(2, loopback_config(), 64);
  const uint64_t value = 7;
  std::byte shadow[8];
  job.port(0, 1).put(0, reinterpret_cast<const std::byte*>(&value), shadow, 8);
  job.port(0, 1).signal({8, 1, 0, {}});
  while (!job.engines[0]->flushed()) job.engines[0]->progress();
  job.engines[0].reset();
  job.run_until([&] { return !job.landing(1).ends().empty(); });
  for (int i = 0; i < 100; ++i) job.engines[1]->progress();
  EXPECT_EQ(job.landing(1).signals().size(), 1U);
  ASSERT_EQ(job.landing(1).ends().size(), 1U);
  EXPECT_EQ(job.landing(1).ends()[0].peer, 0);
  const Status& why = job.landing(1).ends()[0].why;
  EXPECT_EQ(why.code(), Code::kRemote);
  EXPECT_THAT(why.message(), HasSubstr("rank 0 (host here) (127.0.0.1:"));
  EXPECT_THAT(why.message(), HasSubstr("closed by the peer"));
}

// Its host would answer with a reset, which drops what has not left.
TEST(LeavingRank, IsHeardToTheEndThoughThePeerIsStillSending) {
  constexpr size_t kBytes = 1 << 20;
  Job job(2, loopback_config(), kBytes);
  Bytes data(kBytes, std::byte{7}), shadow(kBytes);
  job.port(0, 1).put(0, data.data(), shadow.data(), kBytes);
  job.port(0, 1).signal({8, 1, 0, {}});
  const Deadline deadline = Deadline::after(kPatience);
  while (!job.engines[0]->flushed() && !deadline.passed()) job.engines[0]->progress();
  std::thread leaving([&] { job.engines[0].reset(); });
  while (job.landing(1).ends().empty() && !deadline.passed()) {
    job.port(1, 0).signal({8, 1, 0, {}});
    for (int i = 0; i < 10; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    job.engines[1]->progress();
  }
  leaving.join();
  EXPECT_EQ(job.landing(1).signals().size(), 1U);
  EXPECT_TRUE(job.landing(1).memory() == data);
}

TEST(LeavingRank, DoesNotWaitForeverForAPeerThatDoesNotListen) {
  constexpr size_t kBytes = 32 << 20;
  Job job(2, loopback_config(), kBytes);
  Bytes data(kBytes), shadow(kBytes);
  job.port(0, 1).put(0, data.data(), shadow.data(), kBytes);
  const Deadline deadline = Deadline::after(2 * kLongestFarewell);
  job.engines[0]->progress();
  job.engines[0].reset();
  EXPECT_FALSE(deadline.passed());
}

TEST(DeadPeer, PostingToItIsHarmlessAndLeavesNothingBehind) {
  Job job(2, loopback_config(), 64);
  job.engines[0].reset();
  job.run_until([&] { return !job.landing(1).ends().empty(); });
  Bytes data(100'000), shadow(100'000);
  job.port(1, 0).put(0, data.data(), shadow.data(), data.size());
  job.port(1, 0).signal({});
  job.engines[1]->progress();
  EXPECT_TRUE(job.engines[1]->flushed());
  EXPECT_EQ(job.landing(1).ends().size(), 1U);
  EXPECT_EQ(job.engines[1]->due_in(), std::chrono::nanoseconds::max());
}

TEST(DeadPeer, EndsAPutThatHasBegun) {
  constexpr size_t kBytes = 32 << 20;
  Job job(2, loopback_config(3), kBytes);
  Bytes data(kBytes), shadow(kBytes);
  job.port(0, 1).put(0, data.data(), shadow.data(), kBytes);
  job.port(0, 1).signal({});
  job.engines[0]->progress();
  job.engines[1]->progress();
  ASSERT_FALSE(job.engines[0]->flushed());
  job.engines[1].reset();
  job.run_until([&] { return !job.landing(0).ends().empty(); });
  EXPECT_TRUE(job.engines[0]->flushed());
  EXPECT_EQ(job.landing(0).ends()[0].why.code(), Code::kRemote);
}

TEST(DeadPeer, DoesNotDisturbTheOthers) {
  Job job(3, loopback_config(), 64);
  job.engines[2].reset();
  job.run_until([&] { return !job.landing(0).ends().empty() && !job.landing(1).ends().empty(); });
  job.port(0, 1).signal({0, 5, 0, {}});
  job.run_until([&] { return !job.landing(1).signals().empty(); });
  EXPECT_EQ(job.landing(1).ends()[0].peer, 2);
}

// One end is an engine, the other is spoken by the test.
class BadFrame : public ::testing::Test {
 protected:
  BadFrame() : ends_({0}, 64) {}

  std::string end_after(const FrameHeader& header) {
    const char bytes[8] = {};
    ::send(ends_.sockets[0][0], &header, sizeof header, MSG_NOSIGNAL);
    ::send(ends_.sockets[0][0], bytes, sizeof bytes, MSG_NOSIGNAL);
    run_until(ends_.engine1.get(), nullptr, [&] { return !ends_.landing1.ends().empty(); });
    EXPECT_EQ(ends_.landing1.ends().size(), 1U);
    EXPECT_EQ(ends_.landing1.ends()[0].why.code(), Code::kRemote);
    return ends_.landing1.ends()[0].why.message();
  }

  static FrameHeader put(uint64_t position, uint64_t bytes) {
    FrameHeader header;
    header.position = position;
    header.value = bytes;
    header.number = 1;
    return header;
  }

  HandMade ends_;
};

TEST_F(BadFrame, ASmallPutLandsWholeOrNotAtAll) {
  const FrameHeader header = put(0, 8);
  const std::byte bytes[8] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                              std::byte{5}, std::byte{6}, std::byte{7}, std::byte{8}};
  const int fd = ends_.sockets[0][0];
  ::send(fd, &header, sizeof header, MSG_NOSIGNAL);
  for (const size_t part : {size_t{0}, size_t{5}}) {
    EXPECT_EQ(ends_.landing1.memory()[0], std::byte{0}) << part;
    ::send(fd, bytes + part, part == 0 ? 5 : 3, MSG_NOSIGNAL);
    for (int i = 0; i < 100 && ends_.landing1.memory()[7] == std::byte{0}; ++i)
      ends_.engine1->progress();
  }
  EXPECT_EQ(std::memcmp(ends_.landing1.memory().data(), bytes, sizeof bytes), 0);
}

TEST_F(BadFrame, APositionThatTheLandingRefusesEndsTheConnection) {
  EXPECT_THAT(end_after(put(60, 8)), HasSubstr("position 0x3c, value 8"));
}

TEST_F(BadFrame, AnImpossibleSizeEndsTheConnection) {
  EXPECT_THAT(end_after(put(0, uint64_t{1} << 50)), HasSubstr("not allowed"));
}

TEST_F(BadFrame, APutOfNothingEndsTheConnection) { end_after(put(0, 0)); }

TEST_F(BadFrame, AStreamOutOfStepEndsTheConnection) {
  FrameHeader header = put(0, 8);
  header.mark = 0;
  end_after(header);
}

TEST_F(BadFrame, AnUnknownKindEndsTheConnection) {
  FrameHeader header = put(0, 8);
  header.kind = static_cast<FrameKind>(9);
  end_after(header);
}

TEST_F(BadFrame, AnUnknownKindOfSignalEndsTheConnection) {
  FrameHeader header = put(0, 8);
  header.kind = FrameKind::kSignal;
  header.signal_kind = 3;
  end_after(header);
}

TEST_F(BadFrame, AMissingFrameEndsTheConnection) {
  FrameHeader header = put(0, 8);
  header.kind = FrameKind::kSignal;
  header.number = 2;
  end_after(header);
}

TEST_F(BadFrame, AnAcknowledgementOfWhatWasNotSentEndsTheConnection) {
  FrameHeader header = put(0, 8);
  header.kind = FrameKind::kAck;
  end_after(header);
}

TEST_F(BadFrame, ASignalThatTheLandingRefusesEndsTheConnection) {
  ends_.landing1.refuse_signals();
  FrameHeader header = put(0, 8);
  header.kind = FrameKind::kSignal;
  end_after(header);
}

// Two rails carry random traffic; one is cut at a random moment.
class LostRail : public ::testing::TestWithParam<int> {};

TEST_P(LostRail, TheJobGoesOnOverTheOtherAndNothingIsLostDoubledOrOutOfOrder) {
  constexpr size_t kBytes = 12 << 20;
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  HandMade ends({0, 1, 0, 1}, kBytes);
  Bytes data(kBytes), shadow(kBytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  const size_t cut_at = random() % kBytes;
  bool cut = false;
  size_t at = 0, posted = 0;
  Port& port = *ends.engine0->port(1);
  run_until(ends.engine0.get(), ends.engine1.get(), [&] {
    if (at >= cut_at && !cut) {
      cut = true;
      for (const size_t link : {1U, 3U}) ::shutdown(ends.sockets[random() % 2][link], SHUT_RDWR);
    }
    if (at < kBytes) {
      const size_t size =
          std::min<size_t>(1 + random() % (random() % 3 == 0 ? 900'000 : 5000), kBytes - at);
      port.put(at, data.data() + at, shadow.data() + at, size);
      at += size;
      port.signal({0, ++posted, 0, {}});
    }
    return at == kBytes && ends.engine0->flushed() && ends.landing1.signals().size() >= posted;
  });
  EXPECT_TRUE(cut);
  EXPECT_EQ(ends.landing1.memory(), data);
  ASSERT_EQ(ends.landing1.signals().size(), posted);
  for (size_t i = 0; i < posted; ++i) EXPECT_EQ(ends.landing1.signals()[i].signal.value, i + 1);
  EXPECT_TRUE(ends.landing0.ends().empty());
  EXPECT_TRUE(ends.landing1.ends().empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, LostRail, ::testing::Range(0, 8));

TEST(LostRails, WhenAllAreGoneThePeerIsGone) {
  HandMade ends({0, 1}, 64);
  for (const int fd : ends.sockets[0]) ::shutdown(fd, SHUT_RDWR);
  run_until(ends.engine0.get(), ends.engine1.get(),
            [&] { return !ends.landing0.ends().empty() && !ends.landing1.ends().empty(); });
  EXPECT_EQ(ends.landing0.ends().size(), 1U);
  EXPECT_EQ(ends.landing1.ends().size(), 1U);
}

TEST(LostRails, WhatIsNotAcknowledgedIsNotFlushed) {
  HandMade ends({0, 1}, 64);
  ends.engine0->port(1)->signal({0, 1, 0, {}});
  EXPECT_TRUE(ends.engine0->progress());
  EXPECT_FALSE(ends.engine0->flushed());
  run_until(ends.engine0.get(), ends.engine1.get(), [&] { return ends.engine0->flushed(); });
  EXPECT_EQ(ends.landing1.signals().size(), 1U);
}

TEST(OneRail, ALostSocketOfSeveralIsALostPeer) {
  HandMade ends({0, 0}, 64);
  ::shutdown(ends.sockets[0][1], SHUT_RDWR);
  run_until(ends.engine0.get(), ends.engine1.get(),
            [&] { return !ends.landing0.ends().empty() && !ends.landing1.ends().empty(); });
}

}  // namespace
}  // namespace tessera::tcp
