#include "sync/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tessera {
namespace {

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool register_for_barriers() {
  membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

bool has_global_barrier() {
  static const bool has = [] {
    const long commands = membarrier(MEMBARRIER_CMD_QUERY);
    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
  }();
  return has;
}

void global_barrier() {
  if (has_global_barrier()) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

bool process_barrier() { return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0; }

}  // namespace tessera
