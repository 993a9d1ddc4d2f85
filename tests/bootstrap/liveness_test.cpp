#include "comm/liveness.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"
#include "bootstrap/rendezvous.h"

namespace tessera::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A child that waits to be killed, described as the given rank.
class Child {
 public:
  explicit Child(int rank) {
    pid_ = ::fork();
    if (pid_ == 0) {
      for (;;) ::pause();
    }
    member_ = bootstrap::describe_self(rank);
    member_.pid = pid_;
    const auto state = bootstrap::look_at_process(pid_);
    member_.process =
        bootstrap::process_token(pid_, member_.pid_namespace, state ? state->start_time : 0);
  }
  Child(const Child&) = delete;
  ~Child() { end(); }

  const Member& member() const { return member_; }
  // Leaves a zombie.
  void kill() const { signal(SIGKILL, WEXITED); }
  // Returns when the process is in the state that follows.
  void signal(int number, int state) const {
    ::kill(pid_, number);
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, state | WNOWAIT);
  }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  Member member_;
};

Liveness watch(const std::vector<Member>& members, int own_rank) {
  Result<Liveness> liveness = Liveness::watch(members, own_rank);
  EXPECT_TRUE(liveness.ok()) << liveness.status().message();
  return std::move(liveness).value();
}

TEST(Liveness, RanksOfTheOwnProcessAlwaysLive) {
  std::vector<Member> members;
  for (int rank = 0; rank < 4; ++rank) members.push_back(bootstrap::describe_self(rank));
  EXPECT_EQ(watch(members, 2).dead(), -1);
}

TEST(Liveness, AZombieIsDead) {
  const Child child(1);
  const Liveness liveness = watch({bootstrap::describe_self(0), child.member()}, 0);
  EXPECT_EQ(liveness.dead(), -1);
  child.kill();
  EXPECT_EQ(liveness.dead(), 1);
}

Status overdue() { return {Code::kTimeout, "rank 1 does not come"}; }

TEST(Liveness, AStoppedProcessIsNamedAsTheReasonWhyRanksAreLate) {
  const Child child(1);
  const Liveness liveness = watch({bootstrap::describe_self(0), child.member()}, 0);
  child.signal(SIGSTOP, WSTOPPED);
  const Status why = liveness.explain("rank 0", overdue());
  EXPECT_EQ(liveness.dead(), -1);
  EXPECT_EQ(why.code(), Code::kRemote);
  const int pid = child.member().pid;
  EXPECT_THAT(
      why.message(),
      AllOf(HasSubstr(fmt::format("rank 0: the process of rank 1 (pid {}) is stopped", pid)),
            HasSubstr(fmt::format("kill -CONT {}", pid)), HasSubstr("rank 1 does not come")));
}

TEST(Liveness, AProcessThatADebuggerHoldsIsNamed) {
  const Child child(1);
  const Liveness liveness = watch({bootstrap::describe_self(0), child.member()}, 0);
  if (::ptrace(PTRACE_SEIZE, child.member().pid, 0, 0) != 0) GTEST_SKIP() << "ptrace is forbidden";
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, child.member().pid, 0, 0), 0);
  int state;
  ASSERT_EQ(::waitpid(child.member().pid, &state, __WALL), child.member().pid);
  EXPECT_EQ(liveness.explain("rank 0", overdue()).code(), Code::kRemote);
}

TEST(Liveness, OfSeveralStoppedProcessesTheLowestIsNamedAndAllAreCounted) {
  const Child one(1);
  const Child two(2);
  const Child three(3);
  const Liveness liveness =
      watch({bootstrap::describe_self(0), one.member(), two.member(), three.member()}, 0);
  two.signal(SIGSTOP, WSTOPPED);
  three.signal(SIGSTOP, WSTOPPED);
  EXPECT_THAT(liveness.explain("rank 0", overdue()).message(),
              AllOf(HasSubstr("the process of rank 2 (pid"), HasSubstr("is stopped (2 in all)")));
}

TEST(Liveness, WhoRunsOrGoesOnOrHasAnotherPidNamespaceIsNoReason) {
  const Child child(1);
  const Child stranger(2);
  Member elsewhere = stranger.member();
  elsewhere.pid_namespace ^= 1;
  elsewhere.process ^= 1;
  const Liveness liveness = watch({bootstrap::describe_self(0), child.member(), elsewhere}, 0);
  stranger.signal(SIGSTOP, WSTOPPED);
  child.signal(SIGSTOP, WSTOPPED);
  child.signal(SIGCONT, WCONTINUED);
  const Status why = liveness.explain("rank 0", overdue());
  EXPECT_EQ(why.code(), Code::kTimeout);
  EXPECT_EQ(why.message(), overdue().message());
}

