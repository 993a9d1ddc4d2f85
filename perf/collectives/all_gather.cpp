#include "common/collective.h"

namespace tessera::perf {
namespace {

class AllGather final : public Collective {
 public:
  const char* name() const override { return "AllGather"; }
  bool reduces() const override { return false; }
  bool rooted() const override { return false; }
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

  double bus_factor(int ranks) const override { return (ranks - 1.0) / ranks; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(counts.recv * type_size);
  }
  // Every input is read at least once, every output written.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.recv * type_size);
    return {bytes, bytes * ranks};
  }

  ncclResult_t run(const Call& c, int) const override {
    return ncclAllGather(c.send, c.recv, c.count, c.type->nccl, c.comm, nullptr);
  }
};

}  // namespace

Collective& collective() {
  static AllGather instance;
  return instance;
}

}  // namespace tessera::perf
