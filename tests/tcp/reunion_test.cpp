// Rails that come back after they were lost.
#include <sys/socket.h>

#include <random>

#include "base/deadline.h"
#include "tcp/support/job.h"
#include "transports/tcp/contact.h"

namespace tessera::tcp {
namespace {

constexpr size_t kBytes = 256 * 1024;

class ReturningRails : public ::testing::Test {
 protected:
  explicit ReturningRails(const Secret& secret = kSecret) : ends_({0, 1, 0, 1}, kBytes, &secret) {}

  template <class Done>
  void run_until(Done done) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (!done()) {
      ASSERT_FALSE(deadline.passed());
      ends_.engine0->progress();
      ends_.engine1->progress();
    }
  }

  bool flushed() const { return ends_.engine0->flushed() && ends_.engine1->flushed(); }

  void cut(int rail) {
    for (const auto& link : ends_.port(0).sockets())
      if (link->alive && link->rail == rail) ::shutdown(link->fd.get(), SHUT_RDWR);
  }

  int living(int of_rank) {
    const auto& sockets = ends_.port(of_rank).sockets();
    return static_cast<int>(std::count_if(sockets.begin(), sockets.end(),
                                          [](const auto& link) { return link->alive; }));
  }

  // In both directions; random sizes. Puts that overlap follow each other.
  void post_some() {
    run_until([&] { return flushed(); });
    for (const int rank : {0, 1}) {
      const size_t size = 1 + random_() % (random_() % 3 == 0 ? kBytes : 5000);
      const size_t at = random_() % (kBytes - size + 1);
      Stream& out = streams_[rank];
      std::copy_n(noise_.begin() + random_() % kBytes, size, out.data.begin() + at);
      ends_.port(rank).put(at, out.data.data() + at, out.shadow.data() + at, size);
      ends_.port(rank).signal({0, ++out.posted, 0, {}});
    }
  }

  void expect_all_arrived() {
    run_until([&] { return flushed(); });
    expect_arrived(streams_[0], ends_.landing1);
    expect_arrived(streams_[1], ends_.landing0);
  }

  HandMade ends_;
  std::mt19937 random_{7};

 private:
  std::vector<std::byte> make_noise() {
    std::vector<std::byte> noise(2 * kBytes);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random_());
    return noise;
  }

  struct Stream {
    std::vector<std::byte> data = std::vector<std::byte>(kBytes);
    std::vector<std::byte> shadow = std::vector<std::byte>(kBytes);
    uint64_t posted = 0;
  };

  static void expect_arrived(const Stream& stream, MemoryLanding& landing) {
    EXPECT_TRUE(landing.memory() == stream.data);
    EXPECT_TRUE(landing.ends().empty());
    ASSERT_EQ(landing.signals().size(), stream.posted);
    for (size_t i = 0; i < stream.posted; ++i) EXPECT_EQ(landing.signals()[i].signal.value, i + 1);
  }

  const std::vector<std::byte> noise_ = make_noise();
  Stream streams_[2];
};

TEST_F(ReturningRails, BearTheLossOfTheOthers) {
  post_some();
  cut(1);
  run_until([&] { return living(0) == 2 && living(1) == 2; });
  run_until([&] { return ends_.whole(); });
  cut(0);
  post_some();
  expect_all_arrived();
}

TEST_F(ReturningRails, MayComeAndGoUnderTrafficAndNothingIsLostDoubledOrOutOfOrder) {
  constexpr int kCuts = 4;
  int cuts = 0;
  Deadline next = Deadline::after(std::chrono::milliseconds(5));
  run_until([&] {
    if (flushed()) post_some();
    if (cuts < kCuts && next.passed() && ends_.whole()) {
      cut(static_cast<int>(random_() % 2));
      ++cuts;
      next = Deadline::after(std::chrono::milliseconds(random_() % 50));
    }
    return cuts == kCuts && ends_.whole();
  });
  expect_all_arrived();
}

// What the dialer holds for dead may live at the other end.
TEST_F(ReturningRails, MayReplaceThoseThatAreNotMissedYet) {
  const Self self{0, kSecret};
  Call call(self, 1, {ends_.door, {}});
  post_some();
  bool seated = false;
  run_until([&] {
    pollfd polled{call.fd(), call.events(), 0};
    if (::poll(&polled, 1, 0) > 0) call.serve();
    if (call.state() == Call::State::kVerified) {
      call.take({1, 4, 1, 0});
      seated = true;
    }
    return call.state() == Call::State::kReady;
  });
  EXPECT_TRUE(seated);
  EXPECT_EQ(living(1), 4);
  run_until([&] { return living(0) < 4; });
  call.release();  // that was not rank 0's engine, which dials for itself
  run_until([&] { return ends_.whole(); });
  post_some();
  expect_all_arrived();
}

TEST_F(ReturningRails, TakeNoOtherSeatsThanAtTheStart) {
  const Self self{0, kSecret};
  for (const Seat seat : {Seat{1, 2, 1, 0}, Seat{1, 4, 0, 0}, Seat{71, 72, 1, 0}}) {
    Call call(self, 1, {ends_.door, {}});
    run_until([&] {
      pollfd polled{call.fd(), call.events(), 0};
      if (::poll(&polled, 1, 0) > 0) call.serve();
      if (call.state() == Call::State::kVerified) call.take(seat);
      return call.failed();
    });
    EXPECT_EQ(call.state(), Call::State::kSeated);
  }
  post_some();
  expect_all_arrived();
  EXPECT_TRUE(ends_.whole());
}

class WrongSecret : public ReturningRails {
 protected:
  WrongSecret() : ReturningRails({9, 9, 9}) {}
};

TEST_F(WrongSecret, BringsNothingBack) {
  HandMade control({0, 1, 0, 1}, kBytes, &kSecret);  // who knows it is back in this time
  for (auto* ends : {&ends_, &control}) ::shutdown(ends->sockets[0][1], SHUT_RDWR);
  bool cut_seen = false;
  const Deadline end = Deadline::after(std::chrono::milliseconds(3500));
  run_until([&] {
    control.engine0->progress();
    control.engine1->progress();
    cut_seen = cut_seen || !control.whole();
    return end.passed() && cut_seen && control.whole();
  });
  EXPECT_EQ(living(0), 3);
  EXPECT_EQ(living(1), 3);
  post_some();
  expect_all_arrived();
}

TEST_F(ReturningRails, AreNotSoughtOfAPeerThatHasGone) {
  ends_.engine1.reset();
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (ends_.landing0.ends().empty() && !deadline.passed()) ends_.engine0->progress();
  const Deadline later = Deadline::after(std::chrono::milliseconds(2500));
  while (!later.passed()) ends_.engine0->progress();
  EXPECT_EQ(ends_.landing0.ends().size(), 1U);
  EXPECT_EQ(living(0), 0);
}

}  // namespace
}  // namespace tessera::tcp
