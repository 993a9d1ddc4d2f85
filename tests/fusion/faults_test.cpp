// What goes wrong with tiles, ranks and launches is told by name.
#include <gmock/gmock.h>

#include <barrier>

#include "fusion/workload.h"

namespace tessera::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

FusedDescription small_sum() {
  FusedDescription d;
  d.rows = 16;
  d.cols = 8;
  d.tile_rows = d.tile_cols = 4;
  return d;
}

struct Buffers {
  std::vector<float> input = std::vector<float>(128, 1), output = std::vector<float>(128);
};

void report_all(FusedOperator& op, int64_t skip_row = -1, int64_t skip_col = -1) {
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t col = 0; col < 2; ++col) {
      if (row == skip_row && col == skip_col) continue;
      EXPECT_EQ(op.tile_done(row, col).message(), "");
    }
  }
}

TEST(FusedFaults, ATileReportedTwiceIsAnErrorThatNamesItAndIsNotCounted) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    const auto op = make_operator(comm, small_sum());
    Buffers b;
    for (int launch = 0; launch < 3; ++launch) {
      ASSERT_EQ(op->launch(b.input.data(), b.output.data()).message(), "");
      EXPECT_EQ(op->tile_done(2, 1).message(), "");
      const Status twice = op->tile_done(2, 1);
      EXPECT_EQ(twice.code(), Code::kInvalidUsage);
      EXPECT_THAT(twice.message(), HasSubstr("tile (2,1) was reported more than 1 time(s)"));
      report_all(*op, 2, 1);
      ASSERT_EQ(op->wait().message(), "");
      EXPECT_EQ(b.output[0], 2);
    }
  });
}

TEST(FusedFaults, ATileThatDoesNotExistIsAnError) {
  run_ranks(1, quick_options(), [](Communicator& comm) {
    const auto op = make_operator(comm, small_sum());
    for (const auto& [row, col] : {std::pair{4, 0}, {0, 2}, {-1, 0}, {0, -1}}) {
      const Status status = op->tile_done(row, col);
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr(fmt::format("no tile ({},{})", row, col)));
    }
  });
}

void leave_out_a_tile(Communicator& comm) {
  const auto op = make_operator(comm, small_sum());
  Buffers b;
  ASSERT_EQ(op->launch(b.input.data(), b.output.data()).message(), "");
  report_all(*op, comm.rank() == 1 ? 1 : -1, 1);
  const Status status = op->wait();
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr("rank 1: fused reduce-scatter of 16 x 8 float32: "
                                          "launch 1 made no progress"));
  EXPECT_THAT(status.message(), HasSubstr("1 of 8 tiles are missing: (1,1)"));
}

TEST(FusedFaults, TheDeadlineNamesTheTileThatNeverCame) {
  run_ranks(2, quick_options(400), leave_out_a_tile);
}

TEST(FusedFaults, TheDeadlineNamesTheTileToRanksOfOtherHosts) {
  run_ranks(2, quick_options(400), leave_out_a_tile, {0, 1});
}

TEST(FusedFaults, TheDeadlineNamesTheRankThatNeverLaunched) {
  run_ranks(2, quick_options(400), [](Communicator& comm) {
    const auto op = make_operator(comm, small_sum());
    Buffers b;
    if (comm.rank() == 0) {
      ASSERT_EQ(op->launch(b.input.data(), b.output.data()).message(), "");
      report_all(*op);
      const Status status = op->wait();
      EXPECT_EQ(status.code(), Code::kTimeout);
      EXPECT_THAT(status.message(), HasSubstr("wait for rank 1"));
    } else {
      while (comm.error().ok()) std::this_thread::yield();
      EXPECT_THAT(op->launch(b.input.data(), b.output.data()).message(),
                  HasSubstr("wait for rank 1"));
    }
  });
}

