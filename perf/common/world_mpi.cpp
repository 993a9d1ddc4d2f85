#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/outcome.h"
#include "common/world.h"

namespace tessera::perf {
namespace {

bool under_launcher() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "MPI_LOCALNRANKS"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

class MpiWorld final : public World {
 public:
  MpiWorld(int* argc, char*** argv, bool start) : started_(start) {
    if (!started_) {
      place();
      return;
    }
    int provided = 0;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &process_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes_);
    find_neighbours();
    place();
    MPI_Comm_split(MPI_COMM_WORLD, color_, process_, &group_);
    MPI_Comm_rank(group_, &group_process_);
    MPI_Comm_size(group_, &group_processes_);
  }

  void group_broadcast(void* data, size_t bytes) override {
    if (started_) MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, group_);
  }

  void gather(const void* mine, size_t bytes, void* all) override {
    if (!started_) {
      std::memcpy(all, mine, bytes);
      return;
    }
    const int count = static_cast<int>(bytes);
    MPI_Gather(mine, count, MPI_BYTE, all, count, MPI_BYTE, 0, MPI_COMM_WORLD);
  }

  void barrier() override {
    if (processes_ > 1) MPI_Barrier(MPI_COMM_WORLD);
  }

  void quiet_barrier() override {
    if (processes_ == 1) return;
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done == 0) usleep(1000);
    }
  }

  void combine(std::span<double> values, Combine how) override {
    if (processes_ == 1) return;
    const int count = static_cast<int>(values.size());
    if (how == Combine::kFirst) {
      MPI_Bcast(values.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      return;
    }
    const MPI_Op op = how == Combine::kSum ? MPI_SUM : how == Combine::kMin ? MPI_MIN : MPI_MAX;
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_DOUBLE, op, MPI_COMM_WORLD);
  }

  void abort(int code) override {
    // Ends the sibling processes, which may be waiting for this one.
    if (processes_ > 1) MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

  void finish() override {
    if (!started_) return;
    MPI_Comm_free(&group_);
    MPI_Finalize();
  }

  const void* mpi_communicator() const override { return started_ ? &group_ : nullptr; }

 private:
  void find_neighbours() {
    char name[256] = {};
    std::strncpy(name, host_name().c_str(), sizeof(name) - 1);
    std::vector<char> names(sizeof(name) * static_cast<size_t>(processes_));
    MPI_Allgather(name, sizeof(name), MPI_BYTE, names.data(), sizeof(name), MPI_BYTE,
                  MPI_COMM_WORLD);
    local_processes_ = 0;
    for (int p = 0; p < processes_; ++p) {
      if (std::strcmp(&names[sizeof(name) * static_cast<size_t>(p)], name) != 0) continue;
      if (p == process_) local_process_ = local_processes_;
      ++local_processes_;
    }
  }

  void place() {
    if (!split_color(process_, &color_)) {
      fail(kBadArguments,
           "NCCL_TESTS_SPLIT: AND, OR, MOD or DIV and a number are expected; "
           "NCCL_TESTS_SPLIT_MASK: a "
           "hexadecimal number");
    }
  }

  bool started_;
  MPI_Comm group_ = MPI_COMM_NULL;
};

}  // namespace

std::unique_ptr<World> start_world(int* argc, char*** argv, bool wants_mpi) {
  return std::make_unique<MpiWorld>(argc, argv, wants_mpi || under_launcher());
}

}  // namespace tessera::perf
