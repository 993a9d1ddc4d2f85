// The sending side; see ib_port_receive.cpp and ib_port_failure.cpp for the rest.
#include "transports/ib/ib_port.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera::ib {

IbPort::IbPort(Landing& landing, Registrations& registrations, Port& spare, int own, int peer,
               std::string name, std::vector<Lane> lanes)
    : landing_(landing),
      registrations_(registrations),
      spare_(spare),
      own_(own),
      peer_(peer),
      name_(std::move(name)),
      lanes_(std::move(lanes)) {}

IbPort::~IbPort() {
  lanes_.clear();  // before the buffers
  if (buffer_registration_ != nullptr) registrations_.release(buffer_registration_);
}

Status IbPort::open() {
  constexpr size_t kBytes = 2 * kBuffers * kMessageBytes;
  buffers_ = std::make_unique<std::byte[]>(kBytes);
  buffer_registration_ = registrations_.acquire(buffers_.get(), kBytes, Life::kMessages);
  if (buffer_registration_ == nullptr)
    return Status::error(Code::kSystem, "ib: message buffers for {} cannot be registered", name_);
  for (uint32_t i = 0; i < kBuffers; ++i) {
    if (!post_receive(i))
      return Status::error(Code::kSystem, "ib: no receives for {}: {}", name_,
                           std::strerror(errno));
  }
  return {};
}

uint64_t IbPort::request_id(int peer, size_t lane, bool receive, uint32_t index) {
  return static_cast<uint64_t>(peer) << 32 | static_cast<uint64_t>(lane) << 24 |
         static_cast<uint64_t>(receive) << 16 | index;
}

void IbPort::put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes) {
  if (bytes == 0 || state_ == State::kClosed) return;
  if (state_ == State::kSpare) return spare_.put(position, data, shadow, bytes);
  Frame frame;
  frame.position = position;
  frame.value = bytes;
  const bool small = bytes <= kMostFrameBytes;
  if (small) {
    frame.bytes = static_cast<uint32_t>(bytes);
    if (active() && queue_.empty() && append(frame, data)) return;
  }
  if (data != shadow) std::memcpy(shadow, data, bytes);
  Post post;
  post.frame = frame;
  post.data = shadow;
  Post& posted = queue_.push(post);
  if (small || !active()) return;
  uint64_t offset;
  if (grant_at(posted, position, offset) == nullptr) ask(posted);
  pump();
}

void IbPort::signal(const PortSignal& signal) {
  if (state_ == State::kClosed) return;
  if (state_ == State::kSpare) return spare_.signal(signal);
  Frame frame;
  frame.position = signal.position;
  frame.value = signal.value;
  frame.fingerprint = signal.fingerprint;
  frame.kind = FrameKind::kSignal;
  frame.signal_kind = static_cast<uint8_t>(signal.kind);
  if (active() && queue_.empty() && append(frame, nullptr)) return;
  Post post;
  post.frame = frame;
  queue_.push(post);
}

bool IbPort::pump() {
  if (!active()) return false;
  if (!broken_.empty()) {
    fail(broken_);
    return false;
  }
  bool moved = false;
  while (!answers_.empty()) {
    const bool keys = answers_.front().kind == FrameKind::kGrant;
    if (!append(answers_.front(), keys ? &answer_keys_.front() : nullptr)) break;
    answers_.erase(answers_.begin());
    if (keys) answer_keys_.erase(answer_keys_.begin());
  }
  while (!queue_.empty() && push(queue_.at(0))) {
    finish(queue_.at(0));
    queue_.pop();
    moved = true;
  }
  if (open_bytes_ > 0 && post_message()) moved = true;
  if (open_bytes_ == 0 && taken_ - told_ >= kWindow / 2 && open_message(kBuffers)) post_message();
  return moved;
}

// `limit`: of messages on their way.
bool IbPort::open_message(uint64_t limit) {
  if (messages_ - peer_taken_ >= limit) return false;
  // The device may still read what was in the buffer.
  for (uint64_t i = sent_.first(); i < sent_.last(); ++i) {
    const Sent& sent = sent_.at(i);
    if (sent.message == 0 || sent.done) continue;
    if (sent.message + kBuffers <= messages_ + 1) return false;
    break;
  }
  ++messages_;
  open_bytes_ = sizeof(MessageHeader);
  return true;
}

bool IbPort::append(const Frame& frame, const void* bytes) {
  const size_t room = sizeof frame + padded(frame.bytes);
  if (open_bytes_ > 0 && kMessageBytes - open_bytes_ < room && !post_message()) return false;
  if (open_bytes_ == 0 && !open_message(kWindow)) return false;
  std::byte* at = send_buffer(messages_) + open_bytes_;
  std::memcpy(at, &frame, sizeof frame);
  if (frame.bytes > 0) std::memcpy(at + sizeof frame, bytes, frame.bytes);
  open_bytes_ += room;
  return true;
}

