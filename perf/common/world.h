// The processes of a run. With MPI under a launcher: all of them; else one.
//
// Only the main thread of a process may call members. NCCL_TESTS_SPLIT(_MASK) divide the processes
// into groups that run the test side by side; `group` functions span a group, `all` functions all
// processes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace tessera::perf {

enum class Combine { kFirst, kSum, kMin, kMax };

class World {
 public:
  virtual ~World() = default;

  int process() const { return process_; }  // of all
  int processes() const { return processes_; }
  int local_process() const { return local_process_; }  // among those on this host
  int local_processes() const { return local_processes_; }
  int color() const { return color_; }
  int group_process() const { return group_process_; }
  int group_processes() const { return group_processes_; }

  virtual void group_broadcast(void* data, size_t bytes) = 0;          // from group process 0
  virtual void gather(const void* mine, size_t bytes, void* all) = 0;  // to process 0, in order
  virtual void barrier() = 0;
  // Like barrier, but those who wait sleep: the machine is left to the late ones.
  virtual void quiet_barrier() = 0;
  virtual void combine(std::span<double> values, Combine how) = 0;  // every process gets the result
  [[noreturn]] virtual void abort(int code) = 0;
  virtual void finish() = 0;

  // The group's MPI_Comm; null without MPI.
  virtual const void* mpi_communicator() const = 0;

 protected:
  int process_ = 0, processes_ = 1;
  int local_process_ = 0, local_processes_ = 1;
  int color_ = 0, group_process_ = 0, group_processes_ = 1;
};

// wants_mpi: MPI is needed (a baseline) even without a launcher.
std::unique_ptr<World> start_world(int* argc, char*** argv, bool wants_mpi);

// The group of a process by NCCL_TESTS_SPLIT, NCCL_TESTS_SPLIT_MASK. False: the variable's text is
// wrong (`color` unset).
bool split_color(int process, int* color);

}  // namespace tessera::perf
