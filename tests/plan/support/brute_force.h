// An executor of plans that shares nothing with the verifier: it runs a plan on real numbers under
// a hostile scheduler and looks at the results. It proves nothing, but what it finds is wrong
// beyond doubt.
//
// Every wait, every read of a source, every write of a destination and every signal is a separate
// action, and any lane may stall between any two of them for as long as others can go on. Ranks
// enter calls of one or more passes at any time; a rank's user buffers exist only while it is
// inside of the call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/shape.h"

namespace tessera::testing {

class BruteForce {
 public:
  BruteForce(const Plan& plan, uint64_t seed) : plan_(plan), random_(seed) {
    choose_calls();
    lay_out();
    for (int rank = 0; rank < plan.ranks; ++rank) {
      actors_.push_back({rank, -1});
      for (size_t lane = 0; lane < program(rank).lanes.size(); ++lane) {
        actors_.push_back({rank, static_cast<int>(lane)});
      }
    }
    for (size_t i = 0; i < actors_.size(); ++i) priority_.push_back(static_cast<int>(i));
    std::shuffle(priority_.begin(), priority_.end(), random_);
    stickiness_ = std::vector<int>{2, 5, 20, 100}[random_() % 4];
  }

  // What went wrong, or nothing.
  std::optional<std::string> run() {
    while (fault_.empty()) {
      const int actor = pick();
      if (actor < 0) {
        if (!all_left()) fault_ = "hang";
        break;
      }
      act(actors_[static_cast<size_t>(actor)]);
    }
    if (fault_.empty()) return std::nullopt;
    return fault_;
  }

 private:
  using Data = std::vector<uint64_t>;

  struct Actor {
    int rank = 0;
    int lane = -1;  // -1: enters and leaves calls
    int pass = 0;
    size_t step = 0;
    size_t phase = 0;  // 0: waits; then each source, each destination, each signal
    std::vector<Data> result = {};
  };

  struct RankState {
    int entered = 0;  // passes of the calls entered so far
    int left = 0;     // passes of the calls left so far
    size_t call = 0;
    bool in_place = false;
    std::vector<std::vector<Data>> input, output, scratch;  // [pass or copy][chunk]
    std::vector<std::vector<Data>> original;
    std::vector<uint64_t> counters, per_pass;
  };

  const RankProgram& program(int rank) const { return plan_.programs[static_cast<size_t>(rank)]; }
  RankState& state(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  void choose_calls() {
    const int passes = plan_.scratch_depth + 4;
    const uint64_t kind = random_() % 3;
    for (int p = 1; p <= passes; ++p) {
      const bool ends = kind == 0 || (kind == 1 && random_() % 2 == 0) || p == passes;
      if (ends) call_ends_.push_back(p);
    }
  }

  // Chunks have different lengths, so that moving the wrong kind of chunk shows.
  size_t length(int chunk) const { return static_cast<size_t>(chunk % plan_.chunks_per_block) + 1; }

  void lay_out() {
    ranks_.resize(static_cast<size_t>(plan_.ranks));
    const int passes = call_ends_.back();
    const auto blank = [this](int chunks) {
      std::vector<Data> data;
      for (int c = 0; c < chunks; ++c) {
        data.emplace_back(static_cast<size_t>(plan_.chunks_per_block), random_());
      }
      return data;
    };
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      RankState& me = state(rank);
      const int in = input_blocks(plan_.collective, plan_.ranks, plan_.root, rank);
      const int out = output_blocks(plan_.collective, plan_.ranks, plan_.root, rank);
      me.in_place =
          has_in_place(plan_.collective, plan_.ranks, plan_.root, rank) && random_() % 2 == 0;
      for (int pass = 0; pass < passes; ++pass) {
        me.input.push_back(blank(in * plan_.chunks_per_block));
        me.output.push_back(blank(out * plan_.chunks_per_block));
        me.original.push_back(me.input.back());
      }
      if (me.in_place) alias(rank, in, out);
      for (int d = 0; d < plan_.scratch_depth; ++d) {
        me.scratch.push_back(blank(program(rank).scratch_chunks));
      }
      me.counters.resize(program(rank).counters.size());
      for (const CounterInfo& counter : program(rank).counters)
        me.per_pass.push_back(counter.arrivals);
    }
    for (const RankProgram& program : plan_.programs) {
      for (const Lane& lane : program.lanes) {
        for (const Step& step : lane.steps) {
          for (const Signal& s : step.signals) {
            state(s.rank).per_pass[static_cast<size_t>(s.counter)] += s.increment;
          }
        }
      }
    }
  }

  // In place the longer buffer holds both: all accesses go to it, see at().
  void alias(int rank, int in, int out) {
    RankState& me = state(rank);
    const int shift = in_place_shift(plan_.collective, plan_.ranks, plan_.root, rank);
    if (in > out) return;
    for (size_t pass = 0; pass < me.input.size(); ++pass) {
      std::copy(me.input[pass].begin(), me.input[pass].end(),
                me.output[pass].begin() + shift * plan_.chunks_per_block);
    }
  }

