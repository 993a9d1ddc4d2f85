#include "common/collective.h"

namespace tessera::perf {
namespace {

class AlltoAll final : public Collective {
 public:
  const char* name() const override { return "AlltoAll"; }
  bool reduces() const override { return false; }
  bool rooted() const override { return false; }
  bool in_place() const override { return false; }
  MpiPeer mpi_peer() const override { return MpiPeer::kAlltoall; }

  Counts counts(size_t count, size_t type_size, int ranks) const override {
    const size_t base = dealt(count, type_size, ranks);
    const size_t all = base * static_cast<size_t>(ranks);
    return {all, all, base, 0, 0};
  }

  std::vector<Segment> expected(const Counts& counts, size_t, int rank, int ranks,
                                int) const override {
    std::vector<Segment> segments;
    for (int r = 0; r < ranks; ++r) {
      segments.push_back({Segment::kInput, static_cast<size_t>(r) * counts.param, counts.param, r,
                          static_cast<size_t>(rank) * counts.param});
    }
    return segments;
  }

  double bus_factor(int ranks) const override { return (ranks - 1.0) / ranks; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(counts.send * type_size);
  }
  // Every rank's input is read, every rank's output written.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.send * type_size) * ranks;
    return {bytes, bytes};
  }

  ncclResult_t run(const Call& c, int) const override {
    return ncclAlltoAll(c.send, c.recv, c.count, c.type->nccl, c.comm, nullptr);
  }
};

}  // namespace

Collective& collective() {
  static AlltoAll instance;
  return instance;
}

}  // namespace tessera::perf
