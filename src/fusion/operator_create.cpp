// How an operator comes and goes: what ranks agree on, and the linked plan it borrows.
#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "fusion/operator.h"
#include "fusion/plans.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

// What a rank tells the others before they build.
struct Offer {
  FusedDescription description;
  uint64_t spare = 0;  // serial of a linked plan that it could use again; 0: none
  uint64_t next_pass = 0;
};

std::string spare_name(const FusedDescription& description) {
  return fmt::format("fused {:016x}", digest(description));
}

Status compare(const std::vector<Offer>& offers, const Core& core) {
  for (int rank = 0; rank < core.ranks; ++rank) {
    const std::string text =
        difference(core.rank, offers[core.rank].description, rank, offers[rank].description);
    if (!text.empty()) {
      return Status::error(Code::kInvalidUsage,
                           "{}: creating a fused operator: {}. All ranks must "
                           "describe the same",
                           core.health->who(), text);
    }
  }
  return {};
}

bool all_offer_the_same(const std::vector<Offer>& offers) {
  for (const Offer& offer : offers) {
    if (offer.spare == 0 || offer.spare != offers[0].spare ||
        offer.next_pass != offers[0].next_pass)
      return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<FusedOperator>> FusedOperator::create(HostCommunicator& comm,
                                                             const FusedDescription& wish) {
  Core& core = comm.core();
  if (!core.health->good()) return core.health->status();
  Result<FusedDescription> description = complete(wish, core.ranks);
  if (!description.ok()) {
    return Status(
        description.status().code(),
        core.health->who() + ": creating a fused operator: " + description.status().message());
  }
  FusedDescription& d = description.value();
  d.remote = d.remote && !core.ports;  // kernels store where loads and stores reach
  LinkedPlan* linked = comm.plans().spare(spare_name(d));
  const Offer mine{d, linked == nullptr ? 0 : linked->serial,
                   linked == nullptr ? 0 : linked->next_pass};
  std::vector<int> everyone(static_cast<size_t>(core.ranks));
  std::iota(everyone.begin(), everyone.end(), 0);
  Result<std::vector<Offer>> offers =
      comm.exchange().all_gather(everyone, mine, "creating a fused operator", comm.deadline());
  if (!offers.ok()) return core.health->raise(offers.status());
  if (Status s = compare(offers.value(), core); !s.ok()) return s;

  const Geometry geometry(d, core.ranks, core.rank);
  const FusedPlanShape shape = shape_of(d, geometry, core.ranks);
  if (all_offer_the_same(offers.value())) {
    comm.plans().take(linked);
  } else {
    Result<VerifiedPlan> plan = verify(fused_plan(shape));
    if (!plan.ok()) return plan.status();
    Result<LinkedPlan*> made =
        comm.plans().lend(plan.value(), geometry.largest_chunk_rows() * d.row_bytes());
    if (!made.ok()) return made.status();
    linked = made.value();
  }
  return std::unique_ptr<FusedOperator>(
      new FusedOperator(comm, d, geometry, *linked, counters_of(shape).landed));
}

Status FusedOperator::close() {
  const std::lock_guard lock(driver_);  // the thread that drove the last step may still be there
  if (!core_.health->good()) return {};
  if (!done()) {
    return Status::error(Code::kInvalidUsage,
                         "{}: {}: launch {} is still under way; wait for it before destroying the "
                         "operator",
                         core_.health->who(), describe(description_), launched_.counter.value());
  }
  // Tiles reported for a launch that never came leave counters between two passes.
  if (tracker_.clean(finished_.counter.value()))
    comm_.plans().give_back(&linked_, spare_name(description_));
  return {};
}

std::string FusedOperator::explain() {
  const TileGrid& grid = tracker_.grid();
  const uint64_t launched = launched_.counter.value(), finished = finished_.counter.value();
  const size_t chunk_rows = geometry_.largest_chunk_rows();
  std::string text = fmt::format(
      "{}, {}, rank {} of {}\n"
      "  chunks: {} per rank of up to {} rows, {} bytes each; scratch {} bytes\n",
      describe(description_), to_string(description_.mapping), core_.rank, core_.ranks,
      description_.chunks, chunk_rows, chunk_rows * description_.row_bytes(),
      region_bytes(linked_.program));
  if (tile_counters_ > 0) {
    text += fmt::format("  tiles: {} x {} of {} x {}, {} report(s) each\n", grid.down(),
                        grid.across(), grid.tile_rows, grid.tile_cols, description_.parts);
  }
  text += "  " + advice() + "\n";
  text += fmt::format("  launches: {} begun, {} over\n", launched, finished);
  if (launched == finished) return text;
  const std::string missing = tracker_.missing(finished);
  if (!missing.empty()) text += "  " + missing + "\n";
  const std::lock_guard lock(driver_);
  return text + "  " + run_.blocked(tile_counters_) + "\n";
}

}  // namespace tessera
