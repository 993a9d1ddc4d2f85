#include "device/host/place.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "device/host/copy.h"

namespace tessera::host {
namespace {

// The kernel moves at most about 2 GiB per call.
constexpr size_t kMostPerCall = size_t{1} << 30;

}  // namespace

int move(Place dst, Place src, size_t bytes) {
  if (dst.local() && src.local()) {
    copy(dst.pointer(), src.pointer(), bytes);
    return 0;
  }
  if (!dst.local() && !src.local()) return EINVAL;
  while (bytes > 0) {
    const size_t part = std::min(bytes, kMostPerCall);
    const Place& mine = dst.local() ? dst : src;
    const Place& theirs = dst.local() ? src : dst;
    const iovec local{mine.pointer(), part};
    const iovec remote{theirs.pointer(), part};
    const ssize_t moved = dst.local() ? process_vm_readv(theirs.pid, &local, 1, &remote, 1, 0)
                                      : process_vm_writev(theirs.pid, &local, 1, &remote, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved < 0 ? errno : EFAULT;
    dst.address += static_cast<size_t>(moved);
    src.address += static_cast<size_t>(moved);
    bytes -= static_cast<size_t>(moved);
  }
  return 0;
}

}  // namespace tessera::host