TEST(FusedFaults, AConsumerThatWaitsForRowsMeetsTheDeadlineToo) {
  run_ranks(2, quick_options(400), [](Communicator& comm) {
    const auto op = make_operator(comm, small_sum());
    EXPECT_EQ(op->rows_wait(0, 1).code(), Code::kInvalidUsage);  // not launched
    Buffers b;
    ASSERT_EQ(op->launch(b.input.data(), b.output.data()).message(), "");
    EXPECT_EQ(op->rows_wait(0, 9).code(), Code::kInvalidArgument);
    EXPECT_EQ(op->rows_wait(-1, 2).code(), Code::kInvalidArgument);
    EXPECT_EQ(op->rows_wait(8, 0).message(), "");
    EXPECT_THAT(op->rows_wait(0, 8).message(), HasSubstr("8 of 8 tiles are missing"));
  });
}

TEST(FusedFaults, AnAbortInTheMiddleEndsAllWaits) {
  std::barrier launched(2);
  run_ranks(2, quick_options(), [&](Communicator& comm) {
    const auto op = make_operator(comm, small_sum());
    Buffers b;
    ASSERT_EQ(op->launch(b.input.data(), b.output.data()).message(), "");
    EXPECT_EQ(op->tile_done(3, 0).message(), "");
    launched.arrive_and_wait();
    // The own abort is the user's doing, the peer's is not.
    const Code code = comm.rank() == 0 ? Code::kInvalidUsage : Code::kRemote;
    std::thread waiting([&] { EXPECT_EQ(op->wait().code(), code); });
    if (comm.rank() == 0) comm.abort();
    EXPECT_THAT(op->rows_wait(0, 8).message(), HasSubstr("aborted"));
    waiting.join();
    EXPECT_THAT(op->launch(b.input.data(), b.output.data()).message(),
                AnyOf(HasSubstr("aborted"), HasSubstr("under way")));
    EXPECT_EQ(op->close().message(), "");
  });
}

TEST(FusedFaults, AfterAWaitThatFailedNothingIsWrittenAnyMore) {
  run_ranks(1, quick_options(), [](Communicator& comm) {
    const auto op = make_operator(comm, small_sum());
    Buffers b;
    ASSERT_EQ(op->launch(b.input.data(), b.output.data()).message(), "");
    comm.revoke();
    EXPECT_FALSE(op->wait().ok());
    std::fill(b.output.begin(), b.output.end(), -7.0F);
    report_all(*op);
    EXPECT_EQ(b.output, std::vector<float>(128, -7.0F));
  });
}

// Where the ports are one thread's at a time.
TEST(FusedFaults, ACollectiveThatWaitsDoesNotKeepAnOperatorFromGoingOn) {
  for (const char* emulate : {"", "uniform:bandwidth=1GB/s,latency=10us"}) {
    CommOptions options = quick_options();
    options.config.emulate = emulate;
    const std::vector<int> hosts = {0, *emulate == '\0' ? 1 : 0};
    run_ranks(
        2, options,
        [](Communicator& comm) {
          const auto op = make_operator(comm, small_sum());
          Buffers b;
          std::vector<float> in(10, 1), out(10);
          std::thread stream(
              [&] { EXPECT_EQ(op->run(b.input.data(), b.output.data()).message(), ""); });
          const auto collective = [&] {
            EXPECT_EQ(run(comm, all_reduce(in.data(), out.data(), in.size())).message(), "");
          };
          if (comm.rank() == 0) {
            report_all(*op);
            collective();  // which rank 1 joins after the operator's end
            stream.join();
          } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            report_all(*op);
            stream.join();
            collective();
          }
          EXPECT_EQ(b.output[0], 2);
          EXPECT_EQ(out[9], 2);
        },
        hosts);
  }
}

