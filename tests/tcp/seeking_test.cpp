// How rails are sought, look by look, at times of the test's choice.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include "base/deadline.h"
#include "base/log.h"
#include "tcp/support/job.h"
#include "transports/tcp/reunion.h"

namespace tessera::tcp {
namespace {

constexpr std::chrono::seconds kPatienceOfUser{60};
constexpr std::chrono::seconds kApart{12};

std::vector<std::unique_ptr<Link>> two_rails() {
  std::vector<std::unique_ptr<Link>> links;
  for (const int rail : {0, 1}) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ::close(ends[1]);
    auto link = std::make_unique<Link>();
    link->rail = rail;
    link->route = "at the start";
    link->fd = Fd(ends[0]);
    links.push_back(std::move(link));
  }
  return links;
}

struct End {
  explicit End(int own) : port(links, landing, own, 1 - own, "the peer", two_rails()) {}
  Link& second() { return *port.sockets()[1]; }

  MemoryLanding landing{64};
  Links links;
  TcpPort port;
};

// Rank 0 dials; its second rail is lost.
class Seeking : public ::testing::Test {
 protected:
  explicit Seeking(Listener listener = open_listener(loopback_config()))
      : door_(listener.endpoints()[0]),
        called_({1, kSecret}, std::move(listener), kPatienceOfUser) {
    EXPECT_TRUE(dialer_.links.open().ok());
    seeking_.watch(dialer_.port, {{door_, {}}, {door_, {}}});
    called_.watch(acceptor_.port, {});
    dialer_.port.lost(dialer_.second(), "cut");
  }

  // The links that are back after so many short calls of both ranks. `waiting`: this one of them
  // is in a call all the time.
  std::vector<Link*> back_after(int calls, Reunion* waiting = nullptr) {
    std::vector<Link*> back;
    for (int call = 0; call < calls; ++call) {
      for (auto waited = std::chrono::seconds(0); waited < kApart; ++waited) {
        now_ += std::chrono::seconds(1);
        if (waiting != nullptr) waiting->proceed(now_, back);
      }
      seeking_.proceed(now_, back);
      called_.proceed(now_, back);
    }
    return back;
  }

  void expect_both_back(const std::vector<Link*>& back) {
    EXPECT_THAT(back, testing::UnorderedElementsAre(&dialer_.second(), &acceptor_.second()));
    EXPECT_TRUE(dialer_.second().alive && acceptor_.second().alive);
  }

  const Endpoint door_;
  End dialer_{0}, acceptor_{1};
  Reunion seeking_{{0, kSecret}, Listener(), kPatienceOfUser};
  Reunion called_;
  Reunion::Clock::time_point now_ = Reunion::Clock::now();
};

TEST_F(Seeking, SucceedsInShortCallsHoweverFarApart) {
  ASSERT_TRUE(acceptor_.links.open().ok());
  expect_both_back(back_after(10));
}

TEST_F(Seeking, SucceedsWhileTheDialerWaitsForAPeerThatCallsSeldom) {
  ASSERT_TRUE(acceptor_.links.open().ok());
  expect_both_back(back_after(10, &seeking_));
}

TEST_F(Seeking, SucceedsWhileADialerThatCallsSeldomIsWaitedFor) {
  ASSERT_TRUE(acceptor_.links.open().ok());
  expect_both_back(back_after(10, &called_));
}

// Its links are not open.
TEST_F(Seeking, ASocketThatCannotBeWatchedIsNotBack) {
  const std::vector<Link*> back = back_after(10);
  EXPECT_THAT(back, testing::Not(testing::Contains(&acceptor_.second())));
  EXPECT_FALSE(acceptor_.second().alive);
  EXPECT_FALSE(acceptor_.port.closed());
}

TEST_F(Seeking, ADialerThatHasGivenUpTakesNoHealthySocketsSeat) {
  ASSERT_TRUE(acceptor_.links.open().ok());
  const Self self{0, kSecret};
  std::vector<Link*> back;
  {
    Call call(self, 1, {door_, {}});
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (call.state() != Call::State::kVerified && !deadline.passed()) {
      called_.proceed(now_, back);
      pollfd polled{call.fd(), call.events(), 0};
      if (::poll(&polled, 1, 0) > 0) call.serve();
    }
    call.take({1, 2, 1, 0});
    ASSERT_EQ(call.state(), Call::State::kSeated);
  }
  for (int look = 0; look < 3; ++look) called_.proceed(now_, back);
  EXPECT_TRUE(back.empty());
  EXPECT_TRUE(acceptor_.second().alive);
  EXPECT_EQ(acceptor_.second().route, "at the start");
}

TEST_F(Seeking, TellsOnceWhyARailDoesNotComeBack) {
  const std::string file = testing::TempDir() + "seeking_log";
  std::filesystem::remove(file);
  const log::Level before = log::level();
  log::configure(log::Level::kInfo, file);
  Reunion alone({0, {9, 9, 9}}, Listener(), kPatienceOfUser);
  alone.watch(dialer_.port, {{door_, {}}, {door_, {}}});
  std::vector<Link*> back;
  for (int look = 0; look < 30; ++look) {
    now_ += kApart;
    alone.proceed(now_, back);
    called_.proceed(now_, back);
  }
  log::configure(before, "");
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string reason = "does not know the secret";
  const size_t first = text.find(reason);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(reason, first + 1), std::string::npos) << text;
  EXPECT_THAT(text, testing::HasSubstr("rail 1 to rank 1"));
  EXPECT_TRUE(back.empty());
}

}  // namespace
}  // namespace tessera::tcp
