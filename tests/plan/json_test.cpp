#include "plan/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "plan/limits.h"
#include "plan/support/sample_plans.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Plan sample() { return samples::ring_all_reduce(2); }

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

std::string load_error(const std::string& text) {
  const Result<Plan> plan = load_json(text);
  if (plan.ok()) return "ok";
  EXPECT_EQ(plan.status().code(), Code::kPlanInvalid);
  return plan.status().message();
}

// The message about the sample with its first `what` replaced.
std::string error_with(const std::string& what, const std::string& with) {
  return load_error(replaced(save_json(sample()), what, with));
}

TEST(PlanJson, LoadsWhatItSaved) {
  for (const Plan& plan : {samples::ring_reduce_scatter(4), samples::ring_all_reduce(3),
                           samples::one_hop_all_reduce(5), samples::shared_counter_all_reduce(3),
                           samples::chain_broadcast(4, 2), samples::direct_all_to_all(4),
                           samples::direct_all_gather(3), samples::dissemination_barrier(5),
                           samples::any_order_reduce_scatter(4)}) {
    const Result<Plan> loaded = load_json(save_json(plan));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded.value(), plan);
    EXPECT_EQ(save_json(loaded.value()), save_json(plan));
  }
}

Plan random_plan(std::mt19937_64& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  Plan plan;
  plan.collective = Collective::kAllToAll;
  for (int i = below(20); i > 0; --i) plan.name += static_cast<char>(' ' + below(95));
  plan.ranks = 1 + below(4);
  plan.chunks_per_block = 1 + below(5);
  plan.scratch_depth = 1 + below(4);
  const int blocks = plan.ranks * plan.chunks_per_block;
  const auto increment = [&] { return static_cast<uint32_t>(1 + below(kMaxIncrement)); };
  for (int rank = 0; rank < plan.ranks; ++rank) {
    RankProgram& program = plan.programs.emplace_back();
    program.scratch_chunks = blocks;
    program.counters = {{CounterKind::kStep, 0}, {CounterKind::kExternal, increment()}};
    program.lanes.resize(static_cast<size_t>(below(3)));
    for (Lane& lane : program.lanes) {
      lane.steps.resize(static_cast<size_t>(below(5)));
      for (Step& step : lane.steps) {
        step.op = static_cast<Op>(below(4));
        for (int i = below(3); i > 0; --i) step.waits.push_back({below(2), increment(), 3});
        for (int i = below(3); i > 0; --i)
          step.signals.push_back({below(plan.ranks), 1, increment()});
        if (step.op == Op::kSync) continue;
        step.chunk = below(plan.chunks_per_block);
        step.chunks = 1 + below(blocks);
        for (std::vector<Ref>* refs : {&step.dsts, &step.srcs}) {
          for (int i = below(4); i > 0; --i) {
            refs->push_back({below(plan.ranks), static_cast<Buffer>(below(3)),
                             below(blocks - step.chunks + 1)});
          }
        }
      }
    }
  }
  return plan;
}

TEST(PlanJson, LoadsWhateverPlanItSaved) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    const Plan plan = random_plan(random);
    const Result<Plan> loaded = load_json(save_json(plan));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message() << "\n" << save_json(plan);
    EXPECT_EQ(loaded.value(), plan);
  }
}

TEST(PlanJson, NamesThePlaceOfAnIdOutOfRange) {
  EXPECT_EQ(
      error_with("\"buffer\": \"scratch\", \"chunk\": 0", "\"buffer\": \"scratch\", \"chunk\": 9"),
      "programs[0].lanes[0].steps[0].dsts[0].chunk: 9 is out of range 0..1");
  EXPECT_EQ(error_with("\"srcs\": [{\"rank\": 0", "\"srcs\": [{\"rank\": 2"),
            "programs[0].lanes[0].steps[0].srcs[0].rank: 2 is out of range 0..1");
  EXPECT_EQ(error_with("{\"counter\": 1", "{\"counter\": -1"),
            "programs[0].lanes[0].steps[0].waits[0].counter: -1 is out of range 0..1");
  EXPECT_EQ(error_with("\"ranks\": 2", "\"ranks\": 18446744073709551615"),
            "ranks: 18446744073709551615 is out of range 1..4096");
  EXPECT_EQ(error_with("\"root\": -1", "\"root\": 0"), "root: 0 is out of range -1..-1");
  EXPECT_EQ(error_with("\"chunks\": 1", "\"chunks\": 2147483647"),
            "programs[0].lanes[0].steps[0].dsts[0]: a run of 2147483647 chunks, but the scratch of "
            "rank 1 has 2");
}

