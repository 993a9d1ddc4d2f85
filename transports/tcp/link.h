// One connected, authenticated socket between two ranks.
#pragma once

#include <string>

#include "base/fd.h"
#include "transports/tcp/frame_reader.h"
#include "transports/tcp/send_queue.h"
#include "transports/tcp/zero_copy.h"

namespace tessera::tcp {

class TcpPort;

struct Link {
  Fd fd;
  int rail = 0;       // sockets of one rail share a path and its fate
  std::string route;  // "10.0.0.1:4711 to 10.0.0.2:4712", for messages

  TcpPort* port = nullptr;
  SendQueue queue;
  ZeroCopy zero_copy;
  FrameReader reader;
  bool alive = true;
  bool listed = false;     // among those with something to send
  bool blocked = false;    // the kernel takes no more until the peer reads
  int silent_seconds = 0;  // without any sign of life while one was due
  int silence_limit = 10;  // then it counts as dead
  int patience = 10;       // the same once it has no other rail beside it
  std::string failure;     // why sending failed; what has come is still read
};

}  // namespace tessera::tcp
