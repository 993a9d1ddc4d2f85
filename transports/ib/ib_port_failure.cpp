// How a port gives up RDMA and goes on over its spare.
#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "transports/ib/ib_port.h"

namespace tessera::ib {
namespace {

const char* hint(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer's host does not answer: its port or process may be gone, or the network "
             "loses packets (RoCE: UDP port 4791, MTU, flow control); NCCL_IB_TIMEOUT and "
             "NCCL_IB_RETRY_CNT say how long to wait";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer had no buffer for a message, which is a defect";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
      return "the peer has taken back the memory: its call may have failed";
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return "the memory is no longer registered, which is a defect";
    case IBV_WC_WR_FLUSH_ERR:
      return "the connection was ended before";
    default:
      return "the device's log (dmesg) may say more";
  }
}

}  // namespace

std::string IbPort::describe(const ibv_wc& completion) const {
  const size_t lane = completion.wr_id >> 24 & 0xff;
  const QueuePair& pair = *lanes_[std::min(lane, lanes_.size() - 1)].pair;
  const bool receive = (completion.wr_id >> 16 & 1) != 0;
  return fmt::format("{} ({}, vendor {:#x}) at a {} over {} to GID {}: {}",
                     pair.device().verbs().wc_status_str(completion.status),
                     static_cast<int>(completion.status), completion.vendor_err,
                     receive ? "receive" : "send or write", pair.device().to_text(),
                     ib::to_text(pair.remote().gid), hint(completion.status));
}

void IbPort::fail(const std::string& why) {
  if (!active()) return;
  state_ = State::kFailing;
  stopped_ = Clock::now();
  for (const Lane& lane : lanes_) lane.pair->stop();
  log::warn(own_, "ib: the connection to {} failed: {}. Going on over tcp", name_, why);
}

uint64_t IbPort::farewell() {
  if (state_ != State::kFailing || said_farewell_) return 0;
  if (receives_posted_ > 0 && Clock::now() - stopped_ < kDrainLimit) return 0;
  said_farewell_ = true;
  give_up_grants();
  if (peer_stopped_) resend();
  return taken_ + 1;
}

void IbPort::peer_stopped(uint64_t taken) {
  if (state_ == State::kSpare || state_ == State::kClosed) return;
  peer_stopped_ = true;
  peer_took_ = taken;
  fail("the peer gave it up");
  if (said_farewell_) resend();
}

// The peer writes no more.
void IbPort::give_up_grants() {
  for (const Granted& granted : granted_) registrations_.release(granted.registration);
  granted_.clear();
  answers_.clear();
  answer_keys_.clear();
}

// Everything that the peer has not taken in, in order.
void IbPort::resend() {
  state_ = State::kSpare;
  uint64_t from = sent_.first();
  for (uint64_t i = from; i < sent_.last(); ++i) {
    const uint64_t message = sent_.at(i).message;
    if (message != 0 && message <= peer_took_) from = i + 1;
  }
  for (uint64_t i = sent_.first(); i < sent_.last(); ++i) {
    Sent& sent = sent_.at(i);
    if (i >= from && sent.message != 0) {
      resend_message(send_buffer(sent.message), sent.bytes);
    } else if (i >= from && !sent.done && sent.data != nullptr) {
      spare_.put(sent.position, sent.data, const_cast<std::byte*>(sent.data), sent.bytes);
    }
    if (!sent.done) release(sent);
  }
  sent_.clear();
  if (open_bytes_ > 0) resend_message(send_buffer(messages_), open_bytes_);
  open_bytes_ = 0;
  for (; !queue_.empty(); queue_.pop()) {
    Post& post = queue_.at(0);
    const Frame& frame = post.frame;
    finish(post);
    if (post.dropped || frame.kind == FrameKind::kDone) continue;
    if (frame.kind == FrameKind::kPut) {
      spare_.put(frame.position + post.sent, post.data + post.sent,
                 const_cast<std::byte*>(post.data) + post.sent, frame.value - post.sent);
    } else {
      spare_.signal({frame.position, frame.value, frame.fingerprint,
                     static_cast<PortSignal::Kind>(frame.signal_kind)});
    }
  }
}

// The buffer stays as it is from now on: it is the shadow of its puts.
void IbPort::resend_message(const std::byte* message, size_t bytes) {
  for (size_t at = sizeof(MessageHeader); at + sizeof(Frame) <= bytes;) {
    Frame frame;
    std::memcpy(&frame, message + at, sizeof frame);
    at += sizeof frame;
    if (frame.kind == FrameKind::kPut) {
      spare_.put(frame.position, message + at, const_cast<std::byte*>(message + at), frame.bytes);
    } else if (frame.kind == FrameKind::kSignal) {
      spare_.signal({frame.position, frame.value, frame.fingerprint,
                     static_cast<PortSignal::Kind>(frame.signal_kind)});
    }
    at += padded(frame.bytes);
  }
}

void IbPort::retract() {
  for (const Granted& granted : granted_) registrations_.release(granted.registration);
  granted_.clear();
  for (uint64_t i = sent_.first(); i < sent_.last(); ++i) {
    Sent& sent = sent_.at(i);
    if (sent.message == 0 && sent.position >= kUserMemory) sent.data = nullptr;
  }
  for (size_t i = 0; i < queue_.size(); ++i) {
    Post& post = queue_.at(i);
    if (post.frame.kind != FrameKind::kPut || post.frame.position < kUserMemory) continue;
    post.dropped = true;
    post.data = nullptr;
  }
}

void IbPort::refuse(const Frame& frame) {
  for (const Lane& lane : lanes_) lane.pair->stop();
  state_ = State::kClosed;
  landing_.closed(peer_,
                  Status::error(Code::kRemote,
                                "{} sent a frame that is not allowed: kind {}, position "
                                "{:#x}, value {}. The bytes are damaged, or the ranks do "
                                "not agree on the call",
                                name_, static_cast<int>(frame.kind), frame.position, frame.value));
}

}  // namespace tessera::ib
