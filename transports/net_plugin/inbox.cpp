#include "transports/net_plugin/inbox.h"

#include <cstring>

namespace tessera::net_plugin {

Inbox::Inbox(const Network& network, Landing& landing, int peer, std::string name, void* receiving)
    : network_(network),
      landing_(landing),
      peer_(peer),
      name_(std::move(name)),
      receiving_(receiving),
      buffers_(network) {}

Inbox::~Inbox() {
  buffers_.deregister();
  network_.driver().close_receiving(receiving_);
}

Status Inbox::open(size_t message_bytes, const Token& token) {
  token_ = token;
  if (Status s = buffers_.open(receiving_, message_bytes, name_); !s.ok()) return s;
  return offer();
}

// As many buffers as the plugin takes.
Status Inbox::offer() {
  while (offered_ < taken_ + kMessages) {
    void* request = nullptr;
    const Outcome outcome =
        network_.driver().receive(receiving_, buffers_.at(offered_), buffers_.message_bytes(),
                                  buffers_.registration(), request);
    if (outcome != 0) return network_.failure("irecv", outcome, name_);
    if (request == nullptr) return {};
    requests_[offered_ % kMessages] = request;
    ++offered_;
  }
  return {};
}

Status Inbox::progress(bool& moved) {
  // A bounded share of the time: other peers want to be heard.
  for (size_t i = 0; i < kMessages && !ended_; ++i) {
    if (Status s = offer(); !s.ok()) return s;
    if (taken_ == offered_) return {};
    bool done = false;
    size_t bytes = 0;
    const Outcome outcome = network_.driver().test(requests_[taken_ % kMessages], done, bytes);
    if (outcome != 0) return network_.failure("test", outcome, name_);
    if (!done) return {};
    moved = true;
    if (Status s = take_in(buffers_.at(taken_), bytes); !s.ok()) return s;
    ++taken_;
  }
  return {};
}

Status Inbox::take_in(const std::byte* message, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    FrameHeader header;
    header.mark = 0;
    const size_t left = bytes - at;
    if (left >= sizeof header) std::memcpy(&header, message + at, sizeof header);
    if (header.mark != FrameHeader::kMark || header.bytes > left - sizeof header)
      return refused(header);
    if (!accept(header, message + at + sizeof header)) return refused(header);
    at += sizeof header + header.bytes;
  }
  return {};
}

bool Inbox::accept(const FrameHeader& header, const std::byte* data) {
  if (ended_ || greeted_ == (header.kind == FrameKind::kGreeting)) return false;
  switch (header.kind) {
    case FrameKind::kGreeting:
      greeted_ = Token{header.position, header.value} == token_;
      return greeted_;
    case FrameKind::kPut: {
      std::byte* to = landing_.locate(peer_, header.position, header.bytes);
      if (to == nullptr) return landing_.is_over(peer_, header.position);
      std::memcpy(to, data, header.bytes);
      return true;
    }
    case FrameKind::kSignal:
      return landing_.signalled(peer_, {header.position, header.value, header.fingerprint,
                                        static_cast<PortSignal::Kind>(header.signal_kind)});
    case FrameKind::kEnd:
      ended_ = true;
      return true;
  }
  return false;
}

Status Inbox::refused(const FrameHeader& header) const {
  return Status::error(
      Code::kRemote,
      "{} sent a message through {} that is not allowed: kind {}, position {:#x}, value {}, {} "
      "bytes, mark {:#x}{}. The bytes are damaged, or the ranks do not agree on the call",
      name_, network_.name(), static_cast<int>(header.kind), header.position, header.value,
      header.bytes, header.mark,
      greeted_ ? ""
               : "; it was the first, and does not prove that the sender was asked to connect");
}

}  // namespace tessera::net_plugin
