// Tournaments on machines that are made up, whose speed is known.
#include "tools/tune_tool/tournament.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "tools/tune_tool/entrants.h"
#include "tools/tune_tool/passes.h"

namespace tessera::tune {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Microseconds of a call.
using Speed = std::function<Result<double>(const Config& entrant, const Batch& batch)>;

class MadeUp : public Stopwatch {
 public:
  MadeUp(Speed speed, std::vector<Entrant> entrants)
      : speed_(std::move(speed)), entrants_(std::move(entrants)) {}
  Result<double> time(const Batch& batch) override {
    return speed_(entrants_.at(batch.entrant).config, batch);
  }

 private:
  const Speed speed_;
  const std::vector<Entrant> entrants_;
};

class Tournament : public ::testing::Test {
 protected:
  void choose_fields(const std::vector<int>& ranks, size_t largest) {
    Selection selection;
    selection.ranks = ranks;
    selection.collectives = {"broadcast"};
    selection.largest = largest;
    auto found = fields(selection, {});
    ASSERT_TRUE(found.ok()) << found.status().message();
    fields_ = std::move(found).value();
  }

  Result<std::vector<Cell>> run(const Speed& speed, Clock::duration time = 1h) {
    const Start start = [&](int, const std::vector<Entrant>& entrants) {
      return Result<std::unique_ptr<Stopwatch>>(std::make_unique<MadeUp>(speed, entrants));
    };
    return tournament(fields_, {}, Clock::now() + time, start, [](double, const std::string&) {});
  }

  static std::string_view name(const Field& field, const Runner& runner) {
    return field.contestants[runner.who].candidate.algorithm->name;
  }

