#include "tools/tune_tool/passes.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "tools/tune_tool/entrants.h"

namespace tessera::tune {
namespace {

// After each of the first passes; a Bar's own values after the others. At first it is low: the
// best may have been lucky.
constexpr Bar kBars[] = {{5.0, 8}, {2.0, 5}, {1.4, 4}, {1.2, 3}};
constexpr double kLengths[] = {4000, 2800, 2000, 1400, 1000};  // us, of batches

// New memory needs some calls to be mapped and cached: one in so many, and a few.
constexpr int kOneIn = 12, kUntimed = 3;

double shortest(const Runner& runner) {
  double least = std::numeric_limits<double>::max();
  for (const double time : runner.times)
    if (time > 0) least = std::min(least, time);
  return least;
}

int calls_of(const Runner& runner, const Field& field, double batch_us) {
  const double time = shortest(runner);
  return std::max(calls_for(time, batch_us), field.least_calls(runner.who, time));
}

int untimed(const Runner& runner, int calls) {
  return shortest(runner) > kLongCall ? 1 : std::max(kUntimed, calls / kOneIn);
}

size_t passes_of(const Cell& cell) {
  size_t passes = 0;
  for (const Runner& runner : cell.runners) passes = std::max(passes, tune::passes_of(runner));
  return passes;
}

bool ran_in(const Cell& cell, size_t pass) {
  return std::any_of(cell.runners.begin(), cell.runners.end(),
                     [&](const Runner& runner) { return runner.ran(pass); });
}

// The entrants that fields have in common, once.
class Roster {
 public:
  explicit Roster(const Config& config) : config_(config) {}

  uint32_t index(const Field& field, size_t who) {
    Entrant entrant = entrant_of(field, who, config_);
    const Config& config = entrant.config;
    const auto [place, added] =
        known_.try_emplace({config.algorithm, config.low_latency_max, config.slice_bytes,
                            config.share_memory, who == field.automatic()},
                           static_cast<uint32_t>(entrants_.size()));
    if (added) entrants_.push_back(std::move(entrant));
    return place->second;
  }
  const std::vector<Entrant>& entrants() const { return entrants_; }

 private:
  const Config& config_;
  std::map<std::tuple<std::string, int64_t, int64_t, bool, bool>, uint32_t> known_;
  std::vector<Entrant> entrants_;
};

}  // namespace

// By cell, who leads it.
std::vector<std::vector<size_t>> Passes::all_leaders() const {
  std::vector<std::vector<size_t>> result;
  for (const Cell& cell : cells_) result.push_back(leaders(cell.runners, field_of(cell)));
  return result;
}

void Passes::narrow_after(size_t number) {
  const std::vector<std::vector<size_t>> leading = all_leaders();
  for (size_t i = 0; i < cells_.size(); ++i) {
    Cell& cell = cells_[i];
    if (!ran_in(cell, number)) continue;
    const size_t passes = passes_of(cell);
    const bool early = passes <= std::size(kBars);
    // Speed goes with size: who leads at the next size was disturbed here if it looks slow.
    std::vector<size_t> neighbours;
    for (const size_t next : {i - 1, i + 1}) {  // before the first there is none
      if (!early || next >= cells_.size() || cells_[next].field != cell.field) continue;
      neighbours.insert(neighbours.end(), leading[next].begin(), leading[next].end());
    }
    narrow(cell.runners, field_of(cell), cell.size, early ? kBars[passes - 1] : Bar{}, neighbours);
  }
}

void Passes::begin_judging() {
  for (Cell& cell : cells_)
    if (field_of(cell).judged()) only_who_is_judged(cell.runners, field_of(cell), cell.size);
}

double Passes::cost(const Cell& cell, double batch_us) const {
  double sum = 0;
  for (const Runner& runner : cell.runners) {
    const int calls = calls_of(runner, field_of(cell), batch_us);
    if (runner.in) sum += (calls + untimed(runner, calls)) * shortest(runner);
  }
  return sum;
}

double Passes::sum(const std::vector<Cell*>& cells, double batch_us) const {
  double total = 0;
  for (const Cell* cell : cells) total += cost(*cell, batch_us);
  return total;
}

// The cells that there is time for, in their order, and the length of their batches. The most
// expensive ones wait, until others have run so much more often.
std::pair<std::vector<Cell*>, double> Passes::affordable(double budget_us, bool sure) {
  std::vector<Cell*> all;
  for (Cell& cell : cells_)
    if (cost(cell, kLengths[0]) > 0) all.push_back(&cell);
  for (const double length : kLengths)
    if (sum(all, length) <= budget_us) return {all, length};
  const double least = *std::rbegin(kLengths);
  const auto turn = [&](const Cell& cell) {  // the less, the earlier
    return cost(cell, least) * static_cast<double>(passes_of(cell));
  };
  std::vector<Cell*> by_cost = all;
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [&](const Cell* a, const Cell* b) { return turn(*a) < turn(*b); });
  std::vector<Cell*> running;
  double total = 0;
  for (Cell* cell : by_cost) {
    const double more = cost(*cell, least);
    const bool small = field_of(*cell).block_bytes[cell->size] <= kAlwaysTimed;
    if (total + more > budget_us && !(sure && small)) continue;
    running.push_back(cell);
    total += more;
  }
  std::sort(running.begin(), running.end());
  return {running, least};
}

// Cells of as many ranks each, in a team that has just those who run.
Status Passes::run_cells(const std::vector<Cell*>& cells, size_t number, double batch_us) {
  struct Turn {
    Runner* runner;
    Batch batch;
  };
  Roster roster(config_);
  std::vector<Turn> turns;
  for (auto cell = cells.rbegin(); cell != cells.rend(); ++cell) {
    const Field& field = field_of(**cell);
    for (Runner& runner : (*cell)->runners) {
      if (!runner.in) continue;
      const int calls = calls_of(runner, field, batch_us);
      turns.push_back(
          {&runner,
           {field.collective, roster.index(field, runner.who), field.block_bytes[(*cell)->size],
            untimed(runner, calls), calls, static_cast<int32_t>(number)}});
    }
  }
  Result<std::unique_ptr<Stopwatch>> team = start_(field_of(*cells[0]).ranks, roster.entrants());
  if (!team.ok()) return team.status();
  for (const Turn& turn : turns) {
    const Result<double> time = team.value()->time(turn.batch);
    if (!time.ok()) return time.status();
    turn.runner->times.resize(number + 1);
    turn.runner->times[number] = time.value();
  }
  return {};
}

Status Passes::run(size_t number, double budget_us, bool sure) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto [running, batch_us] = affordable(budget_us - overhead_us_, sure);
  const double calls_us = sum(running, batch_us);
  for (auto first = running.begin(); first != running.end();) {
    const int ranks = field_of(**first).ranks;
    const auto last = std::find_if(
        first, running.end(), [&](const Cell* cell) { return field_of(*cell).ranks != ranks; });
    if (Status s = run_cells({first, last}, number, batch_us); !s.ok()) return s;
    first = last;
  }
  const std::chrono::duration<double, std::micro> took = Clock::now() - start;
  if (!running.empty()) overhead_us_ = std::max(took.count() - calls_us, 0.0);
  return {};
}

}  // namespace tessera::tune