TEST(FusedFaults, WhatOneRankAloneRefusesIsToldToAll) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    FusedDescription d = small_sum();
    if (comm.rank() == 1) d.output_ld = 7;
    const auto op = FusedOperator::create(host_rank(comm), d);
    ASSERT_FALSE(op.ok());
    EXPECT_THAT(op.status().message(), HasSubstr("leading dimensions 8 and 7"));
    if (comm.rank() == 0) {
      EXPECT_THAT(op.status().message(), HasSubstr("rank 1 refuses"));
    }
    const auto good = make_operator(comm, small_sum());  // the communicator goes on
    EXPECT_NE(good, nullptr);
  });
}

TEST(FusedFaults, RanksThatDescribeOperatorsDifferentlyAreToldSo) {
  run_ranks(3, quick_options(), [](Communicator& comm) {
    FusedDescription d = small_sum();
    d.tile_rows = comm.rank() == 2 ? 8 : 4;
    const auto op = FusedOperator::create(host_rank(comm), d);
    ASSERT_FALSE(op.ok());
    EXPECT_EQ(op.status().code(), Code::kInvalidUsage);
    EXPECT_THAT(op.status().message(),
                AllOf(HasSubstr("rows a tile"), HasSubstr("rank 2 describes")));
  });
}

TEST(FusedFaults, RanksThatDoNotCreateItAreNamed) {
  run_ranks(2, quick_options(300), [](Communicator& comm) {
    if (comm.rank() == 1) {
      while (comm.error().ok()) std::this_thread::yield();
      return;
    }
    const auto op = FusedOperator::create(host_rank(comm), small_sum());
    ASSERT_FALSE(op.ok());
    EXPECT_THAT(op.status().message(), HasSubstr("rank 1 has not joined in"));
  });
}

TEST(FusedFaults, ASecondLaunchBeforeTheFirstIsOverIsAnError) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    const auto op = make_operator(comm, small_sum());
    Buffers b;
    EXPECT_EQ(op->launch(nullptr, b.output.data()).code(), Code::kInvalidArgument);
    ASSERT_EQ(op->launch(b.input.data(), b.output.data()).message(), "");
    EXPECT_THAT(op->launch(b.input.data(), b.output.data()).message(),
                HasSubstr("launch 1 is still under way"));
    EXPECT_THAT(op->close().message(), HasSubstr("launch 1 is still under way"));
    EXPECT_THAT(op->explain(), HasSubstr("8 of 8 tiles are missing: (0,0) (0,1)"));
    report_all(*op);
    ASSERT_EQ(op->wait().message(), "");
    EXPECT_THAT(op->explain(), AllOf(HasSubstr("direct, rank"), HasSubstr("1 begun, 1 over")));
  });
}

TEST(FusedFaults, DescriptionsThatMakeNoSenseAreRefused) {
  const std::pair<const char*, void (*)(FusedDescription&)> cases[] = {
      {"has no elements", [](FusedDescription& d) { d.rows = 0; }},
      {"tiles of 4 x 0", [](FusedDescription& d) { d.tile_cols = 0; }},
      {"reported 0 times", [](FusedDescription& d) { d.parts = 0; }},
      {"leading dimensions 7 and 8", [](FusedDescription& d) { d.input_ld = 7; }},
      {"65 chunks per rank", [](FusedDescription& d) { d.chunks = 65; }},
      {"cannot be a broadcast", [](FusedDescription& d) { d.collective = Collective::kBroadcast; }},
      {"has no ring",
       [](FusedDescription& d) {
         d.collective = Collective::kAllToAll;
         d.rows = 18;
         d.mapping = Mapping::kRing;
       }},
      {"do not divide by 3 ranks",
       [](FusedDescription& d) { d.collective = Collective::kAllToAll; }},
      {"is too large", [](FusedDescription& d) { d.cols = int64_t{1} << 40; }},
      {"scaled sums", [](FusedDescription& d) { d.op = ReduceOp::kPreMulSum; }},
  };
  for (const auto& [text, spoil] : cases) {
    FusedDescription d = small_sum();
    spoil(d);
    const Result<FusedDescription> result = complete(d, 3, 0);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(result.status().message(), HasSubstr(text));
  }
}

}  // namespace
}  // namespace tessera::test
