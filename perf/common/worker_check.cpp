// Checking a call: exact inputs, poisoned surroundings, bitwise comparison.
#include <algorithm>
#include <cstring>

#include "common/worker.h"

namespace tessera::perf {
namespace {

constexpr size_t kGuard = Buffer::kGuard;

size_t differing_bytes(const std::byte* a, const std::byte* b, size_t count) {
  if (std::memcmp(a, b, count) == 0) return 0;
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += a[i] != b[i];
  return wrong;
}

size_t not_poison(const std::byte* bytes, size_t count) {
  return static_cast<size_t>(
      std::count_if(bytes, bytes + count, [](std::byte b) { return b != Buffer::kPoison; }));
}

}  // namespace

double Worker::check(const Placed& placed, int repetition) {
  const Job& job = placed.job;
  const Recipe recipe{
      job.type, job.op, session_.ranks(),
      static_cast<uint64_t>(repetition) * 2 + (placed.in_place ? 1 : 0) + job.bytes * 1000003};
  const std::span<RankState> states = session_.of_thread(thread_);
  for (size_t i = 0; i < states.size(); ++i) prepare(states[i], recipe, placed, &images_[i]);
  session_.team().barrier(thread_);
  issue(placed, 0, 1);
  double wrong = 0;
  for (size_t i = 0; i < states.size(); ++i) {
    wrong += wrong_in(states[i], recipe, placed, images_[i]);
  }
  return wrong;
}

void Worker::prepare(const RankState& state, const Recipe& recipe, const Placed& placed,
                     std::vector<std::byte>* image) const {
  const size_t size = placed.job.type->size;
  const Counts& c = placed.counts;
  const size_t unalign = static_cast<size_t>(session_.options().unalign) * size;
  const size_t used = unalign + (placed.in_place ? std::max(c.send, c.recv) : c.recv) * size;
  const Call call = call_for(state, placed, 0);
  state.recv.poison(used);
  if (!placed.in_place) state.send.poison(unalign + c.send * size);
  fill_input(recipe, state.rank, 0, c.send, const_cast<void*>(call.send));
  image->assign(state.recv.data() - kGuard, state.recv.data() + used + kGuard);
  std::byte* target =
      image->data() + (static_cast<std::byte*>(call.recv) - (state.recv.data() - kGuard));
  for (const Segment& s :
       collective_.expected(c, size, state.rank, session_.ranks(), placed.job.root)) {
    void* out = at(static_cast<void*>(target), s.offset, size);
    if (s.source == Segment::kReduced)
      fill_reduced(recipe, s.first, s.count, out);
    else
      fill_input(recipe, s.rank, s.first, s.count, out);
  }
}

// Wrong elements, and bytes outside of the call's range that changed.
double Worker::wrong_in(const RankState& state, const Recipe& recipe, const Placed& placed,
                        const std::vector<std::byte>& image) const {
  const size_t size = placed.job.type->size;
  const Counts& c = placed.counts;
  const Call call = call_for(state, placed, 0);
  const std::byte* origin = state.recv.data() - kGuard;
  const size_t before = static_cast<size_t>(static_cast<std::byte*>(call.recv) - origin);
  const size_t after = before + c.recv * size;
  size_t wrong = count_wrong(recipe, call.recv, image.data() + before, c.recv) +
                 differing_bytes(origin, image.data(), before) +
                 differing_bytes(origin + after, image.data() + after, image.size() - after);
  if (placed.in_place) return static_cast<double>(wrong);

  const auto* send = static_cast<const std::byte*>(call.send);
  const std::byte* send_origin = state.send.data() - kGuard;
  wrong += not_poison(send_origin, static_cast<size_t>(send - send_origin));
  wrong += not_poison(send + c.send * size, kGuard);
  std::byte piece[16384];
  const size_t step = sizeof(piece) / size;
  for (size_t i = 0; i < c.send; i += step) {
    const size_t n = std::min(step, c.send - i);
    fill_input(recipe, state.rank, i, n, piece);
    wrong += (differing_bytes(send + i * size, piece, n * size) + size - 1) / size;
  }
  return static_cast<double>(wrong);
}

}  // namespace tessera::perf
