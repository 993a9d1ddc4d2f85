// The communicator of a host rank: implements communicator.h over a shared segment.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/batch.h"
#include "comm/collective_run.h"
#include "comm/communicator.h"
#include "comm/exchange.h"
#include "comm/pair_run.h"

namespace tessera {

class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(std::unique_ptr<Core> core, CommOptions options);
  ~HostCommunicator() override;

  int rank() const override { return core_->rank; }
  int size() const override { return core_->ranks; }
  const CommOptions& options() const override { return options_; }
  Result<std::unique_ptr<Communicator>> split(int color, int key, CommOptions options) override;
  Result<std::unique_ptr<Communicator>> shrink(std::span<const int> excluded,
                                               CommOptions options) override;
  Status finalize() override;
  Status error() const override { return core_->health->status(); }
  void abort() override {
    core_->health->abort();
    if (core_->ports) core_->ports->spread_error_if_idle();
  }
  void revoke() override {
    core_->health->revoke();
    if (core_->ports) core_->ports->spread_error_if_idle();
  }
  Status register_window(void* pointer, size_t bytes, uint64_t* out) override;
  Status deregister_window(uint64_t window) override;
  double estimate(const Call& call) override;

  // For execute().
  Core& core() { return *core_; }
  CollectiveRun& collective() { return collective_; }
  PairRun& pair(int peer, bool receives);
  std::vector<int> everyone() const;  // all ranks, sorted
  // For fused operators.
  PlanStore& plans() { return plans_; }
  SetupExchange& exchange() { return exchange_; }
  Deadline deadline() const { return Deadline::after(options_.config.timeout); }
  Batch& batch() { return batch_; }

 private:
  std::unique_ptr<Core> core_;
  CommOptions options_;
  SetupExchange exchange_;
  Sharing sharing_;
  PlanStore plans_;
  CollectiveRun collective_;
  Batch batch_;
  std::vector<std::unique_ptr<PairRun>> pairs_;  // by peer * 2 + receives; made on first use
  uint64_t windows_ = 0;
  std::map<uint64_t, const void*> live_windows_;
};

}  // namespace tessera
