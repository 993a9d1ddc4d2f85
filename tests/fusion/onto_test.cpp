// Sums of two ranks whose kernels add tiles onto the output of the rank that owns them.
#include <gmock/gmock.h>

#include "fusion/onto_work.h"
#include "fusion/plans.h"
#include "plan/verifier.h"

namespace tessera::test {
namespace {

using ::testing::HasSubstr;

constexpr Collective kSums[] = {Collective::kReduceScatter, Collective::kAllReduce};

TEST(FusedOnto, GivesTheSumForEveryShape) {
  struct Shape {
    int64_t rows, cols, tile_rows, tile_cols;
    int chunks;
  };
  for (const Shape& s : {Shape{40, 33, 5, 7, 0}, Shape{37, 8, 19, 3, 1}, Shape{64, 64, 8, 16, 3},
                         Shape{96, 20, 16, 20, 2}, Shape{6, 5, 1, 1, 1}, Shape{2, 1, 1, 1, 0}}) {
    for (const bool column_major : {false, true}) {
      FusedDescription d = onto(s.rows, s.cols, s.tile_rows, s.tile_cols);
      d.chunks = s.chunks;
      d.column_major = column_major;
      d.output_ld = std::max(s.rows, s.cols) + 3;
      run_onto<float>({d});
      run_onto<double>({d});
      run_onto<int32_t>({d});
    }
  }
}

TEST(FusedOnto, ARankThatOwnsNoRowsAddsItsTiles) { run_onto<float>({onto(1, 40, 1, 8)}); }

TEST(FusedOnto, AllRanksGetTheSumOfAnAllReduce) {
  for (const int chunks : {0, 1, 4}) {
    FusedDescription d = onto(64, 48, 8, 16, Collective::kAllReduce);
    d.chunks = chunks;
    d.output_ld = 70;
    run_onto<float>({d, 2, 5});
  }
}

TEST(FusedOnto, ManyThreadsAndLaunchesInAnyOrderOfTilesNeedNoReset) {
  for (const Collective collective : kSums)
    run_onto<float>({onto(64, 32, 8, 8, collective), 3, 100, false, -1, 7});
}

TEST(FusedOnto, ARankMayBeMuchLaterThanTheOther) {
  for (const int late : {0, 1})
    for (const Collective collective : kSums)
      run_onto<float>({onto(32, 32, 8, 8, collective), 2, 5, false, late});
}

TEST(FusedOnto, LaunchesMayWaitInAStream) {
  for (const Collective collective : kSums)
    run_onto<float>({onto(32, 32, 8, 8, collective), 2, 20, true});
}

TEST(FusedOnto, AnOperatorMadeAnewGoesOnInTheSameMemory) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    OntoLoad load{onto(32, 16, 8, 8), 2, 3};
    for (int i = 0; i < 5; ++i) {
      const auto op = make_operator(comm, load.description);
      ASSERT_NE(op, nullptr);
      OntoWorker<float>(load, *op).run();
      ASSERT_EQ(op->close().message(), "");
    }
  });
}

TEST(FusedOnto, LeadingDimensionsMayChangeBetweenLaunches) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    OntoLoad load{onto(32, 16, 8, 8), 1, 2};
    const auto op = make_operator(comm, load.description);
    ASSERT_NE(op, nullptr);
    OntoWorker<float>(load, *op).run();
    ASSERT_EQ(op->set_lines(0, comm.rank() == 0 ? 20 : 31).message(), "");
    std::vector<float> output(31 * 16, -1);
    ASSERT_EQ(op->launch(nullptr, output.data()).message(), "");
    std::mt19937_64 random(1);
    for (const int rank : {comm.rank(), 1 - comm.rank()}) {
      for (const auto& [row, col] : tiles_of(*op, rank, random)) {
        const auto place = op->tile_onto(row, col);
        ASSERT_TRUE(place.ok());
        EXPECT_EQ(place.value().ld, rank == 0 ? 20 : 31);
        put_tile<float>(*op, place.value(), 9, row, col);
        ASSERT_EQ(op->tile_done(row, col).message(), "");
      }
    }
    ASSERT_EQ(op->wait().message(), "");
    const int64_t ld = comm.rank() == 0 ? 20 : 31, row = comm.rank() * 16 + 3;
    EXPECT_EQ(output[static_cast<size_t>(3 * ld + 5)],
              element<float>(0, 9, row, 5) + element<float>(1, 9, row, 5));
  });
}

// What is asked for can be elsewhere, too, but for its way.
void expect_obstacle(int ranks, FusedDescription d, const char* why, const char* emulate = "") {
  CommOptions options = quick_options();
  options.config.emulate = emulate;
  d.onto_wish = OntoWish::kAllow;
  run_ranks(ranks, options, [&](Communicator& comm) {
    const auto op = make_operator(comm, d);
    ASSERT_NE(op, nullptr);
    EXPECT_FALSE(op->onto());
    EXPECT_THAT(op->explain(), HasSubstr(why));
    FusedDescription required = d;
    required.onto_wish = OntoWish::kRequire;
    const auto refused = FusedOperator::create(host_rank(comm), required);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.status().message(), HasSubstr(why));
  });
}

