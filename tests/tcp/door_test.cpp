// Callers that the door must bear for the whole job.
#include "transports/tcp/door.h"

#include <sys/socket.h>

#include "base/deadline.h"
#include "tcp/support/job.h"

namespace tessera::tcp {
namespace {

constexpr size_t kAtOnce = 3;

class OpenDoor : public ::testing::Test {
 protected:
  OpenDoor() : door_(self_, open_listener(loopback_config()), {.at_once = kAtOnce}) {}

  const Endpoint& address() const { return door_.listener().endpoints()[0]; }

  Fd stranger() const {
    const SocketAddress to = socket_address(address());
    Fd fd(::socket(address().family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), to.get(), to.bytes), 0);
    const std::string garbage(sizeof(Hello), 'x');
    EXPECT_EQ(::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(garbage.size()));
    return fd;
  }

  void serve_until(Call& call, const std::function<bool()>& done) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (!done() && !deadline.passed()) ASSERT_TRUE(door_.serve({&call}, 10).ok());
    EXPECT_TRUE(done());
  }

  const Self self_{1, kSecret};
  Door door_;
};

TEST_F(OpenDoor, LetsInAFewAtOnceAndKnowsThatMoreMayStandOutside) {
  std::vector<Fd> crowd;
  for (size_t i = 0; i < 2 * kAtOnce; ++i) crowd.push_back(stranger());
  for (size_t served = 1; served <= 2; ++served) {
    ASSERT_TRUE(door_.serve({}, 0).ok());
    EXPECT_TRUE(door_.take_seated(Door::Clock::now()).empty());
    EXPECT_EQ(door_.turned_away(), served * kAtOnce);
    EXPECT_TRUE(door_.busy());
  }
  ASSERT_TRUE(door_.serve({}, 0).ok());
  EXPECT_FALSE(door_.busy());
}

TEST_F(OpenDoor, DropsAPeerThatHasProvedItselfAndAsksForNoSeatWithinAMinute) {
  const Self caller{0, kSecret};
  Call call(caller, 1, {address(), {}});
  serve_until(call, [&] { return call.state() == Call::State::kVerified; });
  ASSERT_TRUE(door_.serve({}, 0).ok());  // the proof
  Door::Clock::time_point now;
  door_.take_seated(now);
  now += std::chrono::seconds(30);
  door_.take_seated(now);
  EXPECT_TRUE(door_.busy());
  now += std::chrono::seconds(31);
  door_.take_seated(now);
  EXPECT_FALSE(door_.busy());
  serve_until(call, [&] { return call.failed(); });
  EXPECT_EQ(door_.turned_away(), 0U);  // not a stranger
}

}  // namespace
}  // namespace tessera::tcp
