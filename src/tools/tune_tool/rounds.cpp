#include "tools/tune_tool/rounds.h"

#include <algorithm>
#include <set>

#include "tools/common/layout.h"
#include "tools/common/names.h"

namespace tessera::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSmallest = 8;    // bytes of a message
constexpr double kUnhurried = 16;  // seconds of the contests' batches, if all are measured

constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kReduceScatter,
                               Collective::kAllGather, Collective::kAllToAll,
                               Collective::kBroadcast, Collective::kReduce,
                               Collective::kGather,    Collective::kScatter};

Result<std::vector<Collective>> chosen(const std::vector<std::string>& names) {
  std::vector<Collective> result;
  for (const Collective collective : kAll) {
    if (names.empty()) result.push_back(collective);
  }
  for (const std::string& name : names) {
    const Result<Collective> found = tools::collective_named(name, kAll);
    if (!found.ok()) return found.status();
    if (std::find(result.begin(), result.end(), found.value()) == result.end())
      result.push_back(found.value());
  }
  return result;
}

// Powers of 4 from 8 bytes, as the perf comparison has them; the same blocks once.
std::vector<size_t> blocks(Collective collective, int ranks, size_t largest) {
  std::vector<size_t> result;
  for (size_t total = kSmallest; total <= largest; total *= 4) {
    const size_t block = block_of(collective, ranks, total);
    if (block > 0 && (result.empty() || block > result.back())) result.push_back(block);
  }
  return result;
}

// All candidates, each staged one followed by the same in other slices, which are timed with blocks
// for which these make a difference, up to many slices: beyond, each more takes as long as the last.
void add_candidates(Agenda& agenda, const Site& site) {
  constexpr size_t kManySlices = 64;
  for (const Candidate& candidate : candidates(agenda.collective, site)) {
    agenda.candidates.push_back(candidate);
    agenda.spans.push_back({});
    for (const Candidate& other : other_slices(candidate, site, agenda.config)) {
      const size_t slice = one_pass_up_to(other, site, agenda.config);
      if (agenda.block_bytes.back() <= slice) continue;
      agenda.candidates.push_back(other);
      agenda.spans.push_back({slice + 1, kManySlices * slice});
    }
  }
}

// Most times that may be measured.
size_t cells(const Agenda& agenda) {
  size_t count = 0;
  for (const Span& span : agenda.spans) {
    count += static_cast<size_t>(
        std::count_if(agenda.block_bytes.begin(), agenda.block_bytes.end(),
                      [&](size_t block_bytes) { return span.contains(block_bytes); }));
  }
  return count;
}

}  // namespace

Result<std::vector<Round>> rounds(const Selection& selection, const Config& config) {
  std::vector<Round> all;
  const Result<std::vector<Collective>> collectives = chosen(selection.collectives);
  if (!collectives.ok()) return collectives.status();
  const int cores = tools::usable_cores();
  for (const int ranks : std::set<int>(selection.ranks.begin(), selection.ranks.end())) {
    for (const Collective collective : collectives.value()) {
      Agenda agenda;
      agenda.collective = collective;
      agenda.block_bytes = blocks(collective, ranks, selection.largest);
      agenda.config = config;
      if (agenda.block_bytes.empty()) continue;
      add_candidates(agenda, {ranks, ranks > cores, cores});
      all.push_back({ranks, std::move(agenda)});
    }
  }
  if (all.empty()) {
    return Status::error(Code::kInvalidArgument,
                         "--largest {}: nothing to measure; messages are {} bytes and more, shared "
                         "out among the ranks",
                         selection.largest, kSmallest);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Round& a, const Round& b) { return a.ranks > b.ranks; });
  return all;
}

double unhurried_batch(const std::vector<Round>& all) {
  size_t most = 0;
  for (const Round& round : all) most += cells(round.agenda);
  return kUnhurried * 1e6 / static_cast<double>(most) / all[0].agenda.rounds;
}

void share_out(std::vector<Round>& all, size_t i, Clock::time_point end) {
  const auto weight = [](const Round& round) {
    return static_cast<double>(cells(round.agenda)) * round.ranks;
  };
  double left = 0;
  for (size_t j = i; j < all.size(); ++j) left += weight(all[j]);
  const Clock::time_point now = Clock::now();
  const double share = weight(all[i]) / left;
  all[i].agenda.until = now + std::chrono::duration_cast<Clock::duration>(share * (end - now));
}

}  // namespace tessera::tune
