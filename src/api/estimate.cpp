#include "api/estimate.h"

#include <bit>
#include <map>

namespace tessera::api {
namespace {

constexpr double kRoundMicroseconds = 1.0;    // one exchange between two ranks
constexpr double kBytesPerMicrosecond = 4e3;  // 4 GB/s: a copy or reduction by one core

// Rounds and blocks that the busiest rank moves.
struct Effort {
  double rounds;
  double blocks;
};

Effort effort_of(Collective collective, int ranks) {
  const double others = ranks - 1;
  const double tree = std::bit_width(static_cast<unsigned>(ranks - 1));
  switch (collective) {
    case Collective::kAllReduce:
      return {2 * tree, ranks > 1 ? 2 * others / ranks : 1};
    case Collective::kReduce:
    case Collective::kBroadcast:
      return {tree, 1};
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return {tree, others};
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
      return {others, others};
    case Collective::kSendRecv:
      return {1, 1};
    case Collective::kBarrier:
      return {tree, 0};
  }
  return {1, 1};
}

}  // namespace

double estimate_microseconds(std::span<const Work> works) {
  // Communicators run at the same time, the works of one after the other.
  std::map<const Communicator*, double> by_comm;
  for (const Work& work : works) {
    const Effort effort = effort_of(work.call.collective, work.comm->size());
    const double bytes = static_cast<double>(work.call.count) * size_of(work.call.type);
    by_comm[work.comm] +=
        kRoundMicroseconds * (1 + effort.rounds) + effort.blocks * bytes / kBytesPerMicrosecond;
  }
  double longest = 0;
  for (const auto& [comm, time] : by_comm) longest = std::max(longest, time);
  return longest;
}

}  // namespace tessera::api