TEST(Liveness, AReapedChildIsDead) {
  Child child(0);
  const Liveness liveness = watch({child.member(), bootstrap::describe_self(1)}, 1);
  EXPECT_EQ(liveness.dead(), -1);
  child.end();
  EXPECT_EQ(liveness.dead(), 0);
}

TEST(Liveness, TheLowestDeadRankIsNamed) {
  const Child one(1);
  const Child two(2);
  const Child three(3);
  const Liveness liveness =
      watch({bootstrap::describe_self(0), one.member(), two.member(), three.member()}, 0);
  three.kill();
  EXPECT_EQ(liveness.dead(), 3);
  two.kill();
  EXPECT_EQ(liveness.dead(), 2);
}

TEST(Liveness, RanksThatShareAProcessDieAsTheLowestOfThem) {
  const Child child(1);
  Member second = child.member();
  second.rank = 2;
  const Liveness liveness = watch({bootstrap::describe_self(0), child.member(), second}, 0);
  child.kill();
  EXPECT_EQ(liveness.dead(), 1);
}

TEST(Liveness, AProcessThatEndedBeforeTheWatchIsDead) {
  Child child(1);
  child.end();
  EXPECT_EQ(watch({bootstrap::describe_self(0), child.member()}, 0).dead(), 1);
}

TEST(Liveness, AReusedPidIsNotTakenForThePeer) {
  const Child child(1);
  Member member = child.member();
  member.process ^= 1;  // the same pid, started at another time
  EXPECT_EQ(watch({bootstrap::describe_self(0), member}, 0).dead(), 1);
}

TEST(Liveness, AProcessOfAnotherPidNamespaceIsNotJudged) {
  Member member = bootstrap::describe_self(1);
  member.pid_namespace ^= 1;
  member.process ^= 1;
  member.pid = 4'000'000;
  EXPECT_EQ(watch({bootstrap::describe_self(0), member}, 0).dead(), -1);
}

TEST(Liveness, MoreThanOneBatchOfProcessesIsWatched) {
  std::vector<std::unique_ptr<Child>> children;
  std::vector<Member> members = {bootstrap::describe_self(0)};
  for (int rank = 1; rank <= 150; ++rank) {
    children.push_back(std::make_unique<Child>(rank));
    members.push_back(children.back()->member());
  }
  const Liveness liveness = watch(members, 0);
  EXPECT_EQ(liveness.dead(), -1);
  children[144]->kill();
  EXPECT_EQ(liveness.dead(), 145);
}

TEST(Liveness, NoDescriptorIsLeftBehind) {
  const size_t before = open_descriptors();
  {
    const Child child(1);
    const Liveness liveness = watch({bootstrap::describe_self(0), child.member()}, 0);
    EXPECT_EQ(liveness.dead(), -1);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Liveness, WhoHasNoDescriptorForAWatchIsToldWhyAndTakesNobodyForDead) {
  const Child child(1);
  const std::vector<Member> members = {bootstrap::describe_self(0), child.member()};
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit none = {0, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<Liveness> liveness = Liveness::watch(members, 0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(liveness.status().code(), Code::kSystem);
  EXPECT_THAT(liveness.status().message(),
              AllOf(HasSubstr("rank 0 cannot watch rank 1: pidfd_open: Too many open files"),
                    HasSubstr("ulimit -n")));
}

TEST(Liveness, AnOwnRankOutsideTheListIsAnError) {
  EXPECT_EQ(Liveness::watch({bootstrap::describe_self(0)}, 1).status().code(), Code::kInternal);
}

TEST(Identity, IsTheSameForThreadsAndDifferentForAChild) {
  const Member self = bootstrap::describe_self(0);
  EXPECT_EQ(bootstrap::describe_self(1).process, self.process);
  const Child child(1);
  EXPECT_NE(child.member().process, self.process);
  EXPECT_EQ(child.member().host, self.host);
}

TEST(Identity, AProcessThatDoesNotExistHasNoState) {
  Child child(0);
  const int pid = child.member().pid;
  EXPECT_TRUE(bootstrap::look_at_process(pid).has_value());
  child.end();
  EXPECT_FALSE(bootstrap::look_at_process(pid).has_value());
}

}  // namespace
}  // namespace tessera::testing
