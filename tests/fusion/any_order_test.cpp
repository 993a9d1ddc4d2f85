// Sums whose parts are added in the order in which they come.
#include <gmock/gmock.h>
#include <tessera/fused.h>

#include "api/ranks.h"
#include "fusion/c_operator.h"
#include "fusion/plans.h"
#include "fusion/traffic.h"
#include "fusion/user_plan.h"
#include "fusion/workload.h"
#include "plan/json.h"
#include "plan/verifier.h"

namespace tessera::test {
namespace {

using ::testing::HasSubstr;

FusedDescription matrix(Collective collective, int64_t rows, int64_t cols) {
  FusedDescription d;
  d.collective = collective;
  d.any_order = true;
  d.rows = rows;
  d.cols = cols;
  d.tile_rows = d.tile_cols = 8;
  return d;
}

FusedPlanShape shape(Collective collective, int ranks, int chunks) {
  FusedPlanShape shape{collective, Mapping::kDirect, ranks, chunks, false, {}, true};
  shape.arrivals.assign(static_cast<size_t>(ranks * chunks), 2);
  return shape;
}

class AnyOrder : public ::testing::TestWithParam<Collective> {};

TEST_P(AnyOrder, IntegersAreTheSameBitForBit) {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    Load load;
    load.ranks = ranks;
    load.description = matrix(GetParam(), ranks * 37, 20);
    load.description.chunks = 3;
    load.launches = 10;
    load.threads = 2;
    load.early = load.consumer = true;
    load.seed = static_cast<uint64_t>(ranks);
    run_load<int32_t>(load);
  }
}

TEST_P(AnyOrder, FloatsDifferByRoundingOnly) {
  Load load;
  load.ranks = 5;
  load.description = matrix(GetParam(), 90, 33);
  load.launches = 20;
  load.threads = 2;
  load.tolerance = 0.05;  // five parts of up to 9000 each
  run_load<float>(load);
}

TEST_P(AnyOrder, WorksInEveryLayoutAndInPlace) {
  for (const bool column_major : {false, true}) {
    Load load;
    load.ranks = 4;
    load.description = matrix(GetParam(), 101, 21);
    load.description.column_major = column_major;
    load.launches = 3;
    load.in_place = GetParam() == Collective::kAllReduce;
    run_load<int32_t>(load);
  }
}

TEST_P(AnyOrder, WorksBetweenHostsAndBehindLinks) {
  Load load;
  load.ranks = 4;
  load.description = matrix(GetParam(), 160, 33);
  load.launches = 10;
  load.hosts = {0, 1, 2, 0};
  run_load<int32_t>(load);
  load.hosts.clear();
  load.emulate = "uniform:bandwidth=1GB/s,latency=20us";
  run_load<int32_t>(load);
}

TEST_P(AnyOrder, PlansVerifyAndHaveTheirGates) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const int chunks : {1, 3, 30}) {
      if (ranks > 4 && chunks > 3) continue;
      const Result<VerifiedPlan> plan = verify(fused_plan(shape(GetParam(), ranks, chunks)));
      EXPECT_TRUE(plan.ok()) << ranks << " ranks: " << plan.status().message();
    }
  }
}

// No part waits for another: besides its own arrival only for the sum of the pass before.
TEST_P(AnyOrder, EachPartIsAddedAsSoonAsItIsThere) {
  const Plan plan = fused_plan(shape(GetParam(), 4, 2));
  int added = 0;
  for (const RankProgram& program : plan.programs) {
    for (const Lane& lane : program.lanes) {
      for (const Step& step : lane.steps) {
        if (step.op != Op::kAccumulate) continue;
        ++added;
        EXPECT_EQ(lane.steps.size(), 1);  // behind no other
        ASSERT_EQ(step.waits.size(), 2);
        EXPECT_EQ(step.waits[0].lag, 0);
        EXPECT_EQ(step.waits[1].lag, 1);
      }
    }
  }
  EXPECT_EQ(added, 4 * 2 * 3);
}

TEST_P(AnyOrder, SavedAndLoadedPlansRun) {
  Load load;
  load.ranks = 3;
  load.description = matrix(GetParam(), 48, 16);
  load.launches = 5;
  const FusedDescription d = complete(load.description, 3, 0).value();
  const Plan plan = fused_plan(shape_of(d, Geometry(d, 3, 0), 3));
  EXPECT_EQ(plan.name, "fused-direct-any-order");
  load.description.type = DataType::kInt32;
  run_ranks(3, quick_options(), [&](Communicator& comm) {
    auto op = FusedOperator::create(host_rank(comm), load.description, load_json(save_json(plan)));
    ASSERT_TRUE(op.ok()) << op.status().message();
    Worker<int32_t>(load, *op.value()).run();
  });
}

