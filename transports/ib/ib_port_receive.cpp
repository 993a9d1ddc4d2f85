// The receiving side of a port, and what completions say.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/ib/ib_port.h"

namespace tessera::ib {

bool IbPort::uses(size_t device) const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [&](const Lane& lane) { return lane.device == device; });
}

bool IbPort::post_receive(uint32_t buffer) {
  const Lane& lane = lanes_.front();
  if (!lane.pair->receive(request_id(peer_, 0, true, buffer), receive_buffer(buffer), kMessageBytes,
                          buffer_registration_->keys[lane.device]->lkey))
    return false;
  ++receives_posted_;
  return true;
}

bool IbPort::completed(const ibv_wc& completion) {
  const auto index = static_cast<uint32_t>(completion.wr_id & 0xffff);
  const bool receive = (completion.wr_id >> 16 & 1) != 0;
  const bool ok = completion.status == IBV_WC_SUCCESS;
  if (receive) --receives_posted_;
  if (!ok) {
    if (active() && broken_.empty()) broken_ = describe(completion);
    return false;
  }
  if (state_ == State::kSpare || state_ == State::kClosed) return false;
  if (receive) {
    if (said_farewell_) return false;
    const bool good = take_message(receive_buffer(index), completion.byte_len);
    if (good && active() && !post_receive(index))
      broken_ = fmt::format("a receive cannot be posted: {}", std::strerror(errno));
    return good;
  }
  Sent& sent = sent_.at(index);
  if (sent.done) return false;
  sent.done = true;
  if (sent.message == 0 && (completion.wr_id >> 24 & 0xff) != 0) --side_writes_;
  release(sent);
  sent_.drop_done();
  return true;
}

// False: the peer has sent what it may not, and the port is closed.
bool IbPort::take_message(const std::byte* message, size_t bytes) {
  MessageHeader header;
  if (state_ == State::kClosed || bytes < sizeof header) return false;
  std::memcpy(&header, message, sizeof header);
  peer_taken_ = std::max(peer_taken_, header.taken);
  size_t at = sizeof header;
  while (at + sizeof(Frame) <= std::min<size_t>(bytes, header.bytes)) {
    Frame frame;
    std::memcpy(&frame, message + at, sizeof frame);
    at += sizeof frame;
    if (frame.bytes > bytes - at || !take_frame(frame, message + at)) {
      refuse(frame);
      return false;
    }
    at += padded(frame.bytes);
  }
  ++taken_;
  return true;
}

bool IbPort::take_frame(const Frame& frame, const std::byte* bytes) {
  switch (frame.kind) {
    case FrameKind::kPut: {
      std::byte* place = landing_.locate(peer_, frame.position, frame.bytes);
      if (place == nullptr) return landing_.is_over(peer_, frame.position);
      std::memcpy(place, bytes, frame.bytes);
      return true;
    }
    case FrameKind::kSignal:
      return landing_.signalled(peer_, {frame.position, frame.value, frame.fingerprint,
                                        static_cast<PortSignal::Kind>(frame.signal_kind)});
    case FrameKind::kAsk:
      return answer(frame);
    case FrameKind::kGrant: {
      GrantKeys keys;
      if (frame.bytes != sizeof keys) return false;
      std::memcpy(&keys, bytes, sizeof keys);
      granted(frame, keys);
      return true;
    }
    case FrameKind::kDone:
      done(frame.value);
      return true;
  }
  return false;
}

// Of the communicator's memory more is granted than was asked for, if the peer may write it.
bool IbPort::answer(const Frame& ask) {
  const bool user = ask.position >= kUserMemory;
  Frame frame;
  frame.kind = FrameKind::kGrant;
  frame.position = ask.position;
  frame.bytes = sizeof(GrantKeys);
  GrantKeys keys;
  keys.question = ask.fingerprint;
  std::byte* at = landing_.locate(peer_, ask.position, ask.value);
  // Without a key what comes for a call that is over travels in messages, and is dropped.
  if (at == nullptr && !landing_.is_over(peer_, ask.position)) return false;
  Registration* registration =
      at == nullptr
          ? nullptr
          : registrations_.acquire(at, ask.value, user ? Life::kCall : Life::kCommunicator);
  if (registration != nullptr) {
    frame.value = reinterpret_cast<uint64_t>(at);
    frame.fingerprint = ask.value;
    for (size_t i = 0; i < lanes_.size(); ++i)
      keys.keys[i] = registration->keys[lanes_[i].device]->rkey;
    const auto before = static_cast<uint64_t>(at - registration->begin);
    if (user) {
      granted_.push_back({ask.fingerprint, registration});
    } else if (before <= ask.position &&
               landing_.locate(peer_, ask.position - before, registration->bytes) == at - before) {
      frame.position -= before;
      frame.value -= before;
      frame.fingerprint = registration->bytes;
    }
  }
  answers_.push_back(frame);
  answer_keys_.push_back(keys);
  return true;
}

void IbPort::granted(const Frame& frame, const GrantKeys& keys) {
  const bool user = frame.position >= kUserMemory, refused = frame.fingerprint == 0;
  const Grant grant{frame.fingerprint, frame.value, keys.keys};
  if (!user && refused) arena_refused_ = true;
  if (!user && !refused) grants_.insert_or_assign(frame.position, grant);
  for (size_t i = 0; i < queue_.size(); ++i) {
    Post& post = queue_.at(i);
    if (post.question != keys.question) continue;
    if (!user || refused) post.question = 0;
    if (refused) post.by_messages = true;
    if (user) post.grant = grant;
    return;
  }
  if (!user || refused) return;
  Frame unused;  // the put was taken back meanwhile
  unused.kind = FrameKind::kDone;
  unused.value = keys.question;
  answers_.push_back(unused);
}

void IbPort::done(uint64_t question) {
  const auto found = std::find_if(granted_.begin(), granted_.end(), [&](const Granted& granted) {
    return granted.question == question;
  });
  if (found == granted_.end()) return;
  registrations_.release(found->registration);
  granted_.erase(found);
}

}  // namespace tessera::ib
