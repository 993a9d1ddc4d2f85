#include "common/collective.h"

namespace tessera::perf {
namespace {

class Gather final : public Collective {
 public:
  const char* name() const override { return "Gather"; }
  bool reduces() const override { return false; }
  bool rooted() const override { return true; }
  MpiPeer mpi_peer() const override { return MpiPeer::kGather; }

  Counts counts(size_t count, size_t type_size, int ranks) const override {
    const size_t base = dealt(count, type_size, ranks);
    return {base, base * static_cast<size_t>(ranks), base, base, 0};
  }

  std::vector<Segment> expected(const Counts& counts, size_t, int rank, int ranks,
                                int root) const override {
    std::vector<Segment> segments;
    for (int r = 0; rank == root && r < ranks; ++r) {
      segments.push_back(
          {Segment::kInput, static_cast<size_t>(r) * counts.param, counts.param, r, 0});
    }
    return segments;
  }

  double bus_factor(int ranks) const override { return (ranks - 1.0) / ranks; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(counts.recv * type_size);
  }
  // The blocks of the other ranks are read and written once.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.param * type_size) * (ranks - 1);
    return {bytes, bytes};
  }

  ncclResult_t run(const Call& c, int) const override {
    return ncclGather(c.send, c.recv, c.count, c.type->nccl, c.root, c.comm, nullptr);
  }
};

}  // namespace

Collective& collective() {
  static Gather instance;
  return instance;
}

}  // namespace tessera::perf
