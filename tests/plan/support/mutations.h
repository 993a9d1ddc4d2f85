// Every single change of a plan, of the kinds that people and generators of plans get wrong.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "plan/shape.h"

namespace tessera::testing {

struct Mutation {
  std::string name;
  std::function<void(Plan&)> apply;
};

class Mutations {
 public:
  explicit Mutations(const Plan& plan) : plan_(plan) {}

  std::vector<Mutation> all() {
    for (int depth = 1; depth <= plan_.scratch_depth + 1; ++depth) {
      if (depth != plan_.scratch_depth) {
        add("depth", [depth](Plan& plan) { plan.scratch_depth = depth; });
      }
    }
    for (int root = -1; root <= plan_.ranks; ++root) {
      if (root != plan_.root) add("root", [root](Plan& plan) { plan.root = root; });
    }
    add("more chunks", [](Plan& plan) { ++plan.chunks_per_block; });
    add("fewer chunks", [](Plan& plan) { --plan.chunks_per_block; });
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      add("less scratch",
          [rank](Plan& plan) { --plan.programs[static_cast<size_t>(rank)].scratch_chunks; });
      for (size_t lane = 0; lane < program(rank).lanes.size(); ++lane) {
        for (size_t s = 0; s < program(rank).lanes[lane].steps.size(); ++s) step({rank, lane, s});
      }
    }
    return std::move(found_);
  }

 private:
  struct At {
    int rank;
    size_t lane, step;
    std::vector<Step>& steps(Plan& plan) const {
      return plan.programs[static_cast<size_t>(rank)].lanes[lane].steps;
    }
    Step& in(Plan& plan) const { return steps(plan)[step]; }
  };

  const RankProgram& program(int rank) const { return plan_.programs[static_cast<size_t>(rank)]; }

  void add(std::string name, std::function<void(Plan&)> apply) {
    found_.push_back({std::move(name), std::move(apply)});
  }

  void step_change(const At& at, const std::string& what, std::function<void(Step&)> change) {
    add("rank " + std::to_string(at.rank) + " lane " + std::to_string(at.lane) + " step " +
            std::to_string(at.step) + ": " + what,
        [at, change = std::move(change)](Plan& plan) {
          if (at.rank < plan.ranks && at.step < at.steps(plan).size()) change(at.in(plan));
        });
  }

  void steps_change(const At& at, const std::string& what,
                    std::function<void(std::vector<Step>&, size_t)> change) {
    add("rank " + std::to_string(at.rank) + " lane " + std::to_string(at.lane) + " step " +
            std::to_string(at.step) + ": " + what,
        [at, change = std::move(change)](Plan& plan) {
          if (at.step < at.steps(plan).size()) change(at.steps(plan), at.step);
        });
  }

  void step(const At& at) {
    const Step& step = program(at.rank).lanes[at.lane].steps[at.step];
    steps_change(at, "dropped", [](std::vector<Step>& steps, size_t s) {
      steps.erase(steps.begin() + static_cast<ptrdiff_t>(s));
    });
    steps_change(at, "repeated", [](std::vector<Step>& steps, size_t s) {
      steps.insert(steps.begin() + static_cast<ptrdiff_t>(s), Step(steps[s]));
    });
    steps_change(at, "swapped with the next", [](std::vector<Step>& steps, size_t s) {
      if (s + 1 < steps.size()) std::swap(steps[s], steps[s + 1]);
    });
    steps_change(at, "moved to the end", [](std::vector<Step>& steps, size_t s) {
      std::rotate(steps.begin() + static_cast<ptrdiff_t>(s),
                  steps.begin() + static_cast<ptrdiff_t>(s) + 1, steps.end());
    });
    for (const Op op : {Op::kCopy, Op::kReduce, Op::kSync, Op::kAccumulate}) {
      if (op != step.op) step_change(at, "other op", [op](Step& s) { s.op = op; });
    }
    step_change(at, "next chunk", [](Step& s) { ++s.chunk; });
    step_change(at, "longer run", [](Step& s) { ++s.chunks; });
    step_change(at, "shorter run", [](Step& s) { --s.chunks; });
    step_change(at, "all sources in reverse",
                [](Step& s) { std::reverse(s.srcs.begin(), s.srcs.end()); });
    refs(at, step.dsts, &Step::dsts, "destination ");
    refs(at, step.srcs, &Step::srcs, "source ");
    for (size_t i = 0; i < step.waits.size(); ++i) wait(at, step.waits[i], i);
    for (size_t i = 0; i < step.signals.size(); ++i) signal(at, step.signals[i], i);
    new_waits(at, step);
  }

