// The message buffers of one connection, in memory that is registered with the plugin.
//
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <string>

#include "transports/net_plugin/message.h"
#include "transports/net_plugin/network.h"

namespace tessera::net_plugin {

class Buffers {
 public:
  explicit Buffers(const Network& network) : network_(network) {}
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // For messages of up to `message_bytes` through `connection`, which stays open longer. `peer`: for
  // texts. kSystem, kRemote.
  Status open(void* connection, size_t message_bytes, const std::string& peer);
  // Before the connection is closed; the memory stays until after that.
  void deregister();

  size_t message_bytes() const { return message_bytes_; }
  // Of the message with that number.
  std::byte* at(uint64_t number) const { return memory_ + number % kMessages * message_bytes_; }
  void* registration() const { return registration_; }

 private:
  const Network& network_;
  void* connection_ = nullptr;
  std::byte* memory_ = nullptr;
  size_t message_bytes_ = 0;
  void* registration_ = nullptr;
};

}  // namespace tessera::net_plugin
