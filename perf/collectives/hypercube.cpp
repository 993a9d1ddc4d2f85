// All-gather along the dimensions of a hypercube: in step d the blocks gathered so far are
// exchanged with rank xor 2^d.
#include <bit>
#include <cstring>

#include "common/collective.h"

namespace tessera::perf {
namespace {

class HyperCube final : public Collective {
 public:
  const char* name() const override { return "HyperCube"; }
  bool reduces() const override { return false; }
  bool rooted() const override { return false; }
  bool runs_on(int ranks) const override { return (ranks & (ranks - 1)) == 0; }
  MpiPeer mpi_peer() const override { return MpiPeer::kAllgather; }

  Counts counts(size_t count, size_t type_size, int ranks) const override {
    const size_t base = dealt(count, type_size, ranks);
    return {base, base * static_cast<size_t>(ranks), base, base, 0};
  }

  std::vector<Segment> expected(const Counts& counts, size_t, int, int ranks, int) const override {
    std::vector<Segment> segments;
    for (int r = 0; r < ranks; ++r) {
      segments.push_back(
          {Segment::kInput, static_cast<size_t>(r) * counts.param, counts.param, r, 0});
    }
    return segments;
  }

  double bus_factor(int) const override { return 1; }
  double base_bytes(const Counts& counts, size_t type_size, int ranks) const override {
    return static_cast<double>(counts.param * type_size) * (ranks - 1);
  }
  // As all-gather.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.recv * type_size);
    return {bytes, bytes * ranks};
  }

  int steps(int ranks) const override { return std::countr_zero(static_cast<unsigned>(ranks)); }

  ncclResult_t run(const Call& c, int step) const override {
    void* own = at(c.recv, static_cast<size_t>(c.rank) * c.count, c.type->size);
    if (step == 0 && own != c.send) std::memcpy(own, c.send, c.count * c.type->size);
    const int mask = 1 << step;
    const int peer = c.rank ^ mask;
    const size_t mine = static_cast<size_t>(c.rank & ~(mask - 1)) * c.count;
    const size_t theirs = static_cast<size_t>(peer & ~(mask - 1)) * c.count;
    return exchange(c, peer, mine, theirs, c.count * static_cast<size_t>(mask));
  }

 private:
  static ncclResult_t exchange(const Call& c, int peer, size_t mine, size_t theirs, size_t count) {
    if (const ncclResult_t r = ncclGroupStart(); r != ncclSuccess) return r;
    const ncclResult_t sent =
        ncclSend(at(c.recv, mine, c.type->size), count, c.type->nccl, peer, c.comm, nullptr);
    const ncclResult_t received =
        ncclRecv(at(c.recv, theirs, c.type->size), count, c.type->nccl, peer, c.comm, nullptr);
    const ncclResult_t ended = ncclGroupEnd();
    return sent != ncclSuccess ? sent : received != ncclSuccess ? received : ended;
  }
};

}  // namespace

Collective& collective() {
  static HyperCube instance;
  return instance;
}

}  // namespace tessera::perf
