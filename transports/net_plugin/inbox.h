// What comes from one peer: buffers stand ready in the plugin for its next messages; the frames of a
// message that has come are stored where they belong, and its buffer stands ready again.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <string>

#include "device/port.h"
#include "transports/net_plugin/buffers.h"

namespace tessera::net_plugin {

class Inbox {
 public:
  // `name`: of the peer, "rank 3 (host b)". Over `receiving`, a connection of the plugin, which it
  // closes.
  Inbox(const Network& network, Landing& landing, int peer, std::string name, void* receiving);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // `token`: what must come first.
  Status open(size_t message_bytes, const Token& token);

  // Takes in what has come; `moved` becomes true if that was anything.
  Status progress(bool& moved);
  // The token has come: the sender is who was told to connect.
  bool greeted() const { return greeted_; }
  // The peer has said that nothing more comes.
  bool ended() const { return ended_; }

 private:
  Status offer();
  Status take_in(const std::byte* message, size_t bytes);
  bool accept(const FrameHeader& header, const std::byte* data);
  Status refused(const FrameHeader& header) const;

  const Network& network_;
  Landing& landing_;
  const int peer_;
  const std::string name_;
  void* const receiving_;
  Buffers buffers_;
  Token token_{};
  bool greeted_ = false, ended_ = false;
  uint64_t taken_ = 0, offered_ = 0;  // messages
  std::array<void*, kMessages> requests_{};
};

}  // namespace tessera::net_plugin
