// What a rank sends to one peer: frames are gathered in message buffers, which the plugin sends in
// order. What finds no buffer waits in its shadow.
//
//   posted --> buffer being filled --> sealed --> given to the plugin --> sent
//         \--> waiting (bytes in their shadows) --^
//
// Thread safety: one thread. No allocation once as many frames have waited as ever do.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "device/port.h"
#include "transports/net_plugin/buffers.h"

namespace tessera::net_plugin {

class Outbox {
 public:
  // `peer`: "rank 3 (host b)". Over `sending`, a connection of the plugin, which it closes.
  Outbox(const Network& network, std::string peer, void* sending);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // `token`: what the peer wants to see first.
  Status open(size_t message_bytes, const Token& token);

  // As Port's.
  void put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes);
  void signal(const PortSignal& signal);
  // The last that is posted: tells the peer that nothing comes any more.
  void end();

  // Sends as much as goes. `moved` becomes true if a message was given to the plugin or left.
  Status progress(bool& moved);
  // Everything posted has left.
  bool flushed() const { return left_ == tail_ && used_ == 0 && waiting_.empty(); }

 private:
  struct Waiting {
    FrameHeader header;
    const std::byte* data;
  };

  // Room for a header and some bytes of a put, or for nothing.
  bool make_room(size_t bytes);
  void append(const FrameHeader& header, const std::byte* data);
  size_t append_put(uint64_t position, const std::byte* data, size_t bytes);
  void post(const FrameHeader& header);
  void take_waiting();
  void seal();
  void give(bool& moved);

  const Network& network_;
  const std::string peer_;
  void* const sending_;
  Buffers buffers_;
  // Numbers of messages: left_ <= given_ <= tail_, the one that is being filled.
  uint64_t left_ = 0, given_ = 0, tail_ = 0;
  size_t used_ = 0;  // bytes of it
  std::array<void*, kMessages> requests_{};
  std::array<size_t, kMessages> sizes_{};
  std::vector<Waiting> waiting_;  // from first_waiting_ on
  size_t first_waiting_ = 0;
  Status failure_;
};

}  // namespace tessera::net_plugin
