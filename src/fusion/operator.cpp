#include "fusion/operator.h"

#include <utility>

namespace tessera {

FusedOperator::FusedOperator(HostCommunicator& comm, const FusedDescription& description,
                             const Geometry& geometry, LinkedPlan& linked, int tile_counters,
                             std::shared_ptr<const VerifiedPlan> brought, const char* obstacle)
    : comm_(comm),
      core_(comm.core()),
      description_(description),
      geometry_(geometry),
      brought_(std::move(brought)),
      linked_(linked),
      tile_counters_(tile_counters),
      first_pass_(linked.next_pass),
      obstacle_(obstacle),
      onto_(description.onto
                ? std::optional<Onto>(std::in_place, description, geometry, core_.rank, linked)
                : std::nullopt),
      tracker_(
          {geometry.input_rows(), description.cols, description.tile_rows, description.tile_cols},
          geometry_.input(), description.parts, own_counters(), tile_counters, first_pass_),
      run_(core_, linked, description, geometry_, onto_ ? &*onto_ : nullptr) {
  core_.driven.add(this);
}

FusedOperator::~FusedOperator() {
  core_.driven.remove(this);
  if (!closed_) abandon();
}

Status FusedOperator::set_lines(int64_t input_ld, int64_t output_ld) {
  const std::lock_guard lock(driver_);
  if (!done()) {
    return Status::error(Code::kInvalidUsage,
                         "{}: {}: launch {} is still under way; wait for it before changing "
                         "leading dimensions",
                         core_.health->who(), describe(description_), launched_.counter.value());
  }
  FusedDescription changed = description_;
  changed.input_ld = input_ld;
  changed.output_ld = output_ld;
  if (Status s = lay_out(&changed, core_.ranks, core_.rank); !s.ok()) return s;
  description_.input_ld = changed.input_ld;  // nothing else: other threads read the rest
  description_.output_ld = changed.output_ld;
  run_.set_lines(changed);
  return {};
}

int64_t FusedOperator::ld(bool input) {
  const std::lock_guard lock(driver_);
  return input ? description_.input_ld : description_.output_ld;
}

PaddedCounter* FusedOperator::own_counters() const {
  return reinterpret_cast<PaddedCounter*>(linked_.regions[core_.rank]);
}

Status FusedOperator::check_memory(const void* input, const void* output) const {
  if ((input == nullptr && geometry_.input_rows() > 0 && !onto_) ||
      (output == nullptr && geometry_.output_rows() > 0))
    return Status::error(Code::kInvalidArgument,
                         "{}: {}: input is {}, output is {}; neither may be "
                         "NULL",
                         core_.health->who(), describe(description_), input, output);
  return {};
}

Status FusedOperator::announce(const void* input, const void* output) {
  if (Status s = check_memory(input, output); !s.ok()) return s;
  if (!core_.health->good()) return core_.health->status();
  launched_.counter.publish(1);
  return {};
}

void FusedOperator::begin(const void* input, void* output) {
  const std::lock_guard lock(driver_);
  run_.start(input, output);
  drive_locked();  // tiles may have come before, and an input without tiles is complete
}

Status FusedOperator::launch(const void* input, void* output) {
  if (!done()) {
    return Status::error(Code::kInvalidUsage,
                         "{}: {}: launch {} is still under way; wait for it first",
                         core_.health->who(), describe(description_), launched_.counter.value());
  }
  if (Status s = announce(input, output); !s.ok()) return s;
  begin(input, output);
  core_.ring(core_.rank);  // as lend_time() does
  return {};
}

Status FusedOperator::run(const void* input, void* output) {
  const uint64_t end = finished_.counter.value() + 1;
  {
    const std::lock_guard lock(driver_);
    driven_ = true;
  }
  begin(input, output);
  Status status = await(finished_.counter, end);
  if (!status.ok()) take_back_output();
  const std::lock_guard lock(driver_);
  driven_ = false;
  return status;
}

Status FusedOperator::wait() {
  const uint64_t launches = launched_.counter.value();
  Status status = await(finished_.counter, launches);
  if (!status.ok()) take_back_output();
  return status;
}

bool FusedOperator::drive_locked() {
  if (!run_.running() || !core_.health->good()) return false;
  std::unique_lock<Ports> inside;
  if (!core_.try_enter(inside)) return false;  // who is there takes in what comes
  // Some of it may be for who sleeps in a collective.
  if (core_.progress()) core_.ring(core_.rank);
  const uint64_t before = run_.moved();
  switch (run_.advance()) {
    case Progress::kBlocked:
      break;
    case Progress::kDone:
      if (onto_) onto_->close();
      finished_.counter.publish(1);
      core_.ring(core_.rank);
      break;
    case Progress::kMismatch:
    case Progress::kFailed:  // only the space's visits to a peer can, whose error is known
      static_cast<void>(core_.health->raise(Status::error(
          Code::kInvalidUsage,
          "{}: {}: a peer is in another launch; all ranks must launch an operator equally often",
          core_.health->who(), describe(description_))));
      return true;
  }
  core_.progress();
  steps_.counter.publish(run_.moved() - before);
  return run_.moved() != before;
}

bool FusedOperator::drive() {
  const std::unique_lock lock(driver_, std::try_to_lock);
  return lock.owns_lock() && drive_locked();
}

// A producer's time, as far as the budget goes.
void FusedOperator::lend_time() {
  std::unique_lock lock(driver_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (!driven_ && run_.running()) {
    const Budget::Clock::time_point now = Budget::Clock::now();
    if (budget_.allows(now)) {
      drive_locked();
      budget_.spent(now, Budget::Clock::now());
    }
  }
  Core& core = core_;
  lock.unlock();
  // Who found the lock taken may have gone to sleep over what came since this thread looked.
  core.ring(core.rank);
}

Status FusedOperator::check_tile(int64_t row, int64_t col) const {
  const TileGrid& grid = tracker_.grid();
  if (row < 0 || col < 0 || row >= grid.down() || col >= grid.across() || tile_counters_ == 0) {
    return Status::error(Code::kInvalidArgument,
                         "{}: {}: there is no tile ({},{}); the input has "
                         "{} x {} that are reported",
                         core_.health->who(), describe(description_), row, col,
                         tile_counters_ == 0 ? 0 : grid.down(), grid.across());
  }
  return {};
}

Status FusedOperator::tile_done(int64_t row, int64_t col) {
  if (Status s = check_tile(row, col); !s.ok()) return s;
  const uint64_t launch = finished_.counter.value();
  if (onto_ && !onto_->taken(row, col, launch)) return not_taken(row, col, Onto::Taken::kYes);
  const Tracker::Report report = tracker_.report(row, col, launch);
  if (onto_ && report != Tracker::Report::kTwice) {
    onto_->made(row, col);
    core_.ring(1 - core_.rank);
  }
  switch (report) {
    case Tracker::Report::kTwice:
      return Status::error(Code::kInvalidUsage,
                           "{}: {}: tile ({},{}) was reported more than {} time(s) for launch {}; "
                           "the surplus report was not counted",
                           core_.health->who(), describe(description_), row, col,
                           description_.parts, launch + 1);
    case Tracker::Report::kComplete:
      core_.ring(core_.rank);
      lend_time();
      break;
    case Tracker::Report::kLook:
      lend_time();
      break;
    case Tracker::Report::kCounted:
      break;
  }
  return {};
}

Status FusedOperator::rows_wait(int64_t first, int64_t rows) {
  const int64_t have = geometry_.output_rows();
  if (first < 0 || rows < 0 || rows > have - first) {
    return Status::error(Code::kInvalidArgument,
                         "{}: {}: rows {} to {} are not all among the {} "
                         "of the output",
                         core_.health->who(), describe(description_), first, first + rows - 1,
                         have);
  }
  const uint64_t launches = launched_.counter.value();
  if (launches == 0) {
    return Status::error(Code::kInvalidUsage,
                         "{}: {}: it was not launched: no rows are on their "
                         "way",
                         core_.health->who(), describe(description_));
  }
  if (rows == 0) return {};
  const PaddedCounter* landed = own_counters() + tile_counters_;
  const int last = geometry_.output().chunk_of(first + rows - 1);
  for (int chunk = geometry_.output().chunk_of(first); chunk <= last; ++chunk) {
    const Counter& counter = landed[chunk].counter;
    const uint64_t target = first_pass_ + launches;
    if (Status s = await(counter, target); !s.ok()) return s;
  }
  return {};
}

FusedOperator::RemoteSpace FusedOperator::remote_space() const {
  if (!description_.remote) return {};
  const Program& program = linked_.program;  // scratch has one copy
  std::byte* const slots = linked_.regions[0] + program.counters * sizeof(PaddedCounter);
  return {slots + sizeof(SlotHeader), linked_.regions[1] - linked_.regions[0],
          static_cast<ptrdiff_t>(program.slot_stride)};
}

FusedOperator::DeviceSide FusedOperator::device_side(bool input) {
  silent_.raise();
  DeviceSide side;
  side.timeout = core_.config.timeout;
  side.first_pass = first_pass_;
  if (input) {
    side.counters = own_counters();
    side.tallies = tile_counters_ > 0 ? tracker_.tallies() : nullptr;
    side.launches = &finished_.counter;
    side.chunks = &geometry_.input();
  } else {
    side.counters = own_counters() + tile_counters_;
    side.launches = &launched_.counter;
    side.chunks = &geometry_.output();
  }
  return side;
}

void FusedOperator::set_budget(const BudgetOptions& options) {
  tracker_.set_every(options.every);
  const std::lock_guard lock(driver_);
  budget_.set(options);
}

}  // namespace tessera
