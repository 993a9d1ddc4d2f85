// Tallies: the steps that accumulate in a slot share a counter, and nobody else touches either.
#include <algorithm>
#include <map>
#include <utility>

#include "plan/verifier_internal.h"

namespace tessera::verifier {
namespace {

using Key = std::pair<int, int>;  // rank and counter, or rank and slot

// What the accumulations of a tally have in common.
struct Sum {
  int slot = 0, chunk = 0, chunks = 1;
  bool operator==(const Sum&) const = default;
};

class TallyCheck {
 public:
  explicit TallyCheck(const PlanIndex& index) : index_(index) {}

  Status run() {
    for (const auto check : {&TallyCheck::collect, &TallyCheck::others}) {
      for (uint32_t lane = 0; lane < index_.lanes(); ++lane) {
        for (uint32_t s = 0; s < index_.steps(lane).size(); ++s) {
          if (Status status = (this->*check)(lane, s); !status.ok()) return status;
        }
      }
      if (sums_.empty()) break;
    }
    return {};
  }

 private:
  template <class... Args>
  Status fault(uint32_t lane, uint32_t step, fmt::format_string<Args...> format,
               Args&&... args) const {
    return Status(Code::kPlanCounter, index_.describe(lane, step) + " " +
                                          fmt::format(format, std::forward<Args>(args)...));
  }

  Status collect(uint32_t lane, uint32_t s) {
    const Step& step = index_.steps(lane)[s];
    if (step.op != Op::kAccumulate) return {};
    const int rank = index_.id(lane).rank;
    const Ref& dst = step.dsts[0];
    if (dst.rank != rank || dst.buffer != Buffer::kScratch)
      return fault(lane, s, "adds to {}; it can to slots of its own rank only",
                   describe(dst, 0, rank));
    if (step.signals.empty() || step.signals[0].rank != rank || step.signals[0].increment != 1)
      return fault(lane, s,
                   "has no tally: its first signal is to raise a counter of its rank by 1");
    const int tally = step.signals[0].counter;
    const Sum sum{dst.chunk, step.chunk, step.chunks};
    const auto [known, fresh] = sums_.try_emplace({rank, tally}, sum);
    if (!(known->second == sum))
      return fault(lane, s, "adds to another run of slots than others of the tally {}", tally);
    for (int j = 0; fresh && j < step.chunks; ++j) {
      if (!slots_.try_emplace({rank, dst.chunk + j}, tally).second)
        return fault(lane, s, "adds to {}, which has another tally", describe(dst, j, rank));
    }
    return {};
  }

  // Nobody else writes the slots or raises the tallies.
  Status others(uint32_t lane, uint32_t s) {
    const Step& step = index_.steps(lane)[s];
    const int rank = index_.id(lane).rank;
    const bool adds = step.op == Op::kAccumulate;
    for (size_t i = adds ? 1 : 0; i < step.signals.size(); ++i) {
      const Signal& signal = step.signals[i];
      if (sums_.count({signal.rank, signal.counter}) != 0)
        return fault(lane, s, "raises counter {} of rank {}, which is a tally", signal.counter,
                     signal.rank);
    }
    for (size_t d = 0; !adds && d < step.dsts.size(); ++d) {
      const Ref& dst = step.dsts[d];
      for (int j = 0; dst.buffer == Buffer::kScratch && j < step.chunks; ++j) {
        if (slots_.count({dst.rank, dst.chunk + j}) != 0)
          return fault(lane, s, "writes {}, which is for accumulations", describe(dst, j, rank));
      }
    }
    return {};
  }

  const PlanIndex& index_;
  std::map<Key, Sum> sums_;   // by tally
  std::map<Key, int> slots_;  // the tally of a slot
};

}  // namespace

Status check_tallies(const PlanIndex& index) { return TallyCheck(index).run(); }

}  // namespace tessera::verifier