TEST(PlanJson, RefusesUnknownAndMissingFields) {
  EXPECT_EQ(error_with("\"ranks\": 2", "\"ranks\": 2, \"colour\": 3"),
            "plan: unknown field \"colour\"");
  EXPECT_EQ(error_with("\"ranks\": 2, ", ""), "plan: field \"ranks\" is missing");
  EXPECT_EQ(error_with("\"lag\": 2", "\"lag\": 2, \"lead\": 1"),
            "programs[0].lanes[0].steps[0].waits[0]: unknown field \"lead\"");
  EXPECT_EQ(error_with(", \"lag\": 2", ""),
            "programs[0].lanes[0].steps[0].waits[0]: field \"lag\" is missing");
  EXPECT_EQ(error_with("{\"op\": \"copy\", ", "{"),
            "programs[0].lanes[0].steps[0]: field \"op\" is missing");
}

TEST(PlanJson, RefusesAFieldThatOccursTwice) {
  EXPECT_EQ(error_with("\"ranks\": 2", "\"ranks\": 2, \"ranks\": 2"),
            "plan text: ranks: the field occurs twice");
  EXPECT_EQ(error_with("\"lag\": 2", "\"lag\": 2, \"lag\": 2"),
            "plan text: programs[0].lanes[0].steps[0].waits[0].lag: the field occurs twice");
}

TEST(PlanJson, RefusesWrongTypes) {
  EXPECT_EQ(error_with("\"ranks\": 2", "\"ranks\": 2.0"), "ranks: 2.0 is not a whole number");
  EXPECT_EQ(error_with("\"ranks\": 2", "\"ranks\": \"2\""), "ranks: \"2\" is not a whole number");
  EXPECT_EQ(error_with("\"name\": \"ring\"", "\"name\": []"), "name: [] is not a string");
  EXPECT_EQ(error_with("\"buffer\": \"input\"", "\"buffer\": \"inputs\""),
            "programs[0].lanes[0].steps[0].srcs[0].buffer: \"inputs\" is none of \"input\", "
            "\"output\", \"scratch\"");
  EXPECT_EQ(load_error("[]"), "plan: [] is not an object");
}

TEST(PlanJson, NamesLineAndColumnWhereTheTextIsNoJson) {
  EXPECT_THAT(load_error("{\n  \"name\" 3}"), HasSubstr("line 2, column 10"));
  EXPECT_THAT(load_error(save_json(sample()) + "x"), HasSubstr("line"));
  EXPECT_THAT(load_error(""), HasSubstr("line 1, column 1"));
}

TEST(PlanJson, RefusesTextBeyondItsCaps) {
  EXPECT_THAT(load_error(std::string(kMaxPlanText + 1, ' ')), HasSubstr("67108864 are allowed"));
  EXPECT_THAT(load_error(std::string(100000, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(error_with("\"ring\"", '"' + std::string(kMaxNameBytes + 1, 'x') + '"'),
              StartsWith("name: "));
  EXPECT_THAT(error_with("\"ring\"", "\"r\\ning\""), StartsWith("name: "));
}

// Whatever the text, the loader returns; and a plan that it returns saves and loads again.
void expect_sound(const std::string& text) {
  const Result<Plan> plan = load_json(text);
  if (!plan.ok()) {
    EXPECT_EQ(plan.status().code(), Code::kPlanInvalid);
    EXPECT_FALSE(plan.status().message().empty());
    return;
  }
  const Result<Plan> again = load_json(save_json(plan.value()));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again.value(), plan.value());
  const Result<VerifiedPlan> verdict = verify(plan.value());
  EXPECT_EQ(verdict.ok(), verdict.status().message().empty());
}

TEST(PlanJson, RefusesTheTextCutAnywhere) {
  const std::string text = save_json(sample());
  for (size_t length = 0; length + 2 < text.size(); ++length) {
    ASSERT_NE(load_error(text.substr(0, length)), "ok") << length;
  }
}

TEST(PlanJson, SurvivesEveryFlippedBit) {
  const std::string text = save_json(samples::one_hop_all_reduce(2));
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      expect_sound(flipped);
    }
  }
}

TEST(PlanJson, SurvivesTokensInTheWrongPlaces) {
  const std::string text = save_json(sample());
  const std::vector<std::string> tokens = {
      "-1",   "0",    "3",   "4294967296",          "null", "{}", "[]",
      "\"\"", "true", "1e9", "99999999999999999999"};
  std::mt19937_64 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = text;
    for (int edits = 0; edits < 2; ++edits) {
      const size_t at = changed.find_first_of("0123456789{[", random() % changed.size());
      if (at == std::string::npos) continue;
      changed.replace(at, 1, tokens[random() % tokens.size()]);
    }
    expect_sound(changed);
  }
}

}  // namespace
}  // namespace tessera
