// Operators made of plans that users bring.
#include "fusion/user_plan.h"

#include <gmock/gmock.h>

#include <functional>

#include "fusion/plans.h"
#include "fusion/workload.h"
#include "plan/gates.h"
#include "plan/json.h"

namespace tessera::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

FusedDescription matrix(Collective collective, Mapping mapping = Mapping::kDirect) {
  FusedDescription d;
  d.collective = collective;
  d.mapping = mapping;
  d.rows = 60;
  d.cols = 20;
  d.tile_rows = 4;
  d.tile_cols = 8;
  d.chunks = 2;
  return d;
}

// The library's plan, as if written to a file and edited.
Plan preset(const FusedDescription& wish, int ranks) {
  const FusedDescription d = complete(wish, ranks, 0).value();
  return fused_plan(shape_of(d, Geometry(d, ranks, 0), ranks));
}
Plan saved_and_loaded(const Plan& plan) { return load_json(save_json(plan)).value(); }

std::string refusal(const Plan& plan, const FusedDescription& wish, int ranks,
                    const std::vector<int>& host_of = {}) {
  const Result<Adopted> adopted = adopt(plan, wish, ranks, 0, host_of);
  if (adopted.ok()) return "";
  EXPECT_EQ(adopted.status().code(), Code::kInvalidArgument);
  return adopted.status().message();
}

class EveryPreset : public ::testing::TestWithParam<std::pair<Collective, Mapping>> {};

TEST_P(EveryPreset, SavedAndLoadedGivesTheSameBits) {
  const auto [collective, mapping] = GetParam();
  for (const std::vector<int>& hosts : {std::vector<int>{}, {0, 1, 0}}) {
    Load load;
    load.ranks = 3;
    load.hosts = hosts;
    load.launches = 5;
    load.description = matrix(collective, mapping);
    const Plan plan = saved_and_loaded(preset(load.description, 3));
    run_ranks(
        3, quick_options(),
        [&](Communicator& comm) {
          Load mine = load;
          mine.description.chunks = 0;
          auto op = FusedOperator::create(host_rank(comm), mine.description, plan);
          ASSERT_TRUE(op.ok()) << op.status().message();
          // The worker computes what the mapping's order of additions gives.
          FusedDescription shown = op.value()->description();
          EXPECT_EQ(shown.plan, fingerprint(plan));
          EXPECT_EQ(shown.chunks, 2);
          Worker<float>(mine, *op.value(), mapping).run();
          EXPECT_THAT(op.value()->explain(), HasSubstr("plan \"fused-"));
          EXPECT_EQ(op.value()->close().message(), "");
        },
        hosts);
  }
}

INSTANTIATE_TEST_SUITE_P(UserPlans, EveryPreset,
                         ::testing::Values(std::pair(Collective::kReduceScatter, Mapping::kDirect),
                                           std::pair(Collective::kReduceScatter, Mapping::kRing),
                                           std::pair(Collective::kAllReduce, Mapping::kDirect),
                                           std::pair(Collective::kAllReduce, Mapping::kRing),
                                           std::pair(Collective::kAllGather, Mapping::kDirect),
                                           std::pair(Collective::kAllGather, Mapping::kRing),
                                           std::pair(Collective::kAllToAll, Mapping::kDirect)));

// A plan of one's own: no chunks but blocks, parts pulled by the owner, who also adds.
Plan pulling_sum(int ranks, uint32_t tiles) {
  Plan plan;
  plan.name = "pulling";
  plan.collective = Collective::kReduceScatter;
  plan.ranks = ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    RankProgram& program = plan.programs.emplace_back();
    program.scratch_chunks = ranks;
    for (int chunk = 0; chunk < ranks; ++chunk)
      program.counters.push_back({CounterKind::kExternal, tiles});
    program.counters.push_back({});  // landed
    const int staged = ranks + 1, taken = ranks + 2;
    program.counters.resize(static_cast<size_t>(ranks + 3));
    Step last{Op::kReduce, 0, 1, {{rank, Buffer::kOutput, 0}}, {}, {}, {}, false};
    last.waits.push_back({rank, tiles, 0});
    if (ranks > 1) last.waits.push_back({staged, static_cast<uint32_t>(ranks - 1), 0});
    last.signals.push_back({rank, ranks, 1});
    for (int peer = 0; peer < ranks; ++peer) {
      last.srcs.push_back(peer == rank ? Ref{rank, Buffer::kInput, rank}
                                       : Ref{peer, Buffer::kScratch, rank});
      if (peer == rank) continue;
      Step stage{Op::kCopy,
                 0,
                 1,
                 {{rank, Buffer::kScratch, peer}},
                 {{rank, Buffer::kInput, peer}},
                 {{peer, tiles, 0}, {taken, static_cast<uint32_t>(ranks - 1), 1}},
                 {{peer, staged, 1}},
                 false};
      program.lanes.push_back({{stage}});
      last.signals.push_back({peer, taken, 1});
    }
    program.lanes.push_back({{last}});
    program.lanes.push_back({{Step{Op::kSync, 0, 1, {}, {}, {{ranks, 1, 0}}, {}, false}}});
  }
  return plan;
}

