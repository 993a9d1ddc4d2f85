#include "common/collective.h"

namespace tessera::perf {
namespace {

class ReduceScatter final : public Collective {
 public:
  const char* name() const override { return "ReduceScatter"; }
  bool reduces() const override { return true; }
  bool rooted() const override { return false; }
  MpiPeer mpi_peer() const override { return MpiPeer::kReduceScatterBlock; }

  Counts counts(size_t count, size_t type_size, int ranks) const override {
    const size_t base = dealt(count, type_size, ranks);
    return {base * static_cast<size_t>(ranks), base, base, 0, base};
  }

  std::vector<Segment> expected(const Counts& counts, size_t, int rank, int, int) const override {
    return {{Segment::kReduced, 0, counts.param, 0, static_cast<size_t>(rank) * counts.param}};
  }

  double bus_factor(int ranks) const override { return (ranks - 1.0) / ranks; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(counts.send * type_size);
  }
  // Every rank's input is read, every rank's block written.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.send * type_size);
    return {bytes * ranks, bytes};
  }

  ncclResult_t run(const Call& c, int) const override {
    return ncclReduceScatter(c.send, c.recv, c.count, c.type->nccl, c.op, c.comm, nullptr);
  }
};

}  // namespace

Collective& collective() {
  static ReduceScatter instance;
  return instance;
}

}  // namespace tessera::perf
