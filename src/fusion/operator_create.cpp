// How an operator comes and goes: what ranks agree on, and the linked plan it borrows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "fusion/operator.h"
#include "fusion/plans.h"
#include "fusion/user_plan.h"
#include "plan/verifier.h"

namespace tessera {
namespace {

// What a rank tells the others before they build.
struct Offer {
  FusedDescription description;
  uint64_t spare = 0;  // serial of a linked plan that it could use again; 0: none
  uint64_t next_pass = 0;
  std::array<char, 160> refused{};  // why this rank cannot; empty: it can
};

std::string spare_name(const FusedDescription& description) {
  return fmt::format("fused {:016x}", digest(description));
}

Status compare(const std::vector<Offer>& offers, const Core& core) {
  for (int rank = 0; rank < core.ranks; ++rank) {
    if (offers[rank].refused[0] == '\0') continue;
    return Status::error(Code::kInvalidUsage, "{}: creating a fused operator: rank {} refuses: {}",
                         core.health->who(), rank, offers[rank].refused.data());
  }
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

// Scraps plans that all ranks have given back. All ranks are here: they lend alike, and lack room
// alike.
Status make_room(HostCommunicator& comm, const FusedDescription& d) {
  struct Spares {
    std::array<uint64_t, 32> serials{};
  };
  Core& core = comm.core();
  Spares mine;
  const std::vector<uint64_t> own = comm.plans().spares(mine.serials.size());
  std::copy(own.begin(), own.end(), mine.serials.begin());
  Result<std::vector<Spares>> all =
      comm.exchange().all_gather(comm.everyone(), mine, SetupCall::kFusedRoom, comm.deadline());
  if (!all.ok()) return core.health->raise(all.status());
  int scrapped = 0;
  for (const uint64_t serial : own) {
    const bool agreed =
        std::all_of(all.value().begin(), all.value().end(), [&](const Spares& spares) {
          return std::find(spares.serials.begin(), spares.serials.end(), serial) !=
                 spares.serials.end();
        });
    if (!agreed) continue;
    comm.plans().scrap(serial);
    ++scrapped;
  }
  // Nobody writes into a region before its owner has cleared it.
  Result<std::vector<int>> cleared = comm.exchange().all_gather(
      comm.everyone(), scrapped, SetupCall::kFusedRoomMade, comm.deadline());
  if (!cleared.ok()) return core.health->raise(cleared.status());
  if (scrapped > 0) return {};
  return Status::error(Code::kSystem,
                       "{}: {}: no room for its scratch, {} bytes are left; destroy operators that "
                       "are not needed, on all ranks, or ask for more chunks",
                       core.health->who(), describe(d), comm.plans().room());
}

// Decides whether tiles are added onto peers, alike on all ranks; why not, if it was asked for.
const char* settle_onto(const Core& core, FusedDescription* d) {
  if (d->onto_wish == OntoWish::kOff) return nullptr;
  const char* obstacle = Onto::obstacle(*d, core.ranks);
  if (obstacle == nullptr && core.ports) obstacle = "links are emulated, or between hosts";
  if (obstacle == nullptr && !core.one_process) obstacle = "ranks are in different processes";
  d->onto = obstacle == nullptr;
  if (d->onto) d->remote = false;
  return obstacle;
}

// Links the plan; other ranks do so, too.
Result<LinkedPlan*> lend(HostCommunicator& comm, const FusedDescription& d,
                         const Geometry& geometry, const VerifiedPlan& plan) {
  const size_t slot_bytes = geometry.largest_chunk_rows() * d.row_bytes();
  const size_t extra = d.onto ? Onto::region_bytes(d) : 0;
  Result<LinkedPlan*> made = comm.plans().lend(plan, slot_bytes, extra);
  while (made.ok() && made.value() == nullptr) {
    if (Status s = make_room(comm, d); !s.ok()) return s;
    made = comm.plans().lend(plan, slot_bytes, extra);
  }
  return made;
}

}  // namespace

Result<std::unique_ptr<FusedOperator>> FusedOperator::create(HostCommunicator& comm,
                                                             const FusedDescription& wish) {
  const Core& core = comm.core();
  return agree(comm, wish, {complete(wish, core.ranks, core.rank), nullptr});
}

Result<std::unique_ptr<FusedOperator>> FusedOperator::create(HostCommunicator& comm,
                                                             const FusedDescription& wish,
                                                             Result<Plan> brought) {
  const Core& core = comm.core();
  if (!brought.ok()) return agree(comm, wish, {brought.status(), nullptr});
  Result<Adopted> adopted =
      adopt(std::move(brought).value(), wish, core.ranks, core.rank, core.site.host_of);
  if (!adopted.ok()) return agree(comm, wish, {adopted.status(), nullptr});
  return agree(
      comm, wish,
      {adopted->description, std::make_shared<const VerifiedPlan>(std::move(adopted->plan))});
}

Result<std::unique_ptr<FusedOperator>> FusedOperator::agree(HostCommunicator& comm,
                                                            const FusedDescription& wish,
                                                            Intent intent) {
  Core& core = comm.core();
  if (!core.health->good()) return core.health->status();
  Status refusal = intent.description.status();
  FusedDescription d = refusal.ok() ? intent.description.value() : wish;
  const char* const obstacle = refusal.ok() ? settle_onto(core, &d) : nullptr;
  if (obstacle != nullptr && d.onto_wish == OntoWish::kRequire) {
    refusal = Status::error(Code::kInvalidArgument,
                            "tiles cannot be added onto the memory of peers, as is required: {}",
                            obstacle);
  }
  d.remote = d.remote && !core.ports;  // kernels store where loads and stores reach
  if (!d.remote) d.remote_chunks = 0;
  LinkedPlan* linked = comm.plans().spare(spare_name(d));
  Offer mine{d, linked == nullptr ? 0 : linked->serial, linked == nullptr ? 0 : linked->next_pass};
  if (!refusal.ok())  // the others learn of it
    refusal.message().copy(mine.refused.data(), mine.refused.size() - 1);
  Result<std::vector<Offer>> offers =
      comm.exchange().all_gather(comm.everyone(), mine, SetupCall::kFused, comm.deadline());
  if (!refusal.ok()) {
    return Status(refusal.code(),
                  core.health->who() + ": creating a fused operator: " + refusal.message());
  }
  if (!offers.ok()) return core.health->raise(offers.status());
  if (Status s = compare(offers.value(), core); !s.ok()) return s;

  const Geometry geometry(d, core.ranks, core.rank);
  const FusedPlanShape shape = shape_of(d, geometry, core.ranks);
  if (all_offer_the_same(offers.value())) {
    comm.plans().take(linked);
  } else {
    Result<VerifiedPlan> plan = intent.brought ? *intent.brought : verify(fused_plan(shape));
    if (!plan.ok()) return plan.status();
    Result<LinkedPlan*> made = lend(comm, d, geometry, plan.value());
    if (!made.ok()) return made.status();
    linked = made.value();
  }
  return std::unique_ptr<FusedOperator>(new FusedOperator(
      comm, d, geometry, *linked, counters_of(shape).landed, std::move(intent.brought), obstacle));
}

void FusedOperator::abandon() {
  take_back_output();
  closed_ = true;
}

Status FusedOperator::close() {
  if (!core_.health->good()) {
    abandon();
    return {};
  }
  const std::lock_guard lock(driver_);  // the thread that drove the last step may still be there
  if (!done()) {
    return Status::error(Code::kInvalidUsage,
                         "{}: {}: launch {} is still under way; wait for it before destroying the "
                         "operator",
                         core_.health->who(), describe(description_), launched_.counter.value());
  }
  closed_ = true;
  // Tiles reported for a launch that never came leave counters between two passes.
  if (tracker_.clean(finished_.counter.value()))
    comm_.plans().give_back(&linked_, spare_name(description_));
  return {};
}

namespace {

std::string how(const FusedDescription& d) {
  if (d.onto) return "onto the owner";
  return to_string(d.mapping) + std::string(d.any_order ? " in any order" : "");
}

}  // namespace

std::string FusedOperator::explain() {
  const TileGrid& grid = tracker_.grid();
  const uint64_t launched = launched_.counter.value(), finished = finished_.counter.value();
  const size_t chunk_rows = geometry_.largest_chunk_rows();
  std::string text = fmt::format(
      "{}, {}, rank {} of {}\n"
      "  chunks: {} per rank of up to {} rows, {} bytes each; scratch {} bytes\n",
      describe(description_),
      brought_ ? fmt::format("plan \"{}\"", brought_->plan().name) : how(description_), core_.rank,
      core_.ranks, description_.chunks, chunk_rows, chunk_rows * description_.row_bytes(),
      region_bytes(linked_.program));
  if (tile_counters_ > 0) {
    text += fmt::format("  tiles: {} x {} of {} x {}, {} report(s) each\n", grid.down(),
                        grid.across(), grid.tile_rows, grid.tile_cols, description_.parts);
  }
  if (onto_) text += "  tiles are added onto the output of the rank that owns them\n";
  if (obstacle_ != nullptr)
    text += fmt::format("  tiles are not added onto the output of peers: {}\n", obstacle_);
  text += "  " + advice() + "\n";
  text += fmt::format("  launches: {} begun, {} over\n", launched, finished);
  if (launched == finished) return text;
  const std::string missing = tracker_.missing(finished);
  if (!missing.empty()) text += "  " + missing + "\n";
  const std::lock_guard lock(driver_);
  return text + "  " + run_.blocked(tile_counters_) + "\n";
}

}  // namespace tessera
