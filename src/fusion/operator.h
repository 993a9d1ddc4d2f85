// A fused operator: a collective on matrices that a compute kernel drives tile by tile.
//
//   kernel threads           tile_done() --> tracker --> counters of chunks
//   whoever has time         drive(): the plan's steps, by the interpreter
//   consumer threads         rows_wait() <-- counters of landed chunks
//
// Who drives: reports of tiles, within the budget; every wait; and the thread that calls run(), if
// the launch was given to one. One drives at a time, the others go on without.
//
// Launches are numbered; a tile may be reported for the launch that is under way, or, when none is,
// for the next one. Input of a launch may be written again once wait() has returned.
//
// Thread safety: every member from any thread, except create() and close(), which use the
// communicator as its own members do, and launch(), announce() and run(): one thread at a time.
// Errors: what breaks a launch breaks the communicator, as with every collective; a tile reported
// twice or outside of the matrix does not, it is not counted.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/host_communicator.h"
#include "fusion/budget.h"
#include "fusion/fused_run.h"
#include "fusion/onto.h"
#include "fusion/tracker.h"
#include "fusion/traffic.h"
#include "sync/flag.h"

namespace tessera {

class Watch;

class FusedOperator final : private Driven {
 public:
  // Collective: blocks until all ranks have called it with the same description, or the deadline
  // has passed. `comm` must outlive the operator.
  static Result<std::unique_ptr<FusedOperator>> create(HostCommunicator& comm,
                                                       const FusedDescription& wish);
  // The same with a plan of the user's (user_plan.h), the same on all ranks; or with the reason why
  // this rank has none, which the others learn.
  static Result<std::unique_ptr<FusedOperator>> create(HostCommunicator& comm,
                                                       const FusedDescription& wish,
                                                       Result<Plan> brought);

  ~FusedOperator();
  FusedOperator(const FusedOperator&) = delete;
  FusedOperator& operator=(const FusedOperator&) = delete;

  // All but the leading dimensions, which set_lines() changes: see ld().
  const FusedDescription& description() const { return description_; }
  int64_t ld(bool input);
  const Geometry& geometry() const { return geometry_; }
  int rank() const { return core_.rank; }
  int ranks() const { return core_.ranks; }

  // Starts a launch and returns. kInvalidUsage while the one before is under way.
  Status launch(const void* input, void* output);
  // The same in two parts, for a thread that drives: announce() when the user launches, run() on the
  // thread; it returns when the launch is over.
  Status announce(const void* input, const void* output);
  Status run(const void* input, void* output);

  // Until every launch announced so far is over.
  Status wait();
  // The communicator's error; ok while it is healthy.
  Status error() const { return core_.health->status(); }
  bool done() const { return finished_.counter.reached(launched_.counter.value()); }

  Status check_tile(int64_t row, int64_t col) const;  // there is one
  // One part of the tile at (row, col) of the tile grid is stored.
  Status tile_done(int64_t row, int64_t col);
  // Tiles are added onto the output of the rank that owns them: all go through tile_onto().
  bool onto() const { return onto_.has_value(); }
  // Where the calling thread is to make the tile; `add`: on top of what is there, which is waited for.
  // Requires: onto().
  struct TilePlace {
    std::byte* first = nullptr;
    int64_t ld = 0;
    bool add = false;
  };
  Result<TilePlace> tile_onto(int64_t row, int64_t col);
  // Until rows [first, first + rows) of the output of the latest launch are there.
  Status rows_wait(int64_t first, int64_t rows);

  // With remote stores: where the data of the first slot of rank 0 begins, bytes from a rank's to
  // the next rank's, and bytes from a slot to the next. Null: there are none.
  struct RemoteSpace {
    std::byte* first = nullptr;
    ptrdiff_t rank_bytes = 0, slot_bytes = 0;
  };
  RemoteSpace remote_space() const;

