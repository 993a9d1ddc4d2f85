// What ranks are told when something goes wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <mutex>

#include "comm/processes.h"
#include "comm/ranks.h"

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs `call_of(rank)` on every rank; all must end with `code` and a text that holds all of
// `words`.
template <class CallOf>
void expect_all_told(int ranks, Code code, const std::vector<std::string>& words, CallOf call_of) {
  run_ranks(ranks, quick_options(400), [&](Communicator& comm) {
    std::vector<float> in(1 << 16, 1.0F), out(1 << 18);
    Call call = call_of(comm.rank());
    call.send = in.data();
    call.recv = out.data();
    Status status = run(comm, call);
    if (status.ok()) {  // a rank that could finish is told by its next call
      status = run(comm, all_reduce(in.data(), out.data(), 1));
    }
    EXPECT_EQ(status.code(), code) << status.message();
    for (const std::string& word : words) EXPECT_THAT(status.message(), HasSubstr(word));
  });
}

class MessageSizes : public testing::TestWithParam<size_t> {};

TEST_P(MessageSizes, RanksThatPassDifferentCountsAreAllToldBothCounts) {
  const size_t count = GetParam();
  expect_all_told(
      3, Code::kInvalidUsage, {std::to_string(count), std::to_string(count + 1), "rank 1"},
      [&](int rank) { return all_reduce(nullptr, nullptr, rank == 1 ? count + 1 : count); });
}

TEST_P(MessageSizes, RanksThatCallDifferentCollectivesAreAllToldBothNames) {
  const size_t count = GetParam();
  expect_all_told(3, Code::kInvalidUsage, {"all-reduce", "all-gather"}, [&](int rank) {
    Call call = all_reduce(nullptr, nullptr, count);
    if (rank == 2) call.collective = Collective::kAllGather;
    return call;
  });
}

TEST_P(MessageSizes, RanksThatPassDifferentTypesAreAllToldBothTypes) {
  expect_all_told(2, Code::kInvalidUsage, {"float32", "int32"}, [&](int rank) {
    Call call = all_reduce(nullptr, nullptr, GetParam());
    if (rank == 1) call.type = DataType::kInt32;
    return call;
  });
}

TEST_P(MessageSizes, RanksThatPassDifferentOperationsAreAllToldBoth) {
  expect_all_told(2, Code::kInvalidUsage, {"sum", "max"}, [&](int rank) {
    Call call = all_reduce(nullptr, nullptr, GetParam());
    if (rank == 1) call.op = ReduceOp::kMax;
    return call;
  });
}

TEST_P(MessageSizes, RanksThatPassDifferentRootsAreAllToldBoth) {
  expect_all_told(3, Code::kInvalidUsage, {"root 0", "root 1"}, [&](int rank) {
    Call call = all_reduce(nullptr, nullptr, GetParam());
    call.collective = Collective::kBroadcast;
    call.root = rank == 1 ? 1 : 0;
    return call;
  });
}

TEST_P(MessageSizes, ARankThatNeverCallsIsNamedAfterTheDeadline) {
  run_ranks(3, quick_options(300), [&](Communicator& comm) {
    if (comm.rank() == 2) {
      while (comm.error().ok()) std::this_thread::yield();  // alive, but not calling
      EXPECT_THAT(comm.error().message(), HasSubstr("rank 2"));
      return;
    }
    std::vector<float> in(GetParam()), out(GetParam());
    const Status status = run(comm, all_reduce(in.data(), out.data(), GetParam()));
    EXPECT_EQ(status.code(), Code::kInvalidUsage);
    EXPECT_THAT(status.message(), HasSubstr("rank 2 has not called it"));
  });
}

TEST(Faults, ADisagreementThatNobodyNoticedIsFoundWhenTheCommunicatorIsFinalized) {
  run_ranks(2, quick_options(2000), [](Communicator& comm) {
    float value = 0;
    Call call = all_reduce(&value, &value, 1);
    call.collective = Collective::kBroadcast;
    call.root = comm.rank();  // each thinks that it is the root, and waits for nobody
    ASSERT_TRUE(run(comm, call).ok());
    const Status status = comm.finalize();
    EXPECT_EQ(status.code(), Code::kInvalidUsage);
    EXPECT_THAT(status.message(), HasSubstr("root 0"));
    EXPECT_THAT(status.message(), HasSubstr("root 1"));
  });
}

