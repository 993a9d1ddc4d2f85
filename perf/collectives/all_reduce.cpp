#include "common/collective.h"

namespace tessera::perf {
namespace {

class AllReduce final : public Collective {
 public:
  const char* name() const override { return "AllReduce"; }
  bool reduces() const override { return true; }
  bool rooted() const override { return false; }
  MpiPeer mpi_peer() const override { return MpiPeer::kAllreduce; }

  Counts counts(size_t count, size_t, int) const override { return {count, count, count, 0, 0}; }

  std::vector<Segment> expected(const Counts& counts, size_t, int, int, int) const override {
    return {{Segment::kReduced, 0, counts.recv, 0, 0}};
  }

  // A ring sends every byte 2(n-1)/n times.
  double bus_factor(int ranks) const override { return 2.0 * (ranks - 1) / ranks; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(counts.send * type_size);
  }
  // Every rank's input is read, every rank's output written.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.send * type_size) * ranks;
    return {bytes, bytes};
  }

  ncclResult_t run(const Call& c, int) const override {
    return ncclAllReduce(c.send, c.recv, c.count, c.type->nccl, c.op, c.comm, nullptr);
  }
};

}  // namespace

Collective& collective() {
  static AllReduce instance;
  return instance;
}

}  // namespace tessera::perf
