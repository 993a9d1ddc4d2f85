// The plans of a communicator, linked: built and verified once per process, linked once per rank.
//
// Regions are carved from the arenas in the order of first use. All ranks use the same plans in the
// same order (I7 checks it), so that all carve alike. What was lent and given back can be carved
// anew once all ranks have agreed to it.
// Thread safety: SharedPlans any thread; PlanStore one thread at a time. A store's linked plans
// stay where they are.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "comm/core.h"
#include "comm/scratch.h"
#include "exec/link.h"
#include "plan/verifier.h"
#include "tuner/candidate.h"

namespace tessera {

// Verified plans that the ranks of one process share.
class SharedPlans {
 public:
  // The verified plan of an algorithm for these parameters.
  Result<std::shared_ptr<const VerifiedPlan>> get(const Algorithm& algorithm,
                                                  const AlgorithmParams& params);

 private:
  using Key = std::tuple<const Algorithm*, int, int, int, int, std::vector<int>, std::vector<int>>;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const VerifiedPlan>> plans_;
};

struct LinkedPlan {
  Program program;
  std::vector<std::byte*> regions;  // per member
  std::vector<uint64_t> seen;       // see Run
  uint64_t next_pass = 0;
  uint64_t serial = 0;           // of those lent: the same on all ranks
  size_t offset = 0, bytes = 0;  // of the region in each arena
  size_t extra_offset = 0;       // in the region: what the borrower asked for besides

  std::byte* extra(int rank) const { return regions[static_cast<size_t>(rank)] + extra_offset; }
};

class PlanStore {
 public:
  explicit PlanStore(Core& core);

  // The linked plan of a collective over all ranks.
  Result<LinkedPlan*> get(const Choice& choice, int root);
  // Links a plan that is no algorithm's, for a borrower, with `extra` bytes behind it in every region,
  // at first zero. All ranks do so in the same order. Null: there is no room.
  Result<LinkedPlan*> lend(const VerifiedPlan& plan, size_t slot_bytes, size_t extra = 0);
  // A linked plan that was given back under `name`, all of its passes complete; null: none. It can
  // be taken if every rank takes the same one.
  LinkedPlan* spare(std::string_view name) const;
  void take(LinkedPlan* plan);
  void give_back(LinkedPlan* plan, std::string name);
  // Serials of those given back, at most so many, in the order of lending.
  std::vector<uint64_t> spares(size_t most) const;
  // Makes room of plans that all ranks have given back. No rank lends before all have done so.
  void scrap(uint64_t serial);
  size_t room() const { return scratch_.left(); }

  // Programs of send/recv as the sending (side 0) or receiving (side 1) end; the same for every
  // peer.
  Result<const Program*> pair_program(const Choice& choice, int side);

 private:
  struct Entry {
    const Algorithm* algorithm;
    int root;
    size_t slot_bytes;
    int depth;
    std::unique_ptr<LinkedPlan> plan;
  };
  struct PairEntry {
    const Algorithm* algorithm;
    int side;
    size_t slot_bytes;
    int depth;
    std::unique_ptr<Program> program;
  };
  struct Lent {
    std::string spare_name;  // empty while in use
    std::unique_ptr<LinkedPlan> plan;
  };

  Lent& lent(uint64_t serial);
  static size_t bytes_of(const Program& program, size_t extra = 0);
  Result<std::unique_ptr<LinkedPlan>> place(Program program, size_t offset, size_t extra = 0);

  Core& core_;
  std::shared_ptr<SharedPlans> shared_;
  std::vector<Lent> lent_;  // by serial
  uint64_t last_serial_ = 0;
  std::vector<Entry> entries_;
  std::vector<PairEntry> pairs_;
  Scratch scratch_;  // of each arena
};

}  // namespace tessera
