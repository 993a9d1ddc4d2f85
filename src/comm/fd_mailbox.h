// Passes file descriptors between ranks of one host: an abstract Unix datagram socket per rank and
// communicator.
//
// A message is {secret, sender rank, tag} and one descriptor. Messages with a wrong secret are
// dropped and their descriptor closed. receive() keeps messages with other tags until they are
// asked for; equal ones come in the order they were sent. A full queue at the receiver is waited
// for (with deadline), while own incoming messages are drained, so that all-to-all exchanges cannot
// deadlock. All descriptors are close-on-exec. Thread safety: one thread at a time per object.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/status.h"

namespace tessera {

class FdMailbox {
 public:
  // Binds a fresh random name. The secret may be set later, before the first send or receive.
  static Result<std::unique_ptr<FdMailbox>> create();
  ~FdMailbox();
  FdMailbox(const FdMailbox&) = delete;
  FdMailbox& operator=(const FdMailbox&) = delete;

  const std::string& name() const { return name_; }
  void set_secret(const std::array<uint8_t, 16>& secret, int own_rank);

  // The descriptor stays the caller's. kRemote: nobody has that socket any more; kTimeout: its
  // queue stayed full.
  Status send(const std::string& to, int fd, uint64_t tag, Deadline deadline);
  // Waits for a message of rank `from` with `tag`.
  Result<Fd> receive(int from, uint64_t tag, Deadline deadline);

 private:
  struct Message;

  FdMailbox(Fd socket, std::string name);
  Fd take(int from, uint64_t tag);  // from kept_; not valid: none
  Status drain();
  Status wait_for_room(const std::string& to, int error, Deadline deadline);

  Fd socket_;
  std::string name_;
  std::array<uint8_t, 16> secret_{};
  int rank_ = -1;
  std::vector<Message> kept_;
};

}  // namespace tessera