  std::vector<Field> fields_;
};

// So long a call of this algorithm takes, more with its bytes.
double usual(const std::string& algorithm, uint64_t block_bytes) {
  return (algorithm == "tree" ? 1.0 : 1.6) + static_cast<double>(block_bytes) * 1e-4;
}

TEST_F(Tournament, WhoWasDisturbedInTheFirstPassCanStillWin) {
  choose_fields({2, 4}, 4096);
  const auto cells = run([](const Config& entrant, const Batch& batch) {
    const bool disturbed = batch.pass == 0 && entrant.algorithm == "tree";
    return usual(entrant.algorithm, batch.block_bytes) * (disturbed ? 2.5 : 1);
  });
  ASSERT_TRUE(cells.ok()) << cells.status().message();
  ASSERT_FALSE(cells->empty());
  for (const Cell& cell : cells.value()) {
    const Field& field = fields_[cell.field];
    const std::vector<double> times = settled(cell.runners, field);
    const auto best = std::min_element(times.begin(), times.end()) - times.begin();
    EXPECT_EQ(name(field, cell.runners[static_cast<size_t>(best)]), "tree");
    EXPECT_NEAR(times[static_cast<size_t>(best)], usual("tree", field.block_bytes[cell.size]),
                1e-6);
  }
}

TEST_F(Tournament, AStallInTheFirstPassMakesNobodyHopeless) {
  choose_fields({2}, size_t{1} << 20);
  std::set<uint64_t> stalled;
  const auto cells = run([&](const Config& entrant, const Batch& batch) {
    const double time = 300 * usual(entrant.algorithm, batch.block_bytes);  // long calls, too
    const bool stalls = entrant.algorithm == "tree" && stalled.insert(batch.block_bytes).second;
    return stalls ? 50 * time : time;
  });
  ASSERT_TRUE(cells.ok());
  for (const Cell& cell : cells.value()) {
    const std::vector<double> times = settled(cell.runners, fields_[0]);
    const auto best = std::min_element(times.begin(), times.end()) - times.begin();
    EXPECT_EQ(name(fields_[0], cell.runners[static_cast<size_t>(best)]), "tree");
  }
}

TEST_F(Tournament, WhoLeadsAtTheNextSizeIsLookedAtAgain) {
  choose_fields({2}, 4096);
  const uint64_t disturbed = fields_[0].block_bytes[2];
  const auto cells = run([&](const Config& entrant, const Batch& batch) {
    const bool slow = entrant.algorithm == "tree" && batch.pass == 0;
    return usual(entrant.algorithm, batch.block_bytes) *
           (slow && batch.block_bytes == disturbed ? 40 : 1);
  });
  ASSERT_TRUE(cells.ok());
  const Cell& cell = cells.value()[2];
  const std::vector<double> times = settled(cell.runners, fields_[0]);
  const auto best = std::min_element(times.begin(), times.end()) - times.begin();
  EXPECT_EQ(name(fields_[0], cell.runners[static_cast<size_t>(best)]), "tree");
}

TEST_F(Tournament, WhoIsSlowForSomeBuffersIsTimedForOthers) {
  choose_fields({2}, size_t{1} << 20);
  const auto cells = run([](const Config& entrant, const Batch& batch) {
    const bool direct = entrant.algorithm.starts_with("direct");
    return (direct ? 1 : 10) * 300 * usual(entrant.algorithm, batch.block_bytes);
  });
  ASSERT_TRUE(cells.ok());
  for (const Cell& cell : cells.value()) {
    EXPECT_TRUE(std::ranges::any_of(cell.runners, [&](const Runner& runner) {
      return fields_[0].contestants[runner.who].candidate.protocol == Protocol::kStaged;
    })) << fields_[0].block_bytes[cell.size];
  }
}

TEST_F(Tournament, SlicesThatWinAreTimedAtEverySizeButTheLargest) {
  choose_fields({2}, size_t{4} << 20);
  const auto cells = run([](const Config& entrant, const Batch& batch) {
    const bool sliced = entrant.algorithm == "ring" && entrant.slice_bytes > 0;
    return usual("", batch.block_bytes) * (sliced ? 0.6 : 1);
  });
  ASSERT_TRUE(cells.ok());
  const Field& field = fields_[0];
  for (size_t size = 0; size + 1 < field.block_bytes.size(); ++size) {
    for (size_t who = 0; who < field.contestants.size(); ++who) {
      const Contestant& each = field.contestants[who];
      if (each.candidate.algorithm->name != "ring" || !each.rule ||
          !each.span.contains(field.block_bytes[size]))
        continue;
      EXPECT_TRUE(std::ranges::any_of(cells.value()[size].runners, [&](const Runner& runner) {
        return runner.who == who;
      })) << field.block_bytes[size];
    }
  }
}

TEST_F(Tournament, WhatIsExpensiveWaitsUntilOthersHaveRunMoreOften) {
  choose_fields({2}, 64);
  ASSERT_GE(fields_[0].block_bytes.size(), 2U);
  constexpr double kCheap = 1000, kDear = 40'000;  // us of a call
  std::vector<Cell> cells{{0, 0, {{0, true, {kCheap}}}}, {0, 1, {{0, true, {kDear}}}}};
  const Config config;
  const Start start = [&](int, const std::vector<Entrant>& entrants) {
    return Result<std::unique_ptr<Stopwatch>>(std::make_unique<MadeUp>(
        [&](const Config&, const Batch& batch) {
          return batch.block_bytes == fields_[0].block_bytes[0] ? kCheap : kDear;
        },
        entrants));
  };
  Passes passes(fields_, config, start, cells);
  for (size_t number = 1; number <= 60; ++number) {
    ASSERT_TRUE(passes.run(number, 90'000, false).ok());
    passes.narrow_after(number);
  }
  const size_t cheap = passes_of(cells[0].runners[0]), dear = passes_of(cells[1].runners[0]);
  EXPECT_GT(dear, 3U) << "its turn comes";
  EXPECT_GT(cheap, 4 * dear);
  EXPECT_EQ(cheap + dear, 62U) << "there is no time for both, and always for one";
}

TEST_F(Tournament, WhoDidNotRunInAPassIsNotJudgedByIt) {
  choose_fields({2}, 64);
  std::vector<Cell> cells{{0, 0, {{0, true, {1.0}}, {1, true, {4.0}}}}};
  const Config config;
  const Start none = [](int, const std::vector<Entrant>&) {
    return Result<std::unique_ptr<Stopwatch>>(Status(Code::kSystem, "not to be started"));
  };
  Passes passes(fields_, config, none, cells);
  ASSERT_TRUE(passes.run(1, 0, false).ok());
  for (const size_t number : {1, 2, 3, 4, 5}) passes.narrow_after(number);
  EXPECT_TRUE(cells[0].runners[1].in);
}

TEST(EntrantsOfAField, RunAsWhatTheyAreWhateverTheUserForces) {
  Config forced;
  forced.nccl_protocols = "Simple";
  forced.nccl_algorithms = "tree";
  forced.slice_bytes = 1000;
  forced.single_copy = false;
  forced.tuner_plugin = "";
  Selection selection;
  selection.ranks = {2};
  selection.collectives = {"all-reduce"};
  const auto found = fields(selection, forced);
  ASSERT_TRUE(found.ok());
  const Field& field = found.value()[0];
  EXPECT_TRUE(std::ranges::any_of(field.contestants, [](const Contestant& each) {
    return each.rule.has_value();
  })) << "other slices";
  for (size_t who = 0; who < field.contestants.size(); ++who) {
    const Config config = entrant_of(field, who, forced).config;
    const Candidate& candidate = field.contestants[who].candidate;
    EXPECT_EQ(config.algorithm, candidate.algorithm->name);
    EXPECT_EQ(config.nccl_protocols + config.nccl_algorithms, "");
    EXPECT_EQ(config.tuner_plugin, "none");
    EXPECT_TRUE(config.single_copy);
    EXPECT_EQ(config.slice_bytes,
              candidate.slot_bytes > 0 ? static_cast<int64_t>(candidate.slot_bytes) : -1);
  }
  EXPECT_EQ(entrant_of(field, field.automatic(), forced).config.slice_bytes, 1000);
}

TEST_F(Tournament, PassesThatAreSlowForAllDoNotCountAgainstWhoLeft) {
  choose_fields({2}, 4096);
  const auto cells = run([](const Config& entrant, const Batch& batch) {
    const double far = entrant.algorithm == "one-hop" ? 6 : 1;
    return far * usual(entrant.algorithm, batch.block_bytes) * (batch.pass == 0 ? 3 : 1);
  });
  ASSERT_TRUE(cells.ok()) << cells.status().message();
  int left = 0;
  for (const Cell& cell : cells.value()) {
    const Field& field = fields_[cell.field];
    const std::vector<double> times = settled(cell.runners, field);
    for (size_t i = 0; i < times.size(); ++i) {
      if (name(field, cell.runners[i]) != "one-hop") continue;
      EXPECT_FALSE(cell.runners[i].in);
      EXPECT_NEAR(times[i], 6 * usual("one-hop", field.block_bytes[cell.size]), 1e-6);
      ++left;
    }
  }
  EXPECT_GT(left, 0);
}

TEST_F(Tournament, ASizeIsTimedInManyPassesOfAllSizes) {
  choose_fields({2}, 4096);
  std::vector<std::pair<int32_t, uint64_t>> seen;
  const auto cells = run([&](const Config& entrant, const Batch& batch) {
    if (batch.pass > 0) seen.emplace_back(batch.pass, batch.block_bytes);
    return usual(entrant.algorithm, batch.block_bytes);
  });
  ASSERT_TRUE(cells.ok());
  EXPECT_TRUE(std::ranges::is_sorted(seen, {}, [](const auto& each) { return each.first; }));
  const std::set<std::pair<int32_t, uint64_t>> distinct(seen.begin(), seen.end());
  EXPECT_EQ(distinct.size(), fields_[0].block_bytes.size() * 11);
}

TEST_F(Tournament, TheChosenOneIsJudgedAgainstTheBest) {
  choose_fields({2}, 4096);
  Field& field = fields_[0];
  const auto slow = std::ranges::find_if(field.contestants, [](const Contestant& each) {
    return each.candidate.algorithm->name == "ring" &&
           each.candidate.protocol == Protocol::kLowLatency;
  });
  field.chosen.assign(field.block_bytes.size(),
                      static_cast<size_t>(slow - field.contestants.begin()));
  const auto cells = run([](const Config& entrant, const Batch& batch) {
    // Only before the passes that count does it look good.
    const double early = batch.pass < static_cast<int>(kJudgingPass) ? 1 : 2;
    return entrant.algorithm == "tree" ? 1.0 : entrant.algorithm == "ring" ? early * 1.1 : 1.3;
  });
  ASSERT_TRUE(cells.ok());
  for (const Cell& cell : cells.value()) {
    const Verdict found = verdict(cell.runners, field, cell.size, kJudgingPass);
    EXPECT_EQ(field.contestants[found.best].candidate.algorithm->name, "tree");
    EXPECT_NEAR(found.choice, 2.2, 1e-9);
    EXPECT_NEAR(found.automatic, 1.3, 1e-9);  // a configuration that names no algorithm
  }
}

TEST_F(Tournament, SmallSizesAreTimedAndJudgedThoughThereIsNoTime) {
  choose_fields({3}, size_t{1} << 20);
  fields_[0].chosen.assign(fields_[0].block_bytes.size(), 0);
  const auto cells =
      run([](const Config& entrant,
             const Batch& batch) { return usual(entrant.algorithm, batch.block_bytes); },
          0s);
  ASSERT_TRUE(cells.ok());
  for (const Cell& cell : cells.value()) {
    const bool small = fields_[0].block_bytes[cell.size] <= kAlwaysTimed;
    EXPECT_EQ(cell.runners.empty(), !small);
    const double time = verdict(cell.runners, fields_[0], cell.size, kJudgingPass).automatic_us;
    EXPECT_EQ(time > 0, small);
  }
}

TEST_F(Tournament, WhoRunsAheadOnlyAfterManyCallsIsTimedOverMore) {
  choose_fields({3}, 16 << 10);
  const auto cells = run(
      [](const Config& entrant, const Batch& batch) {
        const double slow = std::min(batch.calls, 150);
        return entrant.low_latency_max == 0 ? 6.0 : 1 + 9 * slow / batch.calls;
      },
      0s);
  ASSERT_TRUE(cells.ok());
  for (const Cell& cell : cells.value()) {
    for (const size_t who : leaders(cell.runners, fields_[0]))
      EXPECT_EQ(fields_[0].contestants[who].candidate.protocol, Protocol::kLowLatency);
  }
}

// Else one that is far from its usual pace in a first call, as all are, stands for what it never was.
TEST_F(Tournament, NoSingleShortCallIsATimeThoughThereIsNoTime) {
  choose_fields({3}, 16 << 10);
  const auto cells =
      run([](const Config&, const Batch& batch) { return batch.calls == 1 ? 30.0 : 10.0; }, 0s);
  ASSERT_TRUE(cells.ok());
  for (const Cell& cell : cells.value())
    for (const Runner& runner : cell.runners) EXPECT_EQ(runner.times[0], 10.0);
}

TEST_F(Tournament, ATimeAboveThatOfALargerMessageIsTakenAgain) {
  choose_fields({3}, size_t{4} << 20);
  const size_t odd = fields_[0].block_bytes.end()[-3];
  int disturbed = 0;
  const auto cells = run(
      [&](const Config& entrant, const Batch& batch) {
        const double time = 100 + static_cast<double>(batch.block_bytes) * 1e-6;
        const bool here = entrant.algorithm == "tree" && entrant.low_latency_max == 0 &&
                          entrant.slice_bytes < 0 && batch.block_bytes == odd;
        // Its first looks and batch; less than hopeless.
        return here && ++disturbed <= 6 ? 2.5 * time : time;
      },
      1h);
  ASSERT_TRUE(cells.ok());
  for (const Cell& cell : cells.value()) {
    if (fields_[0].block_bytes[cell.size] != odd) continue;
    for (const Runner& runner : cell.runners) {
      if (name(fields_[0], runner) != "tree") continue;
      EXPECT_LT(runner.times[0], 110);
    }
  }
}

TEST_F(Tournament, AnErrorEndsIt) {
  choose_fields({2}, 4096);
  for (const int failing : {0, 2}) {
    const auto cells = run([&](const Config&, const Batch& batch) -> Result<double> {
      if (batch.pass == failing) return Status(Code::kRemote, "rank 1 of 2 failed");
      return 1.0;
    });
    ASSERT_FALSE(cells.ok());
    EXPECT_EQ(cells.status().message(), "rank 1 of 2 failed");
  }
}

}  // namespace
}  // namespace tessera::tune