TEST(FusedOnto, IsTakenBackWhereItCannotBeAndTheExplanationSaysWhy) {
  const FusedDescription d = onto(32, 16, 8, 8);
  expect_obstacle(3, onto(48, 16, 8, 8), "there are not two ranks");
  expect_obstacle(2, onto(32, 16, 8, 8, Collective::kAllToAll), "nothing is added");
  expect_obstacle(2, onto(24, 16, 8, 8), "a tile lies over the rows of both ranks");
  expect_obstacle(2, d, "links are emulated", "uniform:bandwidth=1GB/s,latency=10us");
  FusedDescription other = d;
  other.type = DataType::kBfloat16;
  expect_obstacle(2, other, "the type would be rounded");
  other = d;
  other.op = ReduceOp::kMax;
  expect_obstacle(2, other, "the reduction is no sum");
  other = d;
  other.parts = 2;
  expect_obstacle(2, other, "tiles are reported in parts");
  FusedDescription ragged = onto(10, 16, 5, 8, Collective::kAllReduce);
  ragged.chunks = 2;  // 3, 3, 2 and 2 rows
  expect_obstacle(2, ragged, "a chunk lies over the rows of both ranks");
}

TEST(FusedOnto, IsOffUnlessItIsAskedFor) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    FusedDescription d = onto(32, 16, 8, 8);
    d.onto_wish = OntoWish::kOff;
    const auto op = make_operator(comm, d);
    ASSERT_NE(op, nullptr);
    EXPECT_FALSE(op->onto());
    EXPECT_THAT(op->explain(), ::testing::Not(HasSubstr("added onto")));
  });
}

TEST(FusedOnto, RanksThatDisagreeAreToldSo) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    FusedDescription d = onto(32, 16, 8, 8);
    if (comm.rank() == 1) d.onto_wish = OntoWish::kOff;
    const auto op = FusedOperator::create(host_rank(comm), d);
    ASSERT_FALSE(op.ok());
    EXPECT_THAT(op.status().message(), HasSubstr("adding onto peers"));
  });
}

FusedPlanShape shape(Collective collective, int chunks) {
  FusedPlanShape shape;
  shape.collective = collective;
  shape.ranks = 2;
  shape.chunks = chunks;
  shape.onto = true;
  for (int chunk = 0; chunk < 2 * chunks; ++chunk)
    shape.arrivals.push_back(chunk + 2 < 2 * chunks || chunk == 0 ? 3 : 0);
  return shape;
}

TEST(FusedOnto, PlansVerify) {
  for (const Collective collective : kSums) {
    for (const int chunks : {1, 2, 5, 64}) {
      const Result<VerifiedPlan> plan = verify(fused_plan(shape(collective, chunks)));
      EXPECT_TRUE(plan.ok()) << plan.status().message();
    }
  }
}

// The step of lane and rank that adds onto a peer.
Step& adding_step(Plan& plan) {
  for (Lane& lane : plan.programs[1].lanes) {
    for (Step& step : lane.steps)
      if (step.op == Op::kReduce) return step;
  }
  ADD_FAILURE() << "nothing is added";
  return plan.programs[1].lanes[0].steps[0];
}

TEST(FusedOnto, APlanThatAddsBeforeTheOwnerHasStoredIsFaulty) {
  Plan plan = fused_plan(shape(Collective::kReduceScatter, 2));
  Step& step = adding_step(plan);
  const int stored = step.waits.back().counter;
  std::erase_if(step.waits, [&](const Wait& wait) { return wait.counter == stored; });
  for (Lane& lane : plan.programs[0].lanes) {
    for (Step& other : lane.steps)
      std::erase_if(other.signals,
                    [&](const Signal& s) { return s.rank == 1 && s.counter == stored; });
  }
  EXPECT_FALSE(verify(std::move(plan)).ok());
}

TEST(FusedOnto, APlanThatAddsTwiceOrNeverIsFaulty) {
  Plan twice = fused_plan(shape(Collective::kReduceScatter, 2));
  Step& step = adding_step(twice);
  step.srcs.push_back(step.srcs.back());
  EXPECT_FALSE(verify(std::move(twice)).ok());
  Plan never = fused_plan(shape(Collective::kReduceScatter, 2));
  Step& other = adding_step(never);
  other.op = Op::kSync;
  other.srcs.clear();
  other.dsts.clear();
  EXPECT_FALSE(verify(std::move(never)).ok());
}

TEST(FusedOnto, AnEstimateCountsNothingButTheKernelsAndWhatAnAllReduceBringsBack) {
  for (const Collective collective : kSums) {
    run_ranks(2, quick_options(), [&](Communicator& comm) {
      const auto op = make_operator(comm, onto(1024, 1024, 128, 1024, collective));
      ASSERT_NE(op, nullptr);
      const auto forecast = op->forecast(10'000, 0);
      ASSERT_TRUE(forecast.ok()) << forecast.status().message();
      const bool scatters = collective == Collective::kReduceScatter;
      EXPECT_GE(forecast.value().fused_us, 10'000);
      EXPECT_LE(forecast.value().fused_us, scatters ? 10'050 : 11'500);
      EXPECT_LT(forecast.value().fused_us, forecast.value().unfused_us);
      const uint64_t half = 512 * 1024 * 4;
      EXPECT_EQ(forecast.value().operands.read, scatters ? half : 2 * half);
      EXPECT_EQ(forecast.value().operands.written, scatters ? 2 * half : 3 * half);
      EXPECT_THAT(op->explain(), HasSubstr("tiles are added onto the output of the rank"));
    });
  }
}

}  // namespace
}  // namespace tessera::test
