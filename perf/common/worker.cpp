#include "common/worker.h"

#include <algorithm>
#include <ctime>

#include "common/outcome.h"

namespace tessera::perf {
namespace {

constexpr double kBatchSeconds = 2e-3;
constexpr double kPointSeconds = 60e-3;  // more batches until the point has taken this long
constexpr int kLeastBatches = 5;
constexpr int kMostBatches = 15;
constexpr int kMostIterations = 1 << 17;

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

Worker::Worker(Session& session, const Collective& collective, Baseline* baseline, int thread)
    : session_(session),
      collective_(collective),
      baseline_(baseline),
      thread_(thread),
      images_(static_cast<size_t>(session.options().gpus)) {}

Placed Worker::place(const Job& job, bool in_place) const {
  Placed placed{job, in_place, counts(job), 0, 1};
  placed.used = std::max(placed.counts.send, placed.counts.recv) * job.type->size;
  if (placed.used > 0) placed.parts = std::max<size_t>(1, session_.buffer_bytes() / placed.used);
  return placed;
}

// Calls walk through the buffers, as in nccl-tests: iteration i uses the i-th part that is large
// enough.
Call Worker::call_for(const RankState& state, const Placed& placed, int iteration) const {
  const Job& job = placed.job;
  const size_t size = job.type->size;
  const size_t shift = placed.used * (static_cast<size_t>(iteration) % placed.parts) +
                       static_cast<size_t>(session_.options().unalign) * size;
  const auto rank = static_cast<size_t>(state.rank);
  std::byte* recv = state.recv.data() + shift;
  Call call;
  call.send = placed.in_place ? at(recv, placed.counts.send_offset * rank, size)
                              : state.send.data() + shift;
  call.recv = placed.in_place ? at(recv, placed.counts.recv_offset * rank, size) : recv;
  call.count = placed.counts.param;
  call.type = job.type;
  call.op = job.op == nullptr ? ncclSum : job.op->nccl;
  call.root = job.root;
  call.rank = state.rank;
  call.ranks = session_.ranks();
  call.comm = state.comm;
  return call;
}

void Worker::run_one(const RankState& state, Call call, const Job& job, int step) {
  const bool scaled = job.op != nullptr && job.op->kind == OpKind::kMulSum;
  if (!scaled) {
    require(collective_.run(call, step));
    return;
  }
  uint64_t scalar = mulsum_scalar(*job.type, state.rank);
  require(ncclRedOpCreatePreMulSum(&call.op, &scalar, job.type->nccl, ncclScalarHostImmediate,
                                   state.comm));
  require(collective_.run(call, step));
  require(
      ncclRedOpDestroy(call.op, state.comm));  // allowed right after the call, even inside a group
}

void Worker::issue(const Placed& placed, int iteration, int calls) {
  const std::span<RankState> states = session_.of_thread(thread_);
  const bool grouped = states.size() > 1 || calls > 1;
  session_.watchdog().enter(thread_);
  for (int step = 0; step < collective_.steps(session_.ranks()); ++step) {
    if (grouped) require(ncclGroupStart());
    for (int c = 0; c < calls; ++c) {
      for (const RankState& state : states) {
        run_one(state, call_for(state, placed, iteration), placed.job, step);
      }
    }
    if (grouped) require(ncclGroupEnd());
  }
  session_.watchdog().leave(thread_);
}

double Worker::timed(const Batch& batch, std::vector<double>* samples) {
  const Options& options = session_.options();
  const clockid_t clock = options.cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const bool meets = options.blocking == 1;
  session_.team().barrier(thread_);
  const double start = seconds_of(clock);
  double last = start;
  for (int i = 0; i < batch.iterations; ++i) {
    batch.body(i);
    if (meets) session_.team().barrier(thread_);
    if (samples != nullptr) {
      const double now = seconds_of(clock);
      samples->push_back((now - last) / options.aggregate);
      last = now;
    }
  }
  const double calls = batch.ours ? options.aggregate : 1;
  return (seconds_of(clock) - start) / (batch.iterations * calls);
}

double Worker::reported(double seconds) {
  Team& team = session_.team();
  switch (session_.options().average) {
    case 0:
      return team.combine(thread_, seconds, Combine::kFirst);
    case 2:
      return team.combine(thread_, seconds, Combine::kMin);
    case 3:
      return team.combine(thread_, seconds, Combine::kMax);
    default:
      return team.average(thread_, seconds);
  }
}

void Worker::measure_fixed(Batch& ours, Point* point) {
  ours.iterations = session_.options().iterations;
  std::vector<double>* samples = session_.options().per_iteration ? &point->samples : nullptr;
  point->seconds = reported(timed(ours, samples));
  point->iterations = ours.iterations;
}

// Finds how many iterations take about kBatchSeconds; every worker arrives at the same number.
void Worker::calibrate(Batch* batch) {
  for (batch->iterations = 1;; batch->iterations *= 4) {
    const double each = session_.team().combine(thread_, timed(*batch, nullptr), Combine::kMax);
    if (each * batch->iterations < kBatchSeconds / 2 && batch->iterations < kMostIterations / 4)
      continue;
    batch->iterations = static_cast<int>(
        std::clamp(kBatchSeconds / std::max(each, 1e-9), 1.0, 1.0 * kMostIterations));
    return;
  }
}

// Short batches of both in alternation (A B, B A, ...), so that slow drifts of the machine meet
// both alike; medians of the batches, so that a single disturbance meets neither.
void Worker::measure_adaptive(Batch& ours, Batch* theirs, Point* point) {
  calibrate(&ours);
  if (theirs != nullptr) calibrate(theirs);
  std::vector<double>* samples = session_.options().per_iteration ? &point->samples : nullptr;
  std::vector<double> our_times, their_times;
  double spent = 0;
  for (int b = 0; b < kMostBatches && (b < kLeastBatches || spent < kPointSeconds); ++b) {
    for (int half = 0; half < 2; ++half) {
      if ((half + b) % 2 == 0) {
        our_times.push_back(reported(timed(ours, samples)));
      } else if (theirs != nullptr) {
        their_times.push_back(reported(timed(*theirs, nullptr)));
      }
    }
    spent += our_times.back() * ours.iterations;
  }
  // `spent` must agree on every worker: reported() gives all the same number.
  point->seconds = median(our_times);
  point->iterations = ours.iterations * static_cast<int>(our_times.size());
  if (theirs != nullptr) point->baseline_seconds = median(their_times);
}

Point Worker::measure(const Job& job, bool in_place) {
  const Options& options = session_.options();
  const RankState& first = session_.of_thread(thread_).front();
  const Placed placed = place(job, in_place);
  Batch ours{1, [&](int i) { issue(placed, i, options.aggregate); }, true};
  Batch theirs{1, [&](int i) { baseline_->run(call_for(first, placed, i), job.op, in_place); },
               false};
  const bool compare =
      baseline_ != nullptr && baseline_->supports(call_for(first, placed, 0), job.op, in_place);
  for (int w = 0; w < std::max(1, options.warmup); ++w) {
    ours.body(w);
    if (compare) theirs.body(w);
  }
  Point point;
  if (options.adaptive) {
    measure_adaptive(ours, compare ? &theirs : nullptr, &point);
  } else {
    measure_fixed(ours, &point);
  }
  if (!point.samples.empty()) session_.team().combine(thread_, point.samples, Combine::kMax);
  if (options.check == 0 || (in_place && !collective_.in_place())) return point;
  double wrong = 0;
  for (int c = 0; c < options.check; ++c) wrong += check(placed, c);
  point.wrong = session_.team().combine(thread_, wrong, Combine::kSum);
  return point;
}

}  // namespace tessera::perf
