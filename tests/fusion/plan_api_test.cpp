// The C interface of operators that are made of users' plans.
#include <gmock/gmock.h>
#include <tessera/fused.h>

#include <cstdio>
#include <cstdlib>

#include "api/ranks.h"
#include "fusion/plans.h"
#include "plan/json.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRows = 64, kCols = 32, kTile = 8;

tsrFusedConfig_t config() {
  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER;
  config.collective = tsrFusedAllReduce;
  config.rows = kRows;
  config.cols = kCols;
  config.tile_rows = config.tile_cols = kTile;
  return config;
}

std::string ring(int ranks) {
  FusedDescription d;
  d.collective = Collective::kAllReduce;
  d.mapping = Mapping::kRing;
  d.rows = kRows;
  d.cols = kCols;
  d.tile_rows = d.tile_cols = kTile;
  d = complete(d, ranks, 0).value();
  return save_json(fused_plan(shape_of(d, Geometry(d, ranks, 0), ranks)));
}

class PlanFile {
 public:
  explicit PlanFile(const std::string& text) {
    const int file = mkstemp(name_);
    EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(file);
  }
  ~PlanFile() { std::remove(name_); }
  const char* name() const { return name_; }

 private:
  char name_[32] = "/tmp/tessera_plan_XXXXXX";
};

// Each rank's part is its number and one; whatever the plan, sums are exact.
void sum_in_tiles(tsrFused_t op, int rank, int ranks) {
  std::vector<float> input(kRows * kCols), output(input.size());
  tsrTiles tiles;
  ASSERT_EQ(tsrFusedInput(op, input.data(), &tiles), ncclSuccess);
  ASSERT_EQ(tsrFusedLaunch(op, input.data(), output.data(), nullptr), ncclSuccess);
  std::fill(input.begin(), input.end(), static_cast<float>(rank + 1));
  for (int64_t i = 0; i < tsrTileCount(&tiles); ++i) {
    int32_t row = 0, col = 0;
    tsrTileOrder(&tiles, i, &row, &col);
    ASSERT_EQ(tsrTileDone(&tiles, row, col), ncclSuccess) << last_error();
  }
  ASSERT_EQ(tsrFusedWait(op), ncclSuccess) << last_error();
  const auto sum = static_cast<float>(ranks * (ranks + 1) / 2);
  EXPECT_EQ(output, std::vector<float>(output.size(), sum));
}

TEST(FusedPlanApi, APlanIsTakenFromAFileOrFromText) {
  const std::string text = ring(3);
  const PlanFile file(text);
  const Ranks ranks(3);
  for (const char* plan : {text.c_str(), file.name()}) {
    ranks.on_threads([&](int rank, ncclComm_t comm) {
      const tsrFusedConfig_t wish = config();
      tsrFused_t op = nullptr;
      ASSERT_EQ(tsrFusedCreateFromPlan(plan, &wish, comm, &op), ncclSuccess) << last_error();
      for (int launch = 0; launch < 3; ++launch) sum_in_tiles(op, rank, 3);
      EXPECT_EQ(tsrFusedDestroy(op), ncclSuccess);
    });
  }
}

TEST(FusedPlanApi, RanksWithDifferentPlansAreAllTold) {
  const Ranks ranks(2);
  const std::string text = ring(2);
  std::string renamed = text;
  renamed.replace(renamed.find("fused-ring"), 10, "other-ring");
  ranks.on_threads([&](int rank, ncclComm_t comm) {
    const tsrFusedConfig_t wish = config();
    tsrFused_t op = nullptr;
    const std::string& mine = rank == 0 ? text : renamed;
    EXPECT_EQ(tsrFusedCreateFromPlan(mine.c_str(), &wish, comm, &op), ncclInvalidUsage);
    EXPECT_THAT(last_error(), HasSubstr("describes plan "));
    EXPECT_EQ(op, nullptr);
  });
}

TEST(FusedPlanApi, WhatIsNoPlanForTheMatrixIsAnArgumentThatIsWrong) {
  const Ranks ranks(1);
  const auto refused = [&](const std::string& plan, const auto& matcher) {
    const tsrFusedConfig_t wish = config();
    tsrFused_t op = nullptr;
    EXPECT_EQ(tsrFusedCreateFromPlan(plan.c_str(), &wish, ranks[0], &op), ncclInvalidArgument);
    EXPECT_THAT(last_error(), matcher);
  };
  refused("", HasSubstr("cannot read this file"));
  refused("/nonexistent/plan.json", HasSubstr("No such file"));
  refused("{", HasSubstr("line 1"));
  const PlanFile file("{\"format\": 3}");
  refused(file.name(), AllOf(HasSubstr(file.name()), HasSubstr("is missing")));
  refused(ring(2), HasSubstr("is for 2 ranks, here are 1"));
  const tsrFusedConfig_t wish = config();
  tsrFused_t op = nullptr;
  EXPECT_EQ(tsrFusedCreateFromPlan(nullptr, &wish, ranks[0], &op), ncclInvalidArgument);
  EXPECT_EQ(tsrFusedCreateFromPlan(ring(1).c_str(), nullptr, ranks[0], &op), ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("tsrFusedCreateFromPlan: config is NULL"));
}

}  // namespace
}  // namespace tessera
