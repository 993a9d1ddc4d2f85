// Sending without a copy in the kernel (MSG_ZEROCOPY): the socket's packets refer to the sender's
// pages until the peer has acknowledged them; the kernel tells then, through the socket's error
// queue, by ranges of numbers of such sends.
//
//   send 0, send 1, send 2  -->  [0, 1] given back  -->  [2, 2] given back, but copied after all
//
// Where packets stay on this machine (loopback, virtual interfaces) the kernel copies all the same,
// and says so: it is not asked again for that socket.
//
// Thread safety: one thread.
// Source: Linux, Documentation/networking/msg_zerocopy.rst.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::tcp {

class ZeroCopy {
 public:
  // Below, pinning pages and hearing of them costs more than a copy.
  static constexpr size_t kFrom = 64 * 1024;

  // For sends on this socket. Stays off where the kernel has no such thing.
  void enable(int fd);
  bool worth(size_t bytes) const { return on_ && bytes >= kFrom; }

  void sent() { ++pending_; }
  // The kernel has no room to remember more: plain sends from now on.
  void give_up() { on_ = false; }

  // Sends whose pages the kernel still holds.
  size_t pending() const { return pending_; }
  // Takes in what the kernel has told meanwhile.
  void settle(int fd);
  // Sends `first` to `last` are over.
  void over(uint32_t first, uint32_t last, bool copied);

 private:
  bool on_ = false;
  size_t pending_ = 0;
};

}  // namespace tessera::tcp
