// A place in host memory: an address in this process, in another process of this host, or what lies
// behind a port (device/port.h). Other processes' memory is moved by single copies through the
// kernel (process_vm_readv / process_vm_writev); what lies behind a port can only be put to.
// Thread safety: pure values; the moves may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::host {

inline constexpr int kBehindPort = -1;

struct Place {
  uintptr_t address = 0;  // behind a port: the position
  int pid = 0;            // 0: this process

  bool local() const { return pid == 0; }
  void* pointer() const { return reinterpret_cast<void*>(address); }
  Place operator+(size_t bytes) const { return {address + bytes, pid}; }
};

// Moves bytes; at least one side is local. Returns 0, or errno of the kernel's refusal (ESRCH: the
// process is gone; EFAULT: the memory is not there; EPERM: not allowed). A short transfer is
// continued; what was moved before an error stays moved.
int move(Place dst, Place src, size_t bytes);

}  // namespace tessera::host