FusedDescription pulled() {
  FusedDescription d = matrix(Collective::kReduceScatter);
  d.rows = 48;
  d.chunks = 0;
  return d;
}

TEST(UserPlans, OfAnotherScheduleRun) {
  run_ranks(3, quick_options(), [](Communicator& comm) {
    Load load;
    load.ranks = 3;
    load.launches = 20;
    load.threads = 2;
    load.description = pulled();
    for (const int copies_of_scratch : {1, 2}) {
      Plan plan = pulling_sum(3, 12);
      plan.scratch_depth = copies_of_scratch;
      auto op = FusedOperator::create(host_rank(comm), load.description, plan);
      ASSERT_TRUE(op.ok()) << op.status().message();
      Worker<float>(load, *op.value()).run();
      EXPECT_THAT(op.value()->explain(), HasSubstr("model: "));
      EXPECT_EQ(op.value()->close().message(), "");
    }
  });
}

TEST(UserPlans, WhoseRanksReadEachOtherAreForOneHost) {
  EXPECT_EQ(refusal(pulling_sum(3, 12), pulled(), 3), "");
  EXPECT_EQ(refusal(pulling_sum(3, 12), pulled(), 3, {1, 1, 1}), "");
  EXPECT_THAT(refusal(pulling_sum(3, 12), pulled(), 3, {0, 0, 1}),
              HasSubstr("has rank 0 read scratch chunk 0 of rank 2, which is on another host"));
}

TEST(UserPlans, OfAnotherShapeAreRefused) {
  const FusedDescription d = matrix(Collective::kReduceScatter);
  const Plan plan = preset(d, 3);
  EXPECT_EQ(refusal(plan, d, 3), "");
  const auto refused = [&](const std::function<void(FusedDescription&)>& change, const char* why,
                           int ranks = 3) {
    FusedDescription other = d;
    change(other);
    EXPECT_THAT(refusal(plan, other, ranks), HasSubstr(why));
  };
  refused([](FusedDescription& o) { o.collective = Collective::kAllToAll; },
          "plan \"fused-direct\" is a reduce-scatter, the operator all-to-all");
  refused([](FusedDescription&) {}, "is for 3 ranks, here are 2", 2);
  refused([](FusedDescription& o) { o.chunks = 3; }, "has 2 chunks per rank, the description 3");
  refused([](FusedDescription& o) { o.tile_cols = 4; },
          "counter 0 of rank 0 gets 9 arrivals; 15 tiles touch chunk 0 of the input");
  refused([](FusedDescription& o) { o.rows = 3; },
          "has 2 chunks per rank; rows divide into no more than 1");
  refused([](FusedDescription& o) { o.rows = 0; }, "has no elements");
}

// Mutations of a preset: each is refused with the place of the fault.
struct Mutation {
  const char* name;
  std::function<void(Plan&)> mutate;
  const char* why;
};

Step& first_step(Plan& plan, int rank, Op op) {
  for (Lane& lane : plan.programs[static_cast<size_t>(rank)].lanes) {
    for (Step& step : lane.steps)
      if (step.op == op) return step;
  }
  ADD_FAILURE() << "no such step";
  return plan.programs[0].lanes[0].steps[0];
}

