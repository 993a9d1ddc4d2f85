#include "transports/net_plugin/outbox.h"

#include <algorithm>
#include <cstring>

namespace tessera::net_plugin {
namespace {

// A put is not cut to less than that, to fill a message up.
constexpr size_t kLeastPiece = 512;

}  // namespace

Outbox::Outbox(const Network& network, std::string peer, void* sending)
    : network_(network), peer_(std::move(peer)), sending_(sending), buffers_(network) {}

Status Outbox::open(size_t message_bytes, const Token& token) {
  if (Status s = buffers_.open(sending_, message_bytes, peer_); !s.ok()) return s;
  FrameHeader greeting;
  greeting.kind = FrameKind::kGreeting;
  greeting.position = token[0];
  greeting.value = token[1];
  post(greeting);
  return {};
}

void Outbox::seal() {
  if (used_ == 0) return;
  sizes_[tail_ % kMessages] = used_;
  ++tail_;
  used_ = 0;
}

bool Outbox::make_room(size_t bytes) {
  const size_t wanted = sizeof(FrameHeader) + std::min(bytes, kLeastPiece);
  if (used_ + wanted > buffers_.message_bytes()) seal();
  return tail_ - left_ < kMessages;
}

void Outbox::append(const FrameHeader& header, const std::byte* data) {
  std::byte* to = buffers_.at(tail_) + used_;
  std::memcpy(to, &header, sizeof header);
  if (data != nullptr) std::memcpy(to + sizeof header, data, header.bytes);
  used_ += sizeof header + header.bytes;
}

// As much as there is room for; returns how much that was.
size_t Outbox::append_put(uint64_t position, const std::byte* data, size_t bytes) {
  size_t done = 0;
  while (done < bytes && make_room(bytes - done)) {
    FrameHeader header;
    header.position = position + done;
    header.bytes = static_cast<uint32_t>(
        std::min(bytes - done, buffers_.message_bytes() - used_ - sizeof header));
    append(header, data + done);
    done += header.bytes;
    // The plugin works on a full message while the next is filled.
    bool moved = false;
    if (buffers_.message_bytes() - used_ < sizeof header) seal();
    if (tail_ != given_) give(moved);
  }
  return done;
}

void Outbox::put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes) {
  size_t done = waiting_.empty() ? append_put(position, data, bytes) : 0;
  if (done == bytes) return;
  if (data != shadow) std::memcpy(shadow + done, data + done, bytes - done);
  while (done < bytes) {  // a frame that waits may be longer than a message, but has its limits
    FrameHeader header;
    header.position = position + done;
    header.bytes = static_cast<uint32_t>(std::min<size_t>(bytes - done, 1U << 30));
    waiting_.push_back({header, shadow + done});
    done += header.bytes;
  }
}

void Outbox::signal(const PortSignal& signal) {
  FrameHeader header;
  header.kind = FrameKind::kSignal;
  header.position = signal.position;
  header.value = signal.value;
  header.fingerprint = signal.fingerprint;
  header.signal_kind = static_cast<uint8_t>(signal.kind);
  post(header);
}

void Outbox::end() {
  FrameHeader header;
  header.kind = FrameKind::kEnd;
  post(header);
}

void Outbox::post(const FrameHeader& header) {
  if (waiting_.empty() && make_room(0)) {
    append(header, nullptr);
  } else {
    waiting_.push_back({header, nullptr});
  }
}

void Outbox::take_waiting() {
  while (first_waiting_ < waiting_.size()) {
    auto& [header, data] = waiting_[first_waiting_];
    if (header.kind == FrameKind::kPut) {
      const size_t done = append_put(header.position, data, header.bytes);
      header.position += done;
      header.bytes -= static_cast<uint32_t>(done);
      data += done;
      if (header.bytes > 0) return;
    } else {
      if (!make_room(0)) return;
      append(header, nullptr);
    }
    ++first_waiting_;
  }
  waiting_.clear();
  first_waiting_ = 0;
}

void Outbox::give(bool& moved) {
  const Driver& driver = network_.driver();
  while (given_ < tail_ && failure_.ok()) {
    void* request = nullptr;
    const size_t slot = given_ % kMessages;
    const Outcome outcome =
        driver.send(sending_, buffers_.at(given_), sizes_[slot], buffers_.registration(), request);
    if (outcome != 0) failure_ = network_.failure("isend", outcome, peer_);
    if (outcome != 0 || request == nullptr) return;
    requests_[slot] = request;
    ++given_;
    moved = true;
  }
}

Status Outbox::progress(bool& moved) {
  while (left_ < given_ && failure_.ok()) {
    bool done = false;
    size_t bytes = 0;
    const Outcome outcome = network_.driver().test(requests_[left_ % kMessages], done, bytes);
    if (outcome != 0) failure_ = network_.failure("test", outcome, peer_);
    if (outcome != 0 || !done) break;
    ++left_;
    moved = true;
  }
  take_waiting();
  seal();
  give(moved);
  return failure_;
}

Outbox::~Outbox() {
  buffers_.deregister();
  network_.driver().close_sending(sending_);
}

}  // namespace tessera::net_plugin
