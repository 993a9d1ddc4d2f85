// What the user forces: TESSERA_ALGO, NCCL_ALGO and NCCL_PROTO.
//
//   NCCL_ALGO   "ring", "allreduce:tree;allgather:ring,pat", "^ring"
//   NCCL_PROTO  "LL", "Simple", "^LL128", "allreduce:LL;broadcast:Simple"
//
// Entries are separated by ';'; each is a comma list, case-insensitive, '^' in front excludes, and
// only the first may go without a function. The names are NCCL's; they stand for these here:
//
//   tree  double-tree, tree, binomial      LL, LL128  low-latency
//   ring  ring                             Simple     staged, direct, single-copy
//   pat   pat
//
// collnetdirect, collnetchain, nvls and nvlstree need hardware that host ranks do not have. Without
// a function a wish holds for the collectives that can fulfil it; a wish for a function that cannot,
// or one that nothing can fulfil, is an error that says why.
// Thread safety: plain data and pure functions. Source: NCCL's environment variables.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "tuner/candidate.h"

namespace tessera {

// Which of NCCL's algorithms one of ours stands for: 0 tree, 1 ring, 2 pat; -1: NCCL has no name
// for it.
int nccl_family(std::string_view algorithm);

class Wishes {
 public:
  static Result<Wishes> parse(const Config& config);

  bool allows(const Candidate& candidate) const;
  // The wish was for this very collective: it must be fulfilled.
  bool strict(Collective collective) const { return strict_[static_cast<size_t>(collective)]; }
  bool any() const { return any_; }
  std::string text() const { return text_; }  // the settings as given, for messages

 private:
  struct Filter {
    bool algorithms[3] = {true, true, true};  // tree, ring, pat
    bool others = true;                       // algorithms that NCCL has no name for
    bool low_latency = true, bulk = true;
  };
  Status parse_algorithms(const std::string& text);
  Status parse_protocols(const std::string& text);
  template <class Apply>
  Status parse_entries(const char* variable, const std::string& text, const Apply& apply);

  std::array<Filter, kCollectives> filters_;
  std::array<bool, kCollectives> strict_{};
  std::string tessera_algorithm_;
  bool any_ = false;
  std::string text_;
};

}  // namespace tessera