TEST(UserPlans, ThatWereSpoiltAreRefusedWithThePlace) {
  const FusedDescription d = matrix(Collective::kReduceScatter);
  const int landed = 6;  // after the counters of six chunks
  const std::vector<Mutation> mutations = {
      {"a wait for tiles is gone",
       [](Plan& p) {
         Step& sum = first_step(p, 1, Op::kReduce);
         Step& copy = first_step(p, 1, Op::kCopy);
         // Another step waits in its place, so that counters balance.
         const Wait tiles = copy.waits.front();
         std::erase(copy.waits, tiles);
         sum.waits.push_back(tiles);
       },
       "without waiting for the tiles over it"},
      {"one tile less is waited for",
       [](Plan& p) { --first_step(p, 0, Op::kCopy).waits.front().increment; }, "waits are for"},
      {"an external counter is a step counter", [](Plan& p) { p.programs[2].counters[3] = {}; },
       "counter 3"},
      {"a step counter more is external",
       [](Plan& p) {
         p.programs[1].counters.push_back({CounterKind::kExternal, 2});
         p.programs[1].lanes[0].steps[0].waits.push_back(
             {static_cast<int>(p.programs[1].counters.size()) - 1, 2, 0});
       },
       "of rank 1 is external; the first 6 and no others are"},
      {"an output chunk is told early",
       [landed](Plan& p) {
         Step& sum = first_step(p, 0, Op::kReduce);
         const auto tells =
             std::find_if(sum.signals.begin(), sum.signals.end(), [&](const Signal& s) {
               return s.rank == 0 && s.counter >= landed && s.counter < landed + 2;
             });
         const Signal told = *tells;
         sum.signals.erase(tells);
         first_step(p, 0, Op::kCopy).signals.push_back(told);
       },
       "may tell that output chunk"},
      {"an output chunk counts by twos",
       [landed](Plan& p) {
         for (Lane& lane : p.programs[1].lanes) {
           for (Step& step : lane.steps) {
             for (Wait& wait : step.waits)
               if (wait.counter == landed) wait.increment = 2;
             for (Signal& signal : step.signals)
               if (signal.rank == 1 && signal.counter == landed) signal.increment = 2;
           }
         }
       },
       "raised once a pass, by 1"},
      {"a peer's input is read",
       [](Plan& p) {
         first_step(p, 0, Op::kReduce).srcs[1] = {1, Buffer::kInput, 1};
       },
       "rank 1"},
      {"a part is added twice",
       [](Plan& p) {
         Step& sum = first_step(p, 0, Op::kReduce);
         sum.srcs[1] = sum.srcs[2];
       },
       "contributes twice"},
  };
  for (const Mutation& mutation : mutations) {
    Plan plan = preset(d, 3);
    mutation.mutate(plan);
    const std::string why = refusal(plan, d, 3);
    EXPECT_THAT(why, AllOf(HasSubstr("plan \"fused-direct\" is faulty"), HasSubstr(mutation.why)))
        << mutation.name;
  }
}

TEST(UserPlans, EveryPresetHasItsGates) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const auto& [collective, mapping] : {std::pair(Collective::kReduceScatter, Mapping::kRing),
                                              std::pair(Collective::kAllReduce, Mapping::kRing),
                                              std::pair(Collective::kAllReduce, Mapping::kDirect),
                                              std::pair(Collective::kAllToAll, Mapping::kDirect)}) {
      EXPECT_EQ(refusal(preset(matrix(collective, mapping), ranks), matrix(collective), ranks), "");
    }
  }
}

TEST(UserPlans, ThatDifferBetweenRanksAreRefusedOnAll) {
  run_ranks(3, quick_options(), [](Communicator& comm) {
    const FusedDescription d = matrix(Collective::kAllReduce);
    Plan plan = preset(d, 3);
    if (comm.rank() == 1) plan.name = "another";
    const auto op = FusedOperator::create(host_rank(comm), d, plan);
    ASSERT_FALSE(op.ok());
    EXPECT_EQ(op.status().code(), Code::kInvalidUsage);
    EXPECT_THAT(op.status().message(), HasSubstr("describes plan "));
    // One rank without a plan of its own.
    const auto mixed = comm.rank() == 1 ? FusedOperator::create(host_rank(comm), d)
                                        : FusedOperator::create(host_rank(comm), d, plan);
    EXPECT_EQ(mixed.status().code(), Code::kInvalidUsage);
    EXPECT_THAT(mixed.status().message(), HasSubstr("none of its own"));
  });
}

TEST(UserPlans, ThatOneRankCannotReadAreRefusedOnAll) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    const FusedDescription d = matrix(Collective::kAllReduce);
    const auto op = FusedOperator::create(
        host_rank(comm), d,
        comm.rank() == 0 ? read_plan("/nonexistent/plan.json") : Result<Plan>(preset(d, 2)));
    ASSERT_FALSE(op.ok());
    EXPECT_EQ(op.status().code(), comm.rank() == 0 ? Code::kInvalidArgument : Code::kInvalidUsage);
    EXPECT_THAT(op.status().message(),
                HasSubstr("plan file /nonexistent/plan.json: cannot read this file"));
    // The communicator is as good as before.
    EXPECT_TRUE(FusedOperator::create(host_rank(comm), d, preset(d, 2)).ok());
  });
}

}  // namespace
}  // namespace tessera::test
