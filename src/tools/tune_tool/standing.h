// Where those who compete for one size stand.
//
// A machine changes its speed in the course of seconds: the cores of a virtual machine may be
// neighbours in one moment and far apart in the next. So those who compete run in turns, pass after
// pass, with seconds between passes:
//
//          pass 0    1    2    3        f: by how much the pass was slower than the usual one, told
//      a      4.0  8.2  4.1  4.0           by those who ran in all passes (a and b)
//      b      4.4  8.8  4.3  4.5        a time counts as what it would have been in a usual pass
//      c      6.0   -    -    -
//      f      1.0  2.0  1.0  1.0
//
// Who left was slower than the best of all that could carry the same calls, and counts as that at
// least: f is not quite the same for all.
// Thread safety: pure functions and plain data.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/tune_tool/field.h"

namespace tessera::tune {

// Kinds of buffers within a host: who may be good for some is no match for others.
inline constexpr Access kAccesses[] = {Access::kNone, Access::kSingleCopy, Access::kMapped};

struct Runner {
  size_t who = 0;             // index of the field's contestants, or its automatic()
  bool in = true;             // still competes
  std::vector<double> times;  // of a call, by pass, in microseconds; 0: did not run
  bool ran(size_t pass) const { return pass < times.size() && times[pass] > 0; }
};

// In how many it ran.
size_t passes_of(const Runner& runner);

struct Cell {
  size_t field = 0, size = 0;
  std::vector<Runner> runners;  // none: there was no time for it
};

// Of each runner, what a call takes as a rule; 0: never ran.
std::vector<double> settled(const std::vector<Runner>& runners, const Field& field);

// Who is good enough to stay: near the best of those that could carry the same calls, and one of
// the first few of them.
struct Bar {
  double near = 1.15;
  size_t most = 3;
};

// Who is the fastest of those who could carry some kind of calls: of the field's contestants.
std::vector<size_t> leaders(const std::vector<Runner>& runners, const Field& field);

// Takes out who is not. `also` stay, and the chosen and the automatic one.
void narrow(std::vector<Runner>& runners, const Field& field, size_t size, const Bar& bar,
            const std::vector<size_t>& also = {});

// Only those stay: the fastest of the candidates that buffers which peers have mapped allow, the
// chosen one, and the automatic one.
void only_who_is_judged(std::vector<Runner>& runners, const Field& field, size_t size);

// How a size was judged, by passes in which all three took part: the least of many times is less
// than that candidate takes as a rule, so the passes that found the winner do not count. Ratios are
// the middle of each pass's, for machines change their speed between passes.
struct Verdict {
  size_t best = 0;                                      // index of the field's contestants
  double best_us = 0, chosen_us = 0, automatic_us = 0;  // 0: there were fewer than kLeastPasses
  double choice = 0, automatic = 0;  // the chosen candidate and the communicator over the best
};
inline constexpr size_t kLeastPasses = 3;
Verdict verdict(const std::vector<Runner>& runners, const Field& field, size_t size, size_t from);

}  // namespace tessera::tune
