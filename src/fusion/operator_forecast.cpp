// What an operator would take, and whether it pays.
#include <utility>

#include "fusion/forecast.h"
#include "fusion/machine.h"
#include "fusion/operator.h"
#include "fusion/traffic.h"

namespace tessera {
namespace {

// Bytes of a block of the NCCL call that does the same.
size_t call_block(const FusedDescription& d, const Geometry& geometry) {
  const bool whole = d.collective == Collective::kAllReduce;
  return static_cast<size_t>(whole ? d.rows : geometry.block_rows()) * d.row_bytes();
}

// By a tuner of its own: the communicator's belongs to the thread that runs its calls. Plugins are not
// asked.
Result<double> alone_us(const Core& core, const FusedDescription& d, const Geometry& geometry,
                        const simulator::Routes& routes) {
  Result<Tuner> made = Tuner::create(core.site, core.config, core.tuning.profile);
  if (!made.ok()) return made.status();
  Tuner& tuner = made.value();
  const size_t block = call_block(d, geometry);
  const BulkCall call{d.collective, block, core.access(true), false};
  Result<Candidate> chosen = tuner.chosen(call);
  if (!chosen.ok()) return chosen.status();
  if (!core.ports) return tuner.estimator().estimate(chosen.value(), block).microseconds;
  const Choice choice = tuner.choice_of_bulk(call, chosen.value());
  AlgorithmParams params = params_at(core.site, -1);
  params.scratch_depth = choice.depth;
  return collective_time(*chosen.value().algorithm, params, block, choice.slot_bytes, routes);
}

}  // namespace

Plan FusedOperator::plan() const {
  return brought_ ? brought_->plan() : fused_plan(shape_of(description_, geometry_, core_.ranks));
}

Result<FusedOperator::Forecast> FusedOperator::forecast(double produce_us, double consume_us) {
  const std::unique_ptr<simulator::Routes> routes = fused_machine(core_.emulated.get(), core_.site);
  const FusedPlanShape shape = shape_of(description_, geometry_, core_.ranks);
  const Plan plan = onto_ ? without_kernels(this->plan()) : this->plan();
  const Result<double> fused =
      fused_time(plan, description_, geometry_, shape, *routes, {produce_us, consume_us});
  if (!fused.ok()) return fused.status();
  const Result<double> in_order =
      fused_time(plan, description_, geometry_, shape, *routes, {produce_us, consume_us, false});
  if (!in_order.ok()) return in_order.status();
  const Result<double> alone = alone_us(core_, description_, geometry_, *routes);
  if (!alone.ok()) return alone.status();
  Forecast forecast;
  forecast.fused_us = fused.value();
  forecast.in_order_us = in_order.value();
  forecast.collective_us = alone.value();
  forecast.unfused_us = produce_us + alone.value() + consume_us;
  const auto rows = static_cast<uint64_t>(geometry_.plan_block_rows());
  const auto bytes = [&](CountSums sums) {
    Traffic t =
        traffic_of(plan, core_.rank, rows, description_.remote, sums, description_.remote_chunks);
    // A kernel that adds reads the rows of the owner.
    if (onto_ && sums == CountSums::kOperands)
      t.read += static_cast<uint64_t>(geometry_.owned(core_.rank).size());
    t.read *= description_.row_bytes();
    t.written *= description_.row_bytes();
    return t;
  };
  forecast.operands = bytes(CountSums::kOperands);
  forecast.merging = bytes(CountSums::kMerging);
  return forecast;
}

std::string FusedOperator::advice() {
  Result<Forecast> idle = forecast(0, 0);
  if (!idle.ok()) return idle.status().message();
  // A product as long as the collective has the most to gain.
  const double compute = idle.value().collective_us;
  Result<Forecast> best = forecast(compute, 0);
  if (!best.ok()) return best.status().message();
  const double ratio = best.value().unfused_us / best.value().fused_us;
  return fmt::format(
      "model: the collective alone takes {:.1f} us; with a kernel of as much, unfused {:.1f} us, "
      "fused {:.1f} us: {}",
      compute, best.value().unfused_us, best.value().fused_us,
      best.value().pays() ? fmt::format("fusing gains up to {:.2f} times", ratio) : "do not fuse");
}

}  // namespace tessera
