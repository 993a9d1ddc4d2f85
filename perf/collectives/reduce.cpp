#include "common/collective.h"

namespace tessera::perf {
namespace {

class Reduce final : public Collective {
 public:
  const char* name() const override { return "Reduce"; }
  bool reduces() const override { return true; }
  bool rooted() const override { return true; }
  MpiPeer mpi_peer() const override { return MpiPeer::kReduce; }

  Counts counts(size_t count, size_t, int) const override { return {count, count, count, 0, 0}; }

  std::vector<Segment> expected(const Counts& counts, size_t, int rank, int,
                                int root) const override {
    if (rank != root) return {};  // only the root's receive buffer is written
    return {{Segment::kReduced, 0, counts.recv, 0, 0}};
  }

  double bus_factor(int) const override { return 1; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(counts.send * type_size);
  }
  // Every rank's input is read, the root's output written.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.send * type_size);
    return {bytes * ranks, bytes};
  }

  ncclResult_t run(const Call& c, int) const override {
    return ncclReduce(c.send, c.recv, c.count, c.type->nccl, c.op, c.root, c.comm, nullptr);
  }
};

}  // namespace

Collective& collective() {
  static Reduce instance;
  return instance;
}

}  // namespace tessera::perf