INSTANTIATE_TEST_SUITE_P(EagerAndBulk, MessageSizes, testing::Values(4, 20'000));

TEST(Faults, AKilledRankIsNamedToAllOthers) {
  for (const size_t count : {size_t{4}, size_t{20'000}, size_t{1} << 20}) {
    const std::vector<Ending> endings = run_processes(4, quick_options(), [&](Communicator& comm) {
      std::vector<float> in(count, 1.0F), out(count);
      for (int i = 0; i < 200; ++i) {
        if (comm.rank() == 2 && i == 100) raise(SIGKILL);
        const Status status = run(comm, all_reduce(in.data(), out.data(), count));
        if (status.ok()) continue;
        if (status.code() != Code::kRemote) return "wrong code: " + status.message();
        if (status.message().find("rank 2") == std::string::npos &&
            status.message().find("process") == std::string::npos)
          return "wrong text: " + status.message();
        return std::string();
      }
      return std::string("no error was reported");
    });
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == 2) {
        EXPECT_TRUE(endings[rank].killed);
      } else {
        EXPECT_EQ(endings[rank].exit_code, 0) << "rank " << rank << ": " << endings[rank].text;
      }
    }
  }
}

TEST(Faults, SurvivorsOfAKilledRankShrinkAndGoOn) {
  const std::vector<Ending> endings = run_processes(4, quick_options(), [](Communicator& comm) {
    std::vector<float> in(5000, 1.0F), out(5000);
    Status status;
    for (int i = 0; i < 50 && status.ok(); ++i) {
      if (comm.rank() == 1 && i == 20) raise(SIGKILL);
      status = run(comm, all_reduce(in.data(), out.data(), in.size()));
    }
    if (status.ok()) return std::string("no error was reported");
    const std::vector<int> excluded = {1};
    Result<std::unique_ptr<Communicator>> smaller = comm.shrink(excluded, comm.options());
    if (!smaller.ok()) return "shrink: " + smaller.status().message();
    status = run(*smaller.value(), all_reduce(in.data(), out.data(), in.size()));
    if (!status.ok()) return "after shrink: " + status.message();
    return out[17] == 3.0F ? std::string() : "wrong sum " + std::to_string(out[17]);
  });
  for (const int rank : {0, 2, 3})
    EXPECT_EQ(endings[rank].exit_code, 0) << "rank " << rank << ": " << endings[rank].text;
}

TEST(Faults, AFailedSplitLeavesNothingBehindThatALaterSetUpCallCouldTake) {
  run_ranks(3, quick_options(1500), [](Communicator& comm) {
    // Rank 2 does not take part at first: the others give up.
    if (comm.rank() != 2) {
      EXPECT_FALSE(comm.split(0, 0, comm.options()).ok());
    }
    CommOptions patient = quick_options();
    std::vector<int32_t> mine{1 << comm.rank()}, sum(1);
    Result<std::unique_ptr<Communicator>> pair = std::unique_ptr<Communicator>();
    const std::vector<int> excluded = {2};
    if (comm.rank() != 2) {
      pair = comm.shrink(excluded, patient);
      ASSERT_TRUE(pair.ok()) << pair.status().message();
      Call call = all_reduce(mine.data(), sum.data(), 1);
      call.type = DataType::kInt32;
      ASSERT_TRUE(run(*pair.value(), call).ok());
      EXPECT_EQ(sum[0], 0b011);
    }
  });
}

// A rank that has given up a call may be in the next one before its peers have noticed.
TEST(Faults, AShrinkIsNotMissedByARankThatIsStillInASplit) {
  std::barrier<> over(3);
  run_ranks(3, quick_options(20'000), [&](Communicator& comm) {
    const std::vector<int> excluded = {2};
    if (comm.rank() == 1) {
      const auto split = comm.split(0, 0, comm.options());
      EXPECT_EQ(split.status().code(), Code::kInvalidUsage);
      EXPECT_THAT(split.status().message(),
                  HasSubstr("rank 1: split of 3 ranks: rank 0 is in another call, shrink of 2"));
    }
    if (comm.rank() != 2) {
      const auto pair = comm.shrink(excluded, comm.options());
      EXPECT_TRUE(pair.ok()) << pair.status().message();
    }
    over.arrive_and_wait();
  });
}

TEST(Faults, WhoLeftBecauseAnotherWasMissingIsNamedTogetherWithThatOne) {
  run_ranks(3, quick_options(20'000), [&](Communicator& comm) {
    std::vector<float> in(100), out(100);
    if (comm.rank() == 1) {
      EXPECT_FALSE(run(comm, all_reduce(in.data(), out.data(), 100)).ok());
    }
    if (comm.rank() != 0) return;
    const std::vector<int> excluded = {2};
    const auto rest = comm.shrink(excluded, comm.options());
    EXPECT_THAT(rest.status().message(),
                AllOf(HasSubstr("rank 1 has destroyed its communicator; before that: rank 1: "),
                      HasSubstr("rank 2")));
  });
}

TEST(Faults, AfterASplitThatFailedForTheFirstRankTheOthersShrink) {
  run_ranks(4, quick_options(20'000), [&](Communicator& comm) {
    if (comm.rank() == 0) return;
    EXPECT_FALSE(comm.split(0, 0, comm.options()).ok());
    const std::vector<int> excluded = {0};
    const auto rest = comm.shrink(excluded, comm.options());
    EXPECT_TRUE(rest.ok()) << rest.status().message();
  });
}

TEST(Faults, RanksInDifferentSetUpCallsAllFailAtOnceAndNameTheCalls) {
  std::barrier<> over(2);
  run_ranks(2, quick_options(20'000), [&](Communicator& comm) {
    if (comm.rank() == 0) {
      const auto split = comm.split(0, 0, comm.options());
      EXPECT_THAT(split.status().message(), HasSubstr("rank 1 is in another call, finalize"));
    } else {
      EXPECT_THAT(comm.finalize().message(), HasSubstr("rank 0 is in another call, split"));
    }
    over.arrive_and_wait();
  });
}

TEST(Faults, ARankThatExitsAfterItsLastCallDoesNotSpoilThatCall) {
  for (int round = 0; round < 10; ++round) {
    const std::vector<Ending> endings = run_processes(3, quick_options(), [](Communicator& comm) {
      std::vector<float> in(1000, 1.0F), out(1000);
      for (int i = 0; i < 2; ++i) {
        const Status status = run(comm, all_reduce(in.data(), out.data(), in.size()));
        if (!status.ok()) _exit(3);
      }
      _exit(0);  // without destroying the communicator
      return std::string();
    });
    for (const Ending& ending : endings) EXPECT_EQ(ending.exit_code, 0);
  }
}

TEST(Faults, AbortEndsAWaitingCallAndTellsThePeers) {
  run_ranks(3, quick_options(), [](Communicator& comm) {
    std::vector<float> in(100), out(100);
    if (comm.rank() == 0) {
      comm.abort();
      EXPECT_FALSE(comm.error().ok());
      return;
    }
    const Status status = run(comm, all_reduce(in.data(), out.data(), in.size()));
    EXPECT_EQ(status.code(), Code::kRemote);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 aborted"));
  });
}

TEST(Faults, ARankThatDestroysItsCommunicatorIsNamed) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    if (comm.rank() == 1) return;  // destroyed on return
    std::vector<float> in(100), out(100);
    const Status status = run(comm, all_reduce(in.data(), out.data(), in.size()));
    EXPECT_EQ(status.code(), Code::kRemote);
    EXPECT_THAT(status.message(), HasSubstr("rank 1 has destroyed"));
  });
}

}  // namespace
}  // namespace tessera::test