  // What device code raises and looks at (tessera/tile_device.h). Afterwards waits of this operator
  // count on reports for which nobody rings.
  struct DeviceSide {
    PaddedCounter* counters = nullptr;  // of the side's chunks
    Tally* tallies = nullptr;           // of the input's tiles; null: there are no reports
    const Counter* launches = nullptr;  // that are over (input), that have begun (output)
    uint64_t first_pass = 0;            // at which the output's counters stood at first
    const RowChunks* chunks = nullptr;
    std::chrono::nanoseconds timeout{};
  };
  DeviceSide device_side(bool input);

  // What the model (forecast.h) says of a launch with kernels that make the input and use the output
  // for so long. Local; equal arguments give equal times on all ranks. Takes milliseconds.
  struct Forecast {
    double fused_us = 0, in_order_us = 0, collective_us = 0, unfused_us = 0;
    Traffic operands, merging;  // bytes of this rank's memory in a launch
    // Tiles cost a kernel a little by themselves: a gain of less is none.
    static constexpr double kLeastGain = 1.03;
    bool pays() const { return kLeastGain * fused_us < unfused_us; }
  };
  Result<Forecast> forecast(double produce_us, double consume_us);

  // For launches that follow; 0: dense. kInvalidUsage while a launch is under way.
  Status set_lines(int64_t input_ld, int64_t output_ld);

  void set_budget(const BudgetOptions& options);
  // What the operator is, and who waits for what now. Several lines.
  std::string explain();

  // Gives the linked plan back. kInvalidUsage while a launch is under way on a healthy
  // communicator.
  Status close();
  // In place of close() where the communicator has ended or failed: the output is the user's again.
  void abandon();

 private:
  // What this rank wants; or why it cannot.
  struct Intent {
    Result<FusedDescription> description;
    std::shared_ptr<const VerifiedPlan> brought;  // null: a plan of plans.h
  };

  FusedOperator(HostCommunicator& comm, const FusedDescription& description,
                const Geometry& geometry, LinkedPlan& linked, int tile_counters,
                std::shared_ptr<const VerifiedPlan> brought, const char* obstacle);

  static Result<std::unique_ptr<FusedOperator>> agree(HostCommunicator& comm,
                                                      const FusedDescription& wish, Intent intent);
  Plan plan() const;

  Status check_memory(const void* input, const void* output) const;
  void begin(const void* input, void* output);
  bool drive() override;  // nothing happens if another thread is driving
  bool drive_locked();
  void lend_time();
  // A tile of a peer that a thread waits for.
  struct Visited {
    int64_t row, col;
    int owner;
  };
  Status await(const Counter& counter, uint64_t target, const Visited* visited = nullptr);
  Status standstill(const Visited* visited);
  // Before the output is given back to the user after a failure: no peer is inside, or will be.
  void take_back_output();
  Status not_taken(int64_t row, int64_t col, Onto::Taken how) const;
  void beat(Watch& watch) const;
  Status failed(Status status);
  uint64_t moved() const { return steps_.counter.value() + tracker_.arrived(); }
  PaddedCounter* own_counters() const;
  std::string advice();

  HostCommunicator& comm_;
  Core& core_;
  FusedDescription description_;
  Geometry geometry_;
  std::shared_ptr<const VerifiedPlan> brought_;  // the user's; null: a plan of plans.h
  LinkedPlan& linked_;
  int tile_counters_;
  uint64_t first_pass_;
  const char* obstacle_;  // why tiles are not added onto peers; null: they are, or nobody asked
  std::optional<Onto> onto_;
  Tracker tracker_;
  PaddedCounter launched_, finished_;
  Flag silent_;          // a device may report: its tiles come without a ring
  PaddedCounter steps_;  // grows with every step done
  std::mutex driver_;    // guards what follows
  FusedRun run_;
  Budget budget_;
  bool driven_ = false;  // by run(): reports need not
  bool closed_ = false;  // or abandoned: the region may be another operator's by now
};

}  // namespace tessera
