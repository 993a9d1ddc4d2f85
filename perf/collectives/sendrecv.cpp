#include "common/collective.h"

namespace tessera::perf {
namespace {

class SendRecv final : public Collective {
 public:
  const char* name() const override { return "SendRecv"; }
  bool reduces() const override { return false; }
  bool rooted() const override { return false; }
  bool in_place() const override { return false; }
  MpiPeer mpi_peer() const override { return MpiPeer::kSendrecv; }

  Counts counts(size_t count, size_t, int) const override { return {count, count, count, 0, 0}; }

  std::vector<Segment> expected(const Counts& counts, size_t, int rank, int ranks,
                                int) const override {
    return {{Segment::kInput, 0, counts.recv, (rank + ranks - 1) % ranks, 0}};
  }

  double bus_factor(int) const override { return 1; }
  double base_bytes(const Counts& counts, size_t type_size, int) const override {
    return static_cast<double>(counts.send * type_size);
  }
  // Every rank's input is read, every rank's output written.
  Traffic traffic(const Counts& counts, size_t type_size, int ranks) const override {
    const double bytes = static_cast<double>(counts.send * type_size) * ranks;
    return {bytes, bytes};
  }

  ncclResult_t run(const Call& c, int) const override {
    const int to = (c.rank + 1) % c.ranks;
    const int from = (c.rank + c.ranks - 1) % c.ranks;
    if (const ncclResult_t r = ncclGroupStart(); r != ncclSuccess) return r;
    const ncclResult_t sent = ncclSend(c.send, c.count, c.type->nccl, to, c.comm, nullptr);
    const ncclResult_t received = ncclRecv(c.recv, c.count, c.type->nccl, from, c.comm, nullptr);
    const ncclResult_t ended = ncclGroupEnd();
    return sent != ncclSuccess ? sent : received != ncclSuccess ? received : ended;
  }
};

}  // namespace

Collective& collective() {
  static SendRecv instance;
  return instance;
}

}  // namespace tessera::perf
