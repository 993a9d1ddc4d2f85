// One process: built where MPI is not found.
#include <cstdlib>
#include <cstring>

#include "common/outcome.h"
#include "common/world.h"

namespace tessera::perf {
namespace {

class SingleWorld final : public World {
 public:
  void group_broadcast(void*, size_t) override {}
  void gather(const void* mine, size_t bytes, void* all) override { std::memcpy(all, mine, bytes); }
  void barrier() override {}
  void quiet_barrier() override {}
  void combine(std::span<double>, Combine) override {}
  void abort(int code) override { std::_Exit(code); }
  void finish() override {}
  const void* mpi_communicator() const override { return nullptr; }
};

}  // namespace

std::unique_ptr<World> start_world(int*, char***, bool wants_mpi) {
  if (wants_mpi) fail(kNotImplemented, "--baseline mpi: this program was built without MPI");
  return std::make_unique<SingleWorld>();
}

}  // namespace tessera::perf
