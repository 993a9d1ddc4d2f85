#include "transports/net_plugin/buffers.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/error_text.h"

namespace tessera::net_plugin {

Status Buffers::open(void* connection, size_t message_bytes, const std::string& peer) {
  // Whole pages: what is registered may be kept from being shared with children.
  void* memory = ::mmap(nullptr, kMessages * message_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Status::error(Code::kSystem, "no {} bytes for messages of {}: {}",
                         kMessages * message_bytes, peer, error_text(errno));
  }
  memory_ = static_cast<std::byte*>(memory);
  message_bytes_ = message_bytes;
  const Outcome outcome = network_.driver().register_memory(
      connection, memory, kMessages * message_bytes, registration_);
  if (outcome == 0) connection_ = connection;
  return outcome == 0 ? Status() : network_.failure("regMr", outcome, peer);
}

void Buffers::deregister() {
  if (connection_ != nullptr) network_.driver().deregister_memory(connection_, registration_);
  connection_ = nullptr;
}

Buffers::~Buffers() {
  if (memory_ != nullptr) ::munmap(memory_, kMessages * message_bytes_);
}

}  // namespace tessera::net_plugin