bool IbPort::post_message() {
  if (side_writes_ > 0 || sent_.full() || !broken_.empty()) return false;
  std::byte* at = send_buffer(messages_);
  MessageHeader header;
  header.taken = told_ = taken_;
  header.bytes = static_cast<uint32_t>(open_bytes_);
  std::memcpy(at, &header, sizeof header);
  Sent sent;
  sent.message = messages_;
  sent.bytes = open_bytes_;
  const uint32_t index = sent_.push(sent);
  open_bytes_ = 0;
  const Lane& lane = lanes_.front();
  if (!lane.pair->send(request_id(peer_, 0, false, index), at, sent.bytes,
                       buffer_registration_->keys[lane.device]->lkey))
    broken_ = fmt::format("a message cannot be posted: {}", std::strerror(errno));
  return broken_.empty();
}

// True once all of it has become requests.
bool IbPort::push(Post& post) {
  if (post.dropped) return true;
  if (post.frame.kind != FrameKind::kPut) return append(post.frame, nullptr);
  if (post.frame.bytes > 0) return append(post.frame, post.data);
  return post.by_messages ? push_in_frames(post) : push_in_writes(post);
}

bool IbPort::push_in_frames(Post& post) {
  while (post.sent < post.frame.value) {
    Frame frame = post.frame;
    frame.position += post.sent;
    frame.value = std::min<uint64_t>(kMostFrameBytes, post.frame.value - post.sent);
    frame.bytes = static_cast<uint32_t>(frame.value);
    if (!append(frame, post.data + post.sent)) return false;
    post.sent += frame.bytes;
  }
  return true;
}

bool IbPort::push_in_writes(Post& post) {
  const bool user = post.frame.position >= kUserMemory;
  if (post.registration == nullptr && post.sent < post.frame.value) {
    if (!user && arena_refused_) post.by_messages = true;
    post.registration = post.by_messages ? nullptr
                                         : registrations_.acquire(
                                               const_cast<std::byte*>(post.data), post.frame.value,
                                               user ? Life::kCall : Life::kCommunicator);
    if (post.registration == nullptr) {
      post.by_messages = true;
      return push(post);
    }
  }
  while (post.sent < post.frame.value) {
    uint64_t offset = 0;
    const Grant* grant = grant_at(post, post.frame.position + post.sent, offset);
    if (grant == nullptr) {
      if (post.question == 0) ask(post);
      return false;
    }
    if (!write(post, *grant, offset)) return false;
  }
  if (post.question == 0 || !user) return true;
  Frame frame;
  frame.kind = FrameKind::kDone;
  frame.value = post.question;
  return append(frame, nullptr);
}

// One request, from where the put stands. `offset`: that place in the granted memory.
bool IbPort::write(Post& post, const Grant& grant, uint64_t offset) {
  if (sent_.full() || !broken_.empty()) return false;
  const size_t lane = turn_++ % lanes_.size();
  const Lane& chosen = lanes_[lane];
  uint64_t most = std::min(kMostWrite, chosen.pair->most_bytes());
  if (lanes_.size() > 1)
    most = std::min<uint64_t>(most, std::max(kMinStripe, post.frame.value / lanes_.size() + 1));
  const uint64_t bytes = std::min({post.frame.value - post.sent, grant.bytes - offset, most});
  Sent sent;
  sent.position = post.frame.position + post.sent;
  sent.data = post.data + post.sent;
  sent.bytes = bytes;
  sent.registration = post.registration;
  const uint32_t index = sent_.push(sent);
  ++post.registration->uses;
  if (lane > 0) ++side_writes_;
  if (sent.position >= kUserMemory) ++user_writes_;
  post.sent += bytes;
  ++writes_;
  bytes_written_ += bytes;
  if (!chosen.pair->write(request_id(peer_, lane, false, index), sent.data, bytes,
                          post.registration->keys[chosen.device]->lkey, grant.address + offset,
                          grant.keys[lane]))
    broken_ = fmt::format("a write cannot be posted: {}", std::strerror(errno));
  return broken_.empty();
}

const Grant* IbPort::grant_at(const Post& post, uint64_t position, uint64_t& offset) const {
  if (post.frame.position >= kUserMemory) {
    offset = position - post.frame.position;
    return post.grant.bytes > offset ? &post.grant : nullptr;
  }
  auto next = grants_.upper_bound(position);
  if (next == grants_.begin()) return nullptr;
  const auto& [begin, grant] = *--next;
  offset = position - begin;
  return grant.bytes > offset ? &grant : nullptr;
}

void IbPort::ask(Post& post) {
  if (arena_refused_ && post.frame.position < kUserMemory) return;
  post.question = ++questions_;
  Frame frame;
  frame.kind = FrameKind::kAsk;
  frame.position = post.frame.position + post.sent;
  frame.value = post.frame.value - post.sent;
  frame.fingerprint = post.question;
  answers_.push_back(frame);
}

void IbPort::finish(Post& post) {
  if (post.registration != nullptr) registrations_.release(post.registration);
  post.registration = nullptr;
}

void IbPort::release(Sent& sent) {
  if (sent.message != 0) return;
  if (sent.position >= kUserMemory) --user_writes_;
  registrations_.release(std::exchange(sent.registration, nullptr));
}

bool IbPort::flushed() const {
  return state_ == State::kActive
             ? queue_.empty() && answers_.empty() && open_bytes_ == 0 && user_writes_ == 0
             : state_ != State::kFailing;
}

}  // namespace tessera::ib
