// The connection to one peer: a port over one or more sockets.
//
// Sending: frames are numbered; small ones take the first living socket, large puts are cut in
// stripes, each of which takes the socket with the least to do, in turn where several have nothing.
//
// Losing a rail: where the sockets lie on several rails, the sender keeps every frame in mind until
// the receiver has acknowledged it, its bytes in the shadow; when a socket dies, what is not
// acknowledged of it goes over the others. The receiver knows by the numbers what it has already.
// A rail that is back (reunion.h) takes part again: its sockets are new, the numbers go on.
// With one rail a dead socket is a dead peer, and none of this is done.
// Thread safety: one thread, that of the engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/port.h"
#include "transports/tcp/arrivals.h"
#include "transports/tcp/links.h"

namespace tessera::tcp {

bool over_several_rails(const std::vector<std::unique_ptr<Link>>& sockets);

class TcpPort final : public Port, public FrameSink {
 public:
  // Of rank `own`. `name` is the peer's, for messages: "rank 3 (host b)". At least one link.
  TcpPort(Links& links, Landing& landing, int own, int peer, std::string name,
          std::vector<std::unique_ptr<Link>> sockets);

  void put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes) override;
  void signal(const PortSignal& signal) override;

  Verdict place(const FrameHeader& header, std::byte*& place) override;
  bool arrived(const FrameHeader& header) override;
  bool superseded(const FrameHeader& header) const override;

  // Queues an acknowledgement, if one is due. True if so.
  bool acknowledge();
  // All that was posted is acknowledged, where that counts.
  bool settled() const { return kept_.size() == kept_from_; }
  // A socket has died. The port lives on over other rails, or closes.
  void lost(Link& link, const std::string& why);
  // The peer shares a new socket in place of one of sockets(). The old one is dead, or the peer
  // holds it for dead; what was not acknowledged of it is sent again. False: the new one is lost.
  bool replace(Link& link, Fd fd, std::string route, std::chrono::milliseconds timeout);
  // A call has ended with an error: frames keep copies of what they have of user memory.
  void retract();
  // What the peer sent makes no sense: closes.
  void refused(const Link& link, const FrameHeader& header);

  int peer() const { return peer_; }
  bool closed() const { return first_ == nullptr; }
  bool on_several_rails() const { return several_rails_; }
  const std::vector<std::unique_ptr<Link>>& sockets() const { return sockets_; }

 private:
  // A frame that is not acknowledged, and the socket that it took.
  struct Kept {
    FrameHeader header;
    const std::byte* data;
    Link* link;
  };

  void put_stripe(Link& link, uint64_t position, const std::byte* data, std::byte* shadow,
                  size_t bytes);
  void post(Link& link, FrameHeader header, const std::byte* data, bool stays);
  Link* first_alive() const;
  Link* least_busy();
  bool drop_acknowledged(uint64_t number);
  void choose_patience();
  void send_again(const Link& dead);
  void close(const Status& why);

  Links& links_;
  Landing& landing_;
  const int own_;
  const int peer_;
  const std::string name_;
  std::vector<std::unique_ptr<Link>> sockets_;
  const bool several_rails_;
  Arrivals arrivals_;
  uint64_t posted_ = 0;        // number of the latest frame
  uint64_t told_ = 0;          // what the peer knows to be complete here
  uint64_t acknowledged_ = 0;  // what is complete there
  std::vector<Kept> kept_;     // from kept_from_ on: frames acknowledged_ + 1 to posted_
  size_t kept_from_ = 0;
  OwnedBytes owned_;
  Link* first_ = nullptr;  // for small frames; null: closed
  size_t turn_ = 0;        // the socket that is looked at first for the next stripe
};

}  // namespace tessera::tcp
