// All sockets of an engine: which have something to send, which are full, which are ready.
//
// Thread safety: one thread.
#pragma once

#include <sys/epoll.h>

#include <span>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "transports/tcp/link.h"

namespace tessera::tcp {

class Links {
 public:
  // kSystem.
  Status open();
  // The link must stay until remove().
  Status add(Link& link);
  // Closes its socket without further talk: the peer's unread bytes are of no use any more.
  void remove(Link& link);

  // The link's queue has got something: flush() will send it.
  void list(Link& link);
  // Sends now unless the link is full. True if bytes left.
  bool send(Link& link);
  bool flush();

  // Sockets that can be read or, if they were full, written. Takes no time.
  std::span<const epoll_event> ready();
  // A full link can be written again: sends. True if bytes left.
  bool resume(Link& link);

  // The kernel has taken everything, and has given back all pages that it did not copy.
  bool all_sent() const { return unsent_.empty() && uncopied_ == 0; }
  bool any_uncopied() const { return uncopied_ > 0; }
  // Takes in which pages of the link's the kernel has given back.
  void settle(Link& link);
  bool any_blocked() const { return blocked_ > 0; }
  // Links whose sending failed since the last call.
  std::vector<Link*> take_failed();
  int wait_fd() const { return epoll_.get(); }

 private:
  bool transmit(Link& link);
  void set_blocked(Link& link, bool blocked);

  Fd epoll_;
  std::vector<Link*> unsent_;
  std::vector<Link*> failed_;
  std::vector<epoll_event> events_;
  int blocked_ = 0;
  size_t uncopied_ = 0;  // sends whose pages the kernel holds, of all links
};

}  // namespace tessera::tcp