  Data* at(int pass, const Ref& ref, int j) {
    RankState& owner = state(ref.rank);
    auto chunk = static_cast<size_t>(ref.chunk + j);
    if (ref.buffer == Buffer::kScratch) {
      return &owner.scratch[static_cast<size_t>(pass % plan_.scratch_depth)][chunk];
    }
    if (pass >= owner.entered || pass < owner.left) {
      fault_ = "touches user memory of rank " + std::to_string(ref.rank) + " outside of its call";
      return nullptr;
    }
    bool input = ref.buffer == Buffer::kInput;
    if (owner.in_place) {
      const int shift = in_place_shift(plan_.collective, plan_.ranks, plan_.root, ref.rank) *
                        plan_.chunks_per_block;
      const bool in_output = owner.input[0].size() <= owner.output[0].size();
      if (input && in_output) chunk += static_cast<size_t>(shift);
      if (!input && !in_output) chunk -= static_cast<size_t>(shift);
      input = !in_output;
    }
    return &(input ? owner.input : owner.output)[static_cast<size_t>(pass)][chunk];
  }

  bool all_left() {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [&](const RankState& r) { return r.left == call_ends_.back(); });
  }

  const Step* current(const Actor& actor) const {
    const auto& steps = program(actor.rank).lanes[static_cast<size_t>(actor.lane)].steps;
    return actor.step < steps.size() ? &steps[actor.step] : nullptr;
  }

  bool lanes_done(int rank) const {
    for (const Actor& actor : actors_) {
      if (actor.rank != rank || actor.lane < 0) continue;
      if (program(rank).lanes[static_cast<size_t>(actor.lane)].steps.empty()) continue;
      if (actor.pass < ranks_[static_cast<size_t>(rank)].entered) return false;
    }
    return true;
  }

  bool enabled(const Actor& actor) {
    RankState& me = state(actor.rank);
    if (actor.lane < 0) {
      return me.entered > me.left ? lanes_done(actor.rank) : me.entered < call_ends_.back();
    }
    if (actor.pass >= me.entered) return false;
    const Step* step = current(actor);
    if (step == nullptr) return false;
    if (actor.phase > 0) return true;
    return std::all_of(step->waits.begin(), step->waits.end(), [&](const Wait& wait) {
      const auto lag = static_cast<int>(wait.lag);
      const auto c = static_cast<size_t>(wait.counter);
      return actor.pass < lag ||
             me.counters[c] >=
                 me.per_pass[c] * static_cast<uint64_t>(actor.pass - lag) + wait.increment;
    });
  }

  // The enabled actor of highest priority; now and then somebody falls to the end of the queue.
  int pick() {
    for (size_t i = 0; i < priority_.size(); ++i) {
      const int actor = priority_[i];
      if (!enabled(actors_[static_cast<size_t>(actor)])) continue;
      if (random_() % static_cast<uint64_t>(stickiness_) == 0) {
        priority_.erase(priority_.begin() + static_cast<ptrdiff_t>(i));
        priority_.push_back(actor);
      }
      return actor;
    }
    return -1;
  }

  // All arrivals from outside come at once: the verifier promises nothing about their order.
  void enter(int rank, int entered) {
    RankState& me = state(rank);
    for (size_t c = 0; c < me.counters.size(); ++c) {
      const uint64_t arrivals = program(rank).counters[c].arrivals;
      me.counters[c] += arrivals * static_cast<uint64_t>(entered - me.entered);
    }
    me.entered = entered;
  }

  void act(Actor& actor) {
    RankState& me = state(actor.rank);
    if (actor.lane < 0) {
      if (me.entered > me.left) {
        check_outputs(actor.rank);
        me.left = me.entered;
      } else {
        enter(actor.rank, call_ends_[me.call++]);
      }
      return;
    }
    const Step& step = *current(actor);
    const size_t srcs = step.srcs.size();
    const size_t dsts = step.dsts.size();
    const size_t phase = actor.phase++;
    if (phase == 0) {
      actor.result.clear();
    } else if (step.op == Op::kAccumulate && phase == 1) {
      accumulate(actor, step);
    } else if (phase <= srcs) {
      read(actor, step, phase - 1);
    } else if (phase <= srcs + dsts) {
      write(actor, step, step.dsts[phase - 1 - srcs]);
    } else if (phase <= srcs + dsts + step.signals.size()) {
      const Signal& s = step.signals[phase - 1 - srcs - dsts];
      state(s.rank).counters[static_cast<size_t>(s.counter)] += s.increment;
    }
    if (actor.phase <= srcs + dsts + step.signals.size()) return;
    actor.phase = 0;
    ++actor.step;
    if (current(actor) == nullptr) {
      actor.step = 0;
      ++actor.pass;
    }
  }