INSTANTIATE_TEST_SUITE_P(Fusion, AnyOrder,
                         ::testing::Values(Collective::kReduceScatter, Collective::kAllReduce));

template <class T>
void average(Communicator& comm) {
  FusedDescription d = matrix(Collective::kAllReduce, 32, 8);
  d.op = ReduceOp::kAvg;
  d.type = type_of<T>();
  const auto op = make_operator(comm, d);
  ASSERT_NE(op, nullptr);
  constexpr T kParts[] = {1, 2, 3, 6};  // 3 in the mean
  std::vector<T> input(32 * 8, kParts[comm.rank()]), output(input.size());
  for (int launch = 0; launch < 10; ++launch) {
    ASSERT_EQ(op->launch(input.data(), output.data()).message(), "");
    for (int64_t row = 0; row < 4; ++row) EXPECT_EQ(op->tile_done(row, 0).message(), "");
    ASSERT_EQ(op->wait().message(), "");
    EXPECT_EQ(output, std::vector<T>(output.size(), T(3)));
  }
}

TEST(AnyOrderSums, AreDividedOnce) {
  run_ranks(4, quick_options(), average<int32_t>);
  run_ranks(4, quick_options(), average<float>);
}

TEST(AnyOrderTraffic, AddsAReadAndAWriteForEachPart) {
  const Plan plan = fused_plan(shape(Collective::kReduceScatter, 4, 2));
  const Traffic t = traffic_of(plan, 0, 8, false, CountSums::kOperands);
  EXPECT_EQ(t.read, 8u * (3 + (3 + 2) + 2));   // sends; parts and sums so far; the last step
  EXPECT_EQ(t.written, 8u * (4 + 3 + 3 + 1));  // tiles, parts of peers, sums so far, the sum
}

TEST(AnyOrderFaults, TheDeadlineNamesTheRankWhosePartIsMissing) {
  run_ranks(3, quick_options(400), [](Communicator& comm) {
    const auto op = make_operator(comm, matrix(Collective::kReduceScatter, 24, 8));
    std::vector<float> input(24 * 8), output(input.size());
    if (comm.rank() == 2) {
      while (comm.error().ok()) std::this_thread::yield();
      return;
    }
    ASSERT_EQ(op->launch(input.data(), output.data()).message(), "");
    for (int64_t row = 0; row < 3; ++row) EXPECT_EQ(op->tile_done(row, 0).message(), "");
    const Status status = op->wait();
    EXPECT_EQ(status.code(), Code::kTimeout);
    EXPECT_THAT(status.message(), HasSubstr("a part of a sum waits for rank 2"));
  });
}

TEST(AnyOrderApi, AddsPartsThatKernelsStoredInTheOwnersMemory) {
  const Ranks ranks(4);
  ranks.on_threads([](int rank, ncclComm_t comm) {
    tsrFusedConfig_t wish = config(tsrFusedAllReduce, 128, 40);
    wish.remote = wish.any_order = 1;
    Operator op(wish, comm);
    ASSERT_NE(op.in.remote_base, nullptr);
    for (int launch = 1; launch < 20; ++launch) {
      ASSERT_EQ(tsrFusedLaunch(op.op, op.input.data(), op.output.data(), nullptr), ncclSuccess);
      op.make_tiles(static_cast<float>(launch * (rank + 1)));
      ASSERT_EQ(tsrFusedWait(op.op), ncclSuccess) << last_error();
      ASSERT_EQ(op.output, std::vector<float>(128 * 40, static_cast<float>(launch * 10)));
    }
  });
}

TEST(AnyOrderApi, IsAFieldThatOlderCallersDoNotHave) {
  const Ranks ranks(3);
  for (const bool older : {false, true}) {
    ranks.on_threads([older](int, ncclComm_t comm) {
      tsrFusedConfig_t wish = config(tsrFusedReduceScatter, 24, 16);
      wish.any_order = 1;
      if (older) wish.size = offsetof(tsrFusedConfig_t, any_order);
      tsrFused_t op = nullptr;
      ASSERT_EQ(tsrFusedCreate(&wish, comm, &op), ncclSuccess) << last_error();
      char text[200];
      ASSERT_EQ(tsrFusedExplain(op, text, sizeof text), ncclSuccess);
      EXPECT_THAT(text, HasSubstr(older ? "direct, rank" : "direct in any order, rank"));
      EXPECT_EQ(tsrFusedDestroy(op), ncclSuccess);
    });
  }
}

}  // namespace
}  // namespace tessera::test
