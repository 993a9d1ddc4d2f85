// Who competes for a collective on so many ranks, and with what sizes.
// Thread safety: plain data and pure functions.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "tuner/candidate.h"

namespace tessera::tune {

struct Selection {
  std::vector<int> ranks{2, 3, 4, 8};
  std::vector<std::string> collectives;  // empty: all
  size_t largest = size_t{32} << 20;     // bytes of a message
};

// Bytes of a block: small enough for any --seconds, and as far as low-latency candidates reach.
inline constexpr size_t kAlwaysTimed = 16 << 10;

// Without what forces or advises a choice: contestants run as what they are.
Config neutral(const Config& config);

// Bytes of the blocks that a candidate is timed with.
struct Span {
  size_t least = 0, most = std::numeric_limits<size_t>::max();
  bool contains(size_t block_bytes) const { return least <= block_bytes && block_bytes <= most; }
};

struct Contestant {
  Candidate candidate;
  Span span;
  std::optional<size_t> rule;  // who has the same algorithm in the rule's slices; none: itself
};

struct Field {
  int ranks = 2;
  Collective collective = Collective::kAllReduce;
  size_t low_latency_cap = 0;
  std::vector<size_t> block_bytes;      // ascending
  std::vector<Contestant> contestants;  // other slices follow the rule's of the same algorithm
  // What the tuner chooses, by size: an index of `contestants`. Empty: nobody is judged.
  std::vector<size_t> chosen;

  bool judged() const { return !chosen.empty(); }
  // Stands for a communicator that chooses by itself, where somebody is judged.
  size_t automatic() const { return contestants.size(); }
  bool is_chosen(size_t who, size_t size) const { return judged() && chosen[size] == who; }
  // How many calls a batch has at least, unless they take too long. Ranks that share cores need some
  // to fall into step. Where data flows one way the sender may run ahead by up to 32 calls, which it
  // does after a hundred or two; before, each call costs a switch between the ranks.
  int least_calls(size_t who, double call_us) const;
};

// Fewest ranks first: something, or an error.
Result<std::vector<Field>> fields(const Selection& selection, const Config& config);

}  // namespace tessera::tune
