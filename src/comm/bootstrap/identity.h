// Who a process is, so that others can tell whether they share memory with it, and whether it is
// still the same one. Read anew at every call: a fork changes the answers.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/bootstrap.h"

namespace tessera::bootstrap {

uint64_t own_pid_namespace();

// Names a process of one host for all time: pids are reused, pids with their start time are not.
uint64_t process_token(int pid, uint64_t pid_namespace, uint64_t start_time);

struct ProcessState {
  uint64_t start_time = 0;  // clock ticks since boot
  bool ended = false;       // a zombie
  bool stopped = false;     // by a signal, or by who traces it
};

// What /proc says of a pid of the own namespace; nothing when there is no such process. No
// allocation.
std::optional<ProcessState> look_at_process(int pid);

// The calling process as `rank`; socket_name is left to the caller. `host_id` stands for the host,
// if it is not empty (NCCL_HOSTID).
Member describe_self(int rank, const std::string& host_id = "");

}  // namespace tessera::bootstrap
