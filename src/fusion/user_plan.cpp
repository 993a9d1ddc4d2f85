#include "fusion/user_plan.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "fusion/plans.h"
#include "plan/gates.h"
#include "plan/json.h"

namespace tessera {
namespace {

template <class... Args>
Status bad(const Plan& plan, fmt::format_string<Args...> format, Args&&... args) {
  return Status::error(Code::kInvalidArgument, "plan \"{}\" {}", plan.name,
                       fmt::format(format, std::forward<Args>(args)...));
}

// What the verifier found is the user's mistake here.
Status faulty(const std::string& name, const Status& fault) {
  return Status::error(Code::kInvalidArgument, "plan \"{}\" is faulty: {}: {}", name,
                       to_string(fault.code()), fault.message());
}

// A rank's chunks.
Result<int> chunks_of(const Plan& plan, const FusedDescription& wish, int ranks) {
  if (plan.collective != wish.collective) {
    return bad(plan, "is {} {}, the operator {}",
               plan.collective == Collective::kAllReduce ? "an" : "a", to_string(plan.collective),
               to_string(wish.collective));
  }
  if (plan.ranks != ranks) return bad(plan, "is for {} ranks, here are {}", plan.ranks, ranks);
  const bool whole = plan.collective == Collective::kAllReduce;
  if (whole && plan.chunks_per_block % ranks != 0) {
    return bad(plan, "has {} chunks, of which {} ranks cannot own equally many",
               plan.chunks_per_block, ranks);
  }
  const int chunks = whole ? plan.chunks_per_block / ranks : plan.chunks_per_block;
  if (wish.chunks == 0 || wish.chunks == chunks) return chunks;
  return bad(plan, "has {} chunks per rank, the description {}", chunks, wish.chunks);
}

// Tiles over each chunk are as many as the plan says arrive.
Status check_arrivals(const Plan& plan, const FusedPlanShape& shape) {
  const int gated = counters_of(shape).landed;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const std::vector<CounterInfo>& counters = plan.programs[static_cast<size_t>(rank)].counters;
    for (int chunk = 0; chunk < gated; ++chunk) {
      const uint32_t says = counters[static_cast<size_t>(chunk)].arrivals;
      const uint32_t tiles = shape.arrivals[static_cast<size_t>(chunk)];
      if (says == tiles) continue;
      return bad(
          plan,
          "says that counter {} of rank {} gets {} arrivals; {} tiles touch chunk {} of the input",
          chunk, rank, says, tiles, chunk);
    }
  }
  return {};
}

// Between hosts ranks write each other's slots; they do not read them.
Status check_reads(const Plan& plan, const std::vector<int>& host_of) {
  if (host_of.empty()) return {};
  for (int rank = 0; rank < plan.ranks; ++rank) {
    for (const Lane& lane : plan.programs[static_cast<size_t>(rank)].lanes) {
      for (const Step& step : lane.steps) {
        for (const Ref& src : step.srcs) {
          if (host_of[static_cast<size_t>(src.rank)] == host_of[static_cast<size_t>(rank)])
            continue;
          return bad(plan, "has rank {} read {} chunk {} of rank {}, which is on another host",
                     rank, to_string(src.buffer), src.chunk, src.rank);
        }
      }
    }
  }
  return {};
}

}  // namespace

uint64_t fingerprint(const Plan& plan) {
  return std::max<uint64_t>(Hash().text(save_json(plan)).value(), 1);
}

Result<Adopted> adopt(Plan plan, FusedDescription wish, int ranks, int rank,
                      const std::vector<int>& host_of) {
  const Result<int> chunks = chunks_of(plan, wish, ranks);
  if (!chunks.ok()) return chunks.status();
  wish.chunks = chunks.value();
  wish.mapping = Mapping::kDirect;
  wish.remote = wish.any_order = false;
  wish.remote_chunks = 0;
  wish.plan = fingerprint(plan);
  Result<FusedDescription> description = complete(wish, ranks, rank);
  if (!description.ok()) return description.status();
  if (description->chunks != wish.chunks) {
    return bad(plan, "has {} chunks per rank; rows divide into no more than {}", wish.chunks,
               description->chunks);
  }
  const std::string name = plan.name;
  Result<VerifiedPlan> verified = verify(std::move(plan));
  if (!verified.ok()) return faulty(name, verified.status());
  const FusedPlanShape shape =
      shape_of(description.value(), Geometry(description.value(), ranks, rank), ranks);
  if (Status s = check_gates(verified.value(), counters_of(shape).landed); !s.ok())
    return faulty(name, s);
  if (Status s = check_arrivals(verified->plan(), shape); !s.ok()) return s;
  if (Status s = check_reads(verified->plan(), host_of); !s.ok()) return s;
  return Adopted{std::move(description).value(), std::move(verified).value()};
}

}  // namespace tessera