  void refs(const At& at, const std::vector<Ref>& refs, std::vector<Ref> Step::*list,
            const std::string& what) {
    for (size_t i = 0; i < refs.size(); ++i) {
      const std::string name = what + std::to_string(i);
      const auto change = [&](const std::string& how, std::function<void(Ref&)> edit) {
        step_change(at, name + how, [list, i, edit = std::move(edit)](Step& s) {
          if (i < (s.*list).size()) edit((s.*list)[i]);
        });
      };
      step_change(at, name + " dropped", [list, i](Step& s) {
        if (i < (s.*list).size()) (s.*list).erase((s.*list).begin() + static_cast<ptrdiff_t>(i));
      });
      step_change(at, name + " repeated", [list, i](Step& s) {
        if (i < (s.*list).size()) (s.*list).push_back(Ref((s.*list)[i]));
      });
      for (int rank = -1; rank <= plan_.ranks; ++rank) {
        if (rank != refs[i].rank) change(" at other rank", [rank](Ref& r) { r.rank = rank; });
      }
      for (const Buffer buffer : {Buffer::kInput, Buffer::kOutput, Buffer::kScratch}) {
        if (buffer == refs[i].buffer) continue;
        change(" in other buffer", [buffer](Ref& r) { r.buffer = buffer; });
        for (int chunk = 0; chunk < 2 * plan_.ranks; ++chunk) {
          change(" in other buffer and chunk", [buffer, chunk](Ref& r) {
            r.buffer = buffer;
            r.chunk = chunk;
          });
        }
      }
      for (int chunk = -1; chunk <= 2 * plan_.ranks; ++chunk) {
        if (chunk != refs[i].chunk) change(" at other chunk", [chunk](Ref& r) { r.chunk = chunk; });
      }
    }
  }

  void wait(const At& at, const Wait& wait, size_t i) {
    const auto change = [&](const std::string& how, std::function<void(Wait&)> edit) {
      step_change(at, "wait " + std::to_string(i) + how, [i, edit = std::move(edit)](Step& s) {
        if (i < s.waits.size()) edit(s.waits[i]);
      });
    };
    step_change(at, "wait dropped", [i](Step& s) {
      if (i < s.waits.size()) s.waits.erase(s.waits.begin() + static_cast<ptrdiff_t>(i));
    });
    const int counters = static_cast<int>(program(at.rank).counters.size());
    for (int counter = -1; counter <= counters; ++counter) {
      if (counter != wait.counter)
        change(" redirected", [counter](Wait& w) { w.counter = counter; });
    }
    change(" for one more", [](Wait& w) { ++w.increment; });
    change(" for one less", [](Wait& w) { --w.increment; });
    for (uint32_t lag = 0; lag <= static_cast<uint32_t>(plan_.scratch_depth) + 1; ++lag) {
      if (lag != wait.lag)
        change(" with lag " + std::to_string(lag), [lag](Wait& w) { w.lag = lag; });
    }
    step_change(at, "wait repeated", [i](Step& s) {
      if (i < s.waits.size()) s.waits.push_back(Wait(s.waits[i]));
    });
  }

  void signal(const At& at, const Signal& signal, size_t i) {
    const auto change = [&](const std::string& how, std::function<void(Signal&)> edit) {
      step_change(at, "signal " + std::to_string(i) + how, [i, edit = std::move(edit)](Step& s) {
        if (i < s.signals.size()) edit(s.signals[i]);
      });
    };
    step_change(at, "signal dropped", [i](Step& s) {
      if (i < s.signals.size()) s.signals.erase(s.signals.begin() + static_cast<ptrdiff_t>(i));
    });
    step_change(at, "signal repeated", [i](Step& s) {
      if (i < s.signals.size()) s.signals.push_back(Signal(s.signals[i]));
    });
    for (int rank = -1; rank <= plan_.ranks; ++rank) {
      if (rank != signal.rank) change(" to other rank", [rank](Signal& s) { s.rank = rank; });
    }
    const int counters = static_cast<int>(program(signal.rank).counters.size());
    for (int counter = -1; counter <= counters; ++counter) {
      if (counter != signal.counter) {
        change(" to other counter", [counter](Signal& s) { s.counter = counter; });
      }
    }
    change(" of one more", [](Signal& s) { ++s.increment; });
    change(" of one less", [](Signal& s) { --s.increment; });
  }

  // A wait or a signal too many.
  void new_waits(const At& at, const Step& /*step*/) {
    const int counters = static_cast<int>(program(at.rank).counters.size());
    for (int counter = 0; counter < counters; ++counter) {
      step_change(at, "new wait", [counter](Step& s) { s.waits.push_back({counter, 1, 0}); });
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        step_change(at, "new signal", [rank, counter](Step& s) {
          s.signals.push_back({rank, counter, 1});
        });
      }
    }
  }

  const Plan& plan_;
  std::vector<Mutation> found_;
};

}  // namespace tessera::testing
