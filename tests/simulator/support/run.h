// Short ways to run simulations.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "simulator/simulate.h"
#include "simulator/support/machines.h"

namespace tessera::simulator::run {

// For all ranks, with local work that costs next to nothing unless it is given.
struct Costs {
  double step_us = 0, signal_us = 0, copy_gbs = 1e6, reduce_gbs = 1e6;
};
inline Cost costs(const Costs& given) {
  RankCost rank;
  rank.launch_us = 0;
  rank.step_us = given.step_us;
  rank.signal_us = given.signal_us;
  rank.copy_gbs = given.copy_gbs;
  rank.reduce_gbs = given.reduce_gbs;
  return {rank, rank};
}

inline AlgorithmParams params_for(Collective collective, int ranks, int chunks) {
  AlgorithmParams params;
  params.ranks = ranks;
  params.root = has_root(collective) ? 0 : -1;
  params.chunks = chunks;
  return params;
}

inline Outcome algorithm(Collective collective, std::string_view name,
                         const machines::Machine& machine, size_t count, const Cost& cost,
                         int chunks = 1, size_t slice = 0, const SimulateOptions& options = {}) {
  const Algorithm* found = find_algorithm(collective, name, Reach::kStaged);
  EXPECT_NE(found, nullptr) << name;
  const Result<Source> source =
      Source::of(*found, params_for(collective, static_cast<int>(machine.nodes.size()), chunks));
  EXPECT_TRUE(source.ok()) << source.status().message();
  Result<Outcome> outcome =
      simulate(source.value(), machine.routes(), {count, 4, slice}, cost, options);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return std::move(outcome).value();
}

}  // namespace tessera::simulator::run
