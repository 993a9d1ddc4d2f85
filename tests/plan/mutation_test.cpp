// The verifier against an independent executor: what verify() accepts must survive every schedule.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "plan/support/brute_force.h"
#include "plan/support/mutations.h"
#include "plan/support/sample_plans.h"
#include "plan/verifier.h"

namespace tessera::testing {
namespace {

constexpr int kRuns = 100;

struct Sample {
  std::string name;
  Plan plan;
};

std::vector<Sample> sample_plans() {
  return {{"ring reduce-scatter", samples::ring_reduce_scatter(3)},
          {"ring reduce-scatter, single scratch", samples::ring_reduce_scatter(3, 1)},
          {"ring all-reduce", samples::ring_all_reduce(3)},
          {"one-hop all-reduce", samples::one_hop_all_reduce(3)},
          {"shared-counter all-reduce", samples::shared_counter_all_reduce(3)},
          {"chain broadcast", samples::chain_broadcast(3, 1)},
          {"direct all-to-all", samples::direct_all_to_all(3)},
          {"direct all-gather", samples::direct_all_gather(3)},
          {"gated reduce", samples::gated_reduce(3, 1)},
          {"any-order reduce-scatter", samples::any_order_reduce_scatter(3)},
          {"barrier", samples::dissemination_barrier(3)}};
}

Plan verified(Plan plan) {
  Result<VerifiedPlan> result = verify(std::move(plan));
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? result->plan() : Plan{};
}

struct Tally {
  int accepted = 0, rejected = 0, rejected_and_faulty = 0;
};

// Runs one mutant through both judges.
void judge(const std::string& name, const Plan& mutant, bool probe_rejected, Tally& tally) {
  const Result<VerifiedPlan> result = verify(mutant);
  if (result.ok()) {
    ++tally.accepted;
    const auto fault = find_fault(result->plan(), kRuns);
    EXPECT_FALSE(fault.has_value()) << name << " was accepted, but " << *fault;
    return;
  }
  EXPECT_FALSE(result.status().message().empty());
  if (!probe_rejected || result.status().code() == Code::kPlanInvalid) return;
  ++tally.rejected;
  if (find_fault(mutant, kRuns)) ++tally.rejected_and_faulty;
}

TEST(BruteForce, FindsNoFaultInCorrectPlans) {
  for (const Sample& sample : sample_plans()) {
    const auto fault = find_fault(verified(sample.plan), 300);
    EXPECT_FALSE(fault.has_value()) << sample.name << ": " << *fault;
  }
}

TEST(Verifier, AcceptsNoSingleMutationThatTheBruteForceFindsFaulty) {
  for (const Sample& sample : sample_plans()) {
    const Plan plan = verified(sample.plan);
    Tally tally;
    int mutants = 0;
    for (const Mutation& mutation : Mutations(plan).all()) {
      Plan mutant = plan;
      mutation.apply(mutant);
      if (mutant == plan) continue;
      ++mutants;
      judge(sample.name + ", " + mutation.name, mutant, mutants % 3 == 0, tally);
    }
    // The brute force is no rubber stamp: it finds most of what the verifier rejects.
    EXPECT_GT(tally.rejected_and_faulty * 2, tally.rejected) << sample.name;
    std::printf("%-40s %5d mutants, %4d accepted; of %d rejected ones run %d faulty\n",
                sample.name.c_str(), mutants, tally.accepted, tally.rejected,
                tally.rejected_and_faulty);
  }
}

TEST(Verifier, AcceptsNoDoubleMutationThatTheBruteForceFindsFaulty) {
  std::mt19937_64 random(20260);
  for (const Sample& sample : sample_plans()) {
    const Plan plan = verified(sample.plan);
    const std::vector<Mutation> mutations = Mutations(plan).all();
    Tally tally;
    for (int i = 0; i < 4000; ++i) {
      const Mutation& first = mutations[random() % mutations.size()];
      const Mutation& second = mutations[random() % mutations.size()];
      Plan mutant = plan;
      first.apply(mutant);
      second.apply(mutant);
      judge(sample.name + ", " + first.name + " and " + second.name, mutant, false, tally);
    }
  }
}

}  // namespace
}  // namespace tessera::testing
