#include "common/collective.h"

namespace tessera::perf {
namespace {

class Broadcast final : public Collective {
 public:
  const char* name() const override { return "Broadcast"; }
  bool reduces() const override { return false; }
  bool rooted() const override { return true; }
  MpiPeer mpi_peer() const override { return MpiPeer::kBcast; }

  Counts counts(size_t count, size_t, int) const override { return {count, count, count, 0, 0}; }

  std::vector<Segment> expected(const Counts& counts, size_t, int, int, int root) const override {
    return {{Segment::kInput, 0, counts.recv, root, 0}};
  }

  double bus_factor(int) const override { return 1; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(counts.send * type_size);
  }
  // The root's input is read, the outputs of the others written.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.send * type_size);
    return {bytes, bytes * (ranks - 1)};
  }

  ncclResult_t run(const Call& c, int) const override {
    return ncclBroadcast(c.send, c.recv, c.count, c.type->nccl, c.root, c.comm, nullptr);
  }
};

}  // namespace

Collective& collective() {
  static Broadcast instance;
  return instance;
}

}  // namespace tessera::perf
