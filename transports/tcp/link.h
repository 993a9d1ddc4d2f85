// One connected, authenticated socket between two ranks.
#pragma once

#include <chrono>
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
  int patience = 10;       // the limit of one that has no other rail beside it
  std::string failure;     // why sending failed; what has come is still read

  // After it has died, and left all lists: a new socket of the same rail, with options as set by
  // prepare().
  void renew(Fd socket, std::string new_route);
};

// The limit of a rail beside others, at most its patience: the others go on.
inline constexpr int kMaxSilenceOfOneOfSeveral = 3;

// Sets patience, and the options of the socket: no wait of the user is to last beyond `timeout`.
void prepare(Link& link, std::chrono::milliseconds timeout);

}  // namespace tessera::tcp
