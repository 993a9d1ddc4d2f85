// Asks a tuner plugin what calls should run as, and remembers its answers.
//
// The plugin gets NCCL's table of costs: the tuner's estimate for each candidate that NCCL has a
// name for (tuner/wishes.h), -1 elsewhere. Where two candidates have one name, the faster one
// stands for it.
//
//             LL           LL128        Simple
//   tree   low-latency  low-latency     staged      double-tree, tree, binomial
//   ring   low-latency  low-latency     staged      ring
//   pat    low-latency  low-latency     staged      pat
//
// If the plugin changed an entry that something stands for, the least entry that is not negative
// is what it advises; else, or if it failed, it advises nothing. What NCCL has no name for (direct,
// one-hop, ...) can be chosen by the tuner only.
//
// All ranks must choose alike. Every rank asks its own copy of the plugin with equal arguments: the
// function, the bytes of the larger buffer rounded up to a power of two, one operation, buffers not
// registered, equal costs. Where one answers by anything else (its rank, the time), the call that it
// was asked about ends in an error on all ranks.
//
// Thread safety: one thread at a time. A size that was asked for before costs a look into a table.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/estimate.h"
#include "tuner/plugin.h"

namespace tessera {

struct Advice {
  Candidate candidate;    // without algorithm: none
  size_t slot_bytes = 0;  // of a staged candidate; 0: as always
  bool given() const { return candidate.algorithm != nullptr; }
};

class Adviser {
 public:
  Adviser(std::unique_ptr<TunerPlugin> plugin, const Site& site, const Config& config)
      : plugin_(std::move(plugin)), site_(site), config_(config) {}

  // For calls with blocks of so many bytes; `allowed` candidates only, always the same for a
  // collective.
  const Advice& advice(Collective collective, size_t block_bytes,
                       const std::vector<Candidate>& allowed, Estimator& estimator);

 private:
  static constexpr int kSizes = 48;  // powers of two; the last one for all beyond
  using Named =
      std::array<std::array<const Candidate*, plugin_abi::kProtocols>, plugin_abi::kAlgorithms>;

  Advice ask(plugin_abi::Function function, size_t bytes, size_t block_bytes,
             const std::vector<Candidate>& allowed, Estimator& estimator);
  size_t slot_bytes(plugin_abi::Function function, size_t bytes, int algorithm,
                    const Candidate& candidate);

  std::unique_ptr<TunerPlugin> plugin_;
  Site site_;
  Config config_;
  Advice none_;
  std::array<std::array<std::optional<Advice>, kSizes>, plugin_abi::kFunctions> known_;
};

}  // namespace tessera
