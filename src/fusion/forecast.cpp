#include "fusion/forecast.h"

#include <algorithm>
#include <vector>

#include "simulator/simulate.h"
#include "tuner/model.h"

namespace tessera {
namespace {

simulator::Cost costs_of_hosts() {
  const HostCosts costs;
  simulator::Cost cost;
  cost.host.copy_gbs = costs.copy / simulator::kBytesPerUs;
  cost.host.reduce_gbs = costs.reduce / simulator::kBytesPerUs;
  cost.host.switch_us = 0;
  return cost;
}

int modulo(int a, int n) { return ((a % n) + n) % n; }

// What a rank's steps take of its core, wherever they store.
double busy_us(const Plan& plan, int rank, size_t chunk_bytes) {
  const HostCosts costs;
  double us = 0;
  for (const Lane& lane : plan.programs[static_cast<size_t>(rank)].lanes) {
    for (const Step& step : lane.steps) {
      if (step.op == Op::kSync) continue;
      const auto bytes = static_cast<double>(chunk_bytes) * step.chunks;
      const auto sources = static_cast<double>(step.srcs.size());
      if (step.op == Op::kCopy)
        us += static_cast<double>(step.dsts.size()) * bytes / costs.copy;
      else
        us += (step.op == Op::kReduce ? sources - 1 : 1) * bytes / costs.reduce;
    }
  }
  return us;
}

// When a rank's consumer is through; landed: by chunk of the output.
double consumed_us(const std::vector<double>& landed, int first, double consume_us) {
  const auto chunks = static_cast<int>(landed.size());
  double done = 0;
  for (int i = 0; i < chunks; ++i) {
    const int chunk = modulo(first - 1 - i, chunks);
    done = std::max(done, landed[static_cast<size_t>(chunk)]) + consume_us / chunks;
  }
  return done;
}

}  // namespace

Result<double> fused_time(const Plan& plan, const FusedDescription& d, const Geometry& geometry,
                          const FusedPlanShape& shape, const simulator::Routes& routes,
                          const Kernels& kernels) {
  Result<simulator::Source> source = simulator::Source::of(plan);
  if (!source.ok()) return source.status();
  simulator::Cost cost = costs_of_hosts();
  double arrivals = 0;
  for (const uint32_t tiles : shape.arrivals) arrivals += tiles;
  cost.host.tile_us = arrivals > 0 ? kernels.produce_us / arrivals : 0;

  const FusedCounters counters = counters_of(shape);
  const bool whole = geometry.output_rows() == d.rows && d.collective != Collective::kReduceScatter;
  const int out_chunks = (whole ? shape.ranks : 1) * shape.chunks;
  std::vector<std::vector<double>> landed(static_cast<size_t>(shape.ranks),
                                          std::vector<double>(static_cast<size_t>(out_chunks)));
  simulator::SimulateOptions options;
  options.critical_path = false;
  options.tile_order = [&](int rank, uint32_t i) {
    if (!kernels.staggered) return i;
    const int first = std::min((shape.onto ? rank + 1 : rank) * shape.chunks, counters.landed);
    return static_cast<uint32_t>(modulo(first - 1 - static_cast<int>(i), counters.landed));
  };
  options.raised = [&](int rank, uint32_t counter, double us) {
    const int chunk = static_cast<int>(counter) - counters.landed;
    if (chunk >= 0 && chunk < out_chunks)
      landed[static_cast<size_t>(rank)][static_cast<size_t>(chunk)] = us;
  };
  const simulator::Message message{static_cast<size_t>(geometry.plan_block_rows()), d.row_bytes()};
  Result<simulator::Outcome> outcome =
      simulator::simulate(source.value(), routes, message, cost, options);
  if (!outcome.ok()) return outcome.status();

  double end = std::max(outcome.value().total_us, kernels.produce_us);
  const double work = kernels.produce_us + kernels.consume_us;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const size_t chunk_bytes = geometry.largest_chunk_rows() * d.row_bytes();
    end = std::max(end, work + busy_us(plan, rank, chunk_bytes));
    if (kernels.consume_us > 0) {
      const int first = whole ? (rank + 1) * shape.chunks : out_chunks;
      end =
          std::max(end, consumed_us(landed[static_cast<size_t>(rank)], first, kernels.consume_us));
    }
  }
  return end;
}

Result<double> collective_time(const Algorithm& algorithm, const AlgorithmParams& params,
                               size_t block_bytes, size_t slot_bytes,
                               const simulator::Routes& routes) {
  Result<simulator::Source> source = simulator::Source::of(algorithm, params);
  if (!source.ok()) return source.status();
  simulator::Message message{block_bytes, 1};
  message.slice = slot_bytes * source.value().code().chunks_per_block;
  simulator::SimulateOptions options;
  options.critical_path = false;
  Result<simulator::Outcome> outcome =
      simulator::simulate(source.value(), routes, message, costs_of_hosts(), options);
  if (!outcome.ok()) return outcome.status();
  return outcome.value().total_us;
}

}  // namespace tessera
