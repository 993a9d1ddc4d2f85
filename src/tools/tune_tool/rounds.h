// What tessera-tune measures, and how its time is shared out.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/tune_tool/measure.h"

namespace tessera::tune {

struct Selection {
  std::vector<int> ranks{2, 3, 4, 8};
  std::vector<std::string> collectives;  // empty: all
  size_t largest = size_t{32} << 20;     // bytes of a message
};

struct Round {
  int ranks;
  Agenda agenda;
};

// The longest calls first: something, or an error.
Result<std::vector<Round>> rounds(const Selection& selection, const Config& config);

// Length of a batch where no time is given: what a machine of some cores does in about a minute.
double unhurried_batch(const std::vector<Round>& all);

// Gives round i its share of the time that is left. Calls take longer with more ranks, about as the
// bytes that move. What took longer than its share is made up for by those that follow.
void share_out(std::vector<Round>& all, size_t i, std::chrono::steady_clock::time_point end);

}  // namespace tessera::tune
