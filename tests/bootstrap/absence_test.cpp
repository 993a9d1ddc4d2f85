// Ranks and roots that are missing or die.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"
#include "bootstrap/rendezvous.h"
#include "comm/late.h"

namespace tessera::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Absence, AtTheDeadlineAllThatJoinedLearnWhoIsMissing) {
  std::vector<JoinOptions> options = ranks_of(8);
  options.erase(options.begin() + 5);
  options.erase(options.begin() + 2);
  const auto results = join_all(new_id(), options, Deadline::after(milliseconds(1500)));
  ASSERT_EQ(results.size(), 6u);
  for (const auto& result : results) {
    EXPECT_EQ(result.status().code(), Code::kTimeout);
    EXPECT_THAT(result.status().message(), HasSubstr("ranks 2, 5 of 8 have not joined within"));
  }
}

TEST(Absence, AVeryShortDeadlineEndsInATimeoutToo) {
  const auto result = join(new_id(), {0, 2, {}}, Deadline::after(milliseconds(0)));
  EXPECT_EQ(result.status().code(), Code::kTimeout) << result.status().message();
}

TEST(Absence, AfterAWhileTheLogSaysWhoIsMissing) {
  bootstrap::RootOptions options;
  options.notice = milliseconds(1);
  auto listener = bootstrap::listen_at(bootstrap::make_address(in_addr{htonl(INADDR_LOOPBACK)}, 0));
  ASSERT_TRUE(listener.ok());
  bootstrap::IdContent content;
  content.address = listener.value().address;
  ASSERT_TRUE(bootstrap::start_root(std::move(listener).value(), content.secret, options).ok());
  const UniqueId id = bootstrap::encode(content);
  std::optional<Result<Membership>> result;
  std::thread rank_one([&] { result = join(id, {1, 3, {}}, Deadline::after(milliseconds(500))); });
  const Deadline deadline = soon();
  std::string seen;
  while (seen.find("ranks 0, 2 of 3 have not joined") == std::string::npos && !deadline.passed()) {
    seen = log::last_warning();
    std::this_thread::yield();
  }
  EXPECT_THAT(seen, AllOf(HasSubstr("rendezvous at 127.0.0.1:"),
                          HasSubstr("ranks 0, 2 of 3 have not joined")));
  rank_one.join();
  EXPECT_EQ(result->status().code(), Code::kTimeout);
}

TEST(Absence, ARootThatHasNoDescriptorForARankSaysSoToThoseThatWait) {
  const UniqueId id = new_id();
  const Fd first = connect_raw(id);
  bootstrap::Hello hello = hello_of(0, 2);
  hello.wait_ms = 500;
  send_raw(first, frame_of(id, read_nonce(first), hello));
  const bootstrap::SocketAddress to = content_of(id).address;
  const Fd second(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const int taken = ::dup(second.get());  // the lowest that is free
  ::close(taken);
  const rlimit none = {static_cast<rlim_t>(taken), old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(::connect(second.get(), to.get(), to.bytes), 0);
  const Status reply = read_reply(first);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(reply.code(), Code::kTimeout);
  EXPECT_THAT(reply.message(),
              AllOf(HasSubstr("rank 1 of 2 has not joined"),
                    HasSubstr("the root cannot accept connections: Too many open files"),
                    HasSubstr("ulimit -n")));
}

TEST(Absence, ARankThatDiesWhileOthersWaitIsNamedAtOnce) {
  test::Late<UniqueId> given;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const UniqueId id = given.take().value_or(UniqueId{});
    const Fd fd = connect_raw(id);
    send_raw(fd, frame_of(id, read_nonce(fd), hello_of(1, 3)));
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  const UniqueId id = new_id();
  given.give(id, 1);
  const Fd read_end(ready[0]);
  const Fd write_end(ready[1]);
  char byte;
  ASSERT_EQ(::read(read_end.get(), &byte, 1), 1);
  std::optional<Result<Membership>> result;
  std::thread rank_zero([&] { result = join(id, {0, 3, {}}, soon()); });
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  rank_zero.join();
  EXPECT_EQ(result->status().code(), Code::kRemote);
  EXPECT_THAT(result->status().message(), HasSubstr(fmt::format("rank 1 (pid {} on ", child)));
  EXPECT_THAT(result->status().message(), HasSubstr("left before all 3 ranks had joined"));
}

// The child makes an id, sends it through the pipe and waits to be killed.
pid_t start_root_process(UniqueId& id) {
  int channel[2];
  if (::pipe(channel) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    const UniqueId made = new_id();
    if (::write(channel[1], made.data(), made.size()) != static_cast<ssize_t>(made.size())) {
      ::_exit(1);
    }
    for (;;) ::pause();
  }
  const Fd read_end(channel[0]);
  const Fd write_end(channel[1]);
  EXPECT_EQ(::read(read_end.get(), id.data(), id.size()), static_cast<ssize_t>(id.size()));
  return child;
}

TEST(Absence, ARootProcessThatIsKilledIsNoticedByItsRanks) {
  UniqueId id;
  const pid_t child = start_root_process(id);
  ASSERT_GT(child, 0);
  std::vector<std::optional<Result<Membership>>> results(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      results[static_cast<size_t>(rank)] = join(id, {rank, 3, {}}, soon());
    });
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (std::thread& rank : ranks) rank.join();
  for (const auto& result : results) {
    EXPECT_EQ(result->status().code(), Code::kRemote);
    EXPECT_THAT(result->status().message(), HasSubstr(fmt::format("(pid {}) has ended", child)));
  }
}

TEST(Absence, AnIdThatWasUsedUpIsRefused) {
  const UniqueId id = new_id();
  expect_all_joined(join_all(id, ranks_of(2)));
  const auto again = join(id, {0, 2, {}}, soon());
  EXPECT_EQ(again.status().code(), Code::kRemote);
  EXPECT_THAT(again.status().message(), HasSubstr("the id was used before"));
}

TEST(Absence, ARootThatNobodyVisitsEndsByItself) {
  const size_t before = open_descriptors();
  Config config;
  config.timeout = milliseconds(2);  // the root waits 20 times as long
  new_id(config);
  EXPECT_TRUE(descriptors_return_to(before));
}

}  // namespace
}  // namespace tessera::testing