  uint64_t before_reduction(int rank, uint64_t x) const {
    return reduces(plan_.collective) ? x * (2 * static_cast<uint64_t>(rank) + 3) : x;
  }
  static uint64_t after_reduction(uint64_t x) { return x * 5 + 7; }

  void read(Actor& actor, const Step& step, size_t source) {
    const Ref& ref = step.srcs[source];
    for (int j = 0; j < step.chunks; ++j) {
      const Data* data = at(actor.pass, ref, j);
      if (data == nullptr) return;
      Data value = *data;
      if (ref.buffer == Buffer::kInput) {
        for (uint64_t& x : value) x = before_reduction(ref.rank, x);
      }
      if (source == 0) {
        actor.result.push_back(value);
      } else {
        Data& sum = actor.result[static_cast<size_t>(j)];
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += value[i];
      }
    }
    if (source + 1 < step.srcs.size() || !step.completes) return;
    for (Data& data : actor.result) {
      for (uint64_t& x : data) x = after_reduction(x);
    }
  }

  // From reading the tally to raising it nothing else happens (plan.h).
  void accumulate(Actor& actor, const Step& step) {
    read(actor, step, 0);
    if (step.signals.empty() || step.dsts.empty() || !fault_.empty()) return;
    const Signal& s = step.signals[0];
    const auto tally = static_cast<size_t>(s.counter);
    RankState& owner = state(s.rank);
    if (owner.counters[tally] > owner.per_pass[tally] * static_cast<uint64_t>(actor.pass)) {
      for (int j = 0; j < step.chunks; ++j) {
        const Data* sum = at(actor.pass, step.dsts[0], j);
        if (sum == nullptr) return;
        Data& part = actor.result[static_cast<size_t>(j)];
        for (size_t i = 0; i < part.size(); ++i) part[i] += (*sum)[i];
      }
    }
    write(actor, step, step.dsts[0]);
    owner.counters[tally] += s.increment;
    actor.phase = step.srcs.size() + step.dsts.size() + 2;
  }

  void write(const Actor& actor, const Step& step, const Ref& ref) {
    for (int j = 0; j < step.chunks; ++j) {
      Data* data = at(actor.pass, ref, j);
      if (data == nullptr) return;
      const bool plain = step.srcs[0].buffer != Buffer::kInput || !reduces(plan_.collective);
      if (step.op == Op::kCopy && plain && data == at(actor.pass, step.srcs[0], j)) continue;
      std::copy_n(actor.result[static_cast<size_t>(j)].begin(), length(step.chunk + j),
                  data->begin());
    }
  }

  uint64_t expected(int rank, int pass, int chunk, size_t i) const {
    const int block = chunk / plan_.chunks_per_block;
    uint64_t sum = 0;
    for (int from = 0; from < plan_.ranks; ++from) {
      const int in =
          required_input_block(plan_.collective, plan_.ranks, plan_.root, rank, block, from);
      if (in < 0) continue;
      const auto& original = ranks_[static_cast<size_t>(from)].original[static_cast<size_t>(pass)];
      const int c = in * plan_.chunks_per_block + chunk % plan_.chunks_per_block;
      sum += before_reduction(from, original[static_cast<size_t>(c)][i]);
    }
    return reduces(plan_.collective) ? after_reduction(sum) : sum;
  }

  void check_outputs(int rank) {
    RankState& me = state(rank);
    for (int pass = me.left; pass < me.entered; ++pass) {
      for (int chunk = 0; chunk < static_cast<int>(me.output[0].size()); ++chunk) {
        const Data& data = *at(pass, {rank, Buffer::kOutput, chunk}, 0);
        for (size_t i = 0; i < length(chunk); ++i) {
          if (data[i] == expected(rank, pass, chunk, i)) continue;
          fault_ = "output chunk " + std::to_string(chunk) + " of rank " + std::to_string(rank) +
                   " is wrong in pass " + std::to_string(pass);
          return;
        }
      }
    }
    if (plan_.collective != Collective::kBarrier) return;
    for (const RankState& other : ranks_) {
      if (other.entered < me.entered) fault_ = "leaves the barrier before all have entered";
    }
  }

  const Plan& plan_;
  std::mt19937_64 random_;
  std::vector<int> call_ends_;
  std::vector<RankState> ranks_;
  std::vector<Actor> actors_;
  std::vector<int> priority_;
  int stickiness_ = 2;
  std::string fault_;
};

// The first fault under `runs` schedules, or nothing. Needs a plan of correct form whose steps have
// `completes` set.
inline std::optional<std::string> find_fault(const Plan& plan, int runs) {
  for (int run = 0; run < runs; ++run) {
    if (auto fault = BruteForce(plan, static_cast<uint64_t>(run) * 7919 + 1).run()) return fault;
  }
  return std::nullopt;
}

}  // namespace tessera::testing
