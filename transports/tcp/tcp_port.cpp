#include "transports/tcp/tcp_port.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace tessera::tcp {

bool over_several_rails(const std::vector<std::unique_ptr<Link>>& sockets) {
  return std::any_of(sockets.begin(), sockets.end(),
                     [&](const auto& link) { return link->rail != sockets.front()->rail; });
}

TcpPort::TcpPort(Links& links, Landing& landing, int own, int peer, std::string name,
                 std::vector<std::unique_ptr<Link>> sockets)
    : links_(links),
      landing_(landing),
      own_(own),
      peer_(peer),
      name_(std::move(name)),
      sockets_(std::move(sockets)),
      several_rails_(over_several_rails(sockets_)),
      arrivals_(landing, peer, sockets_.size() == 1) {
  for (const auto& link : sockets_) link->port = this;
  first_ = first_alive();
  choose_patience();
}

Link* TcpPort::first_alive() const {
  for (const auto& link : sockets_) {
    if (link->alive) return link.get();
  }
  return nullptr;
}

Link* TcpPort::least_busy() {
  Link* best = nullptr;
  for (size_t i = 0; i < sockets_.size(); ++i) {
    Link* link = sockets_[(turn_ + i) % sockets_.size()].get();
    if (!link->alive) continue;
    if (best == nullptr || link->queue.waiting_bytes() < best->queue.waiting_bytes()) best = link;
  }
  ++turn_;
  return best;
}

void TcpPort::put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes) {
  if (first_ == nullptr || bytes == 0) return;
  if (sockets_.size() == 1 || bytes < kStripeFrom) {
    put_stripe(*first_, position, data, shadow, bytes);
    return;
  }
  const size_t stripe = std::clamp(bytes / (2 * sockets_.size()), kMinStripe, kMaxStripe);
  for (size_t at = 0; at < bytes; at += stripe) {
    put_stripe(*least_busy(), position + at, data + at, shadow + at, std::min(stripe, bytes - at));
  }
}

void TcpPort::put_stripe(Link& link, uint64_t position, const std::byte* data, std::byte* shadow,
                         size_t bytes) {
  FrameHeader header;
  header.position = position;
  header.value = bytes;
  // What may be sent again must not be the caller's to change.
  if (several_rails_ || bytes <= kSmallPut) {
    if (data != shadow) std::memcpy(shadow, data, bytes);
    data = shadow;
  }
  post(link, header, data, data == shadow);
  if (link.queue.waiting_bytes() > kMaxWaiting || bytes > kSmallPut) links_.send(link);
  if (!link.queue.empty()) {
    if (data != shadow) link.queue.keep_last(shadow);
    links_.list(link);
  }
}

void TcpPort::signal(const PortSignal& signal) {
  if (first_ == nullptr) return;
  FrameHeader header;
  header.position = signal.position;
  header.value = signal.value;
  header.fingerprint = signal.fingerprint;
  header.kind = FrameKind::kSignal;
  header.signal_kind = static_cast<uint8_t>(signal.kind);
  post(*first_, header, nullptr, false);
  links_.list(*first_);
}

void TcpPort::post(Link& link, FrameHeader header, const std::byte* data, bool stays) {
  header.number = static_cast<uint32_t>(++posted_);
  if (several_rails_) kept_.push_back({header, data, &link});
  link.queue.push(header, data, stays);
}

FrameSink::Verdict TcpPort::place(const FrameHeader& header, std::byte*& place) {
  if (arrivals_.known(header)) return Verdict::kDiscard;
  place = landing_.locate(peer_, header.position, header.value);
  if (place != nullptr) return Verdict::kStore;
  return landing_.is_over(peer_, header.position) ? Verdict::kDiscard : Verdict::kRefuse;
}

bool TcpPort::arrived(const FrameHeader& header) {
  if (header.kind == FrameKind::kAck) return drop_acknowledged(header.value);
  // A second copy tells that the acknowledgement of the first may have been lost.
  if (several_rails_ && arrivals_.known(header)) {
    told_ = 0;
    return true;
  }
  return arrivals_.arrived(header);
}

bool TcpPort::superseded(const FrameHeader& header) const { return arrivals_.known(header); }

bool TcpPort::acknowledge() {
  if (!several_rails_ || first_ == nullptr || arrivals_.complete() == told_) return false;
  told_ = arrivals_.complete();
  FrameHeader header;
  header.kind = FrameKind::kAck;
  header.value = told_;
  first_->queue.push(header, nullptr, false);
  links_.list(*first_);
  return true;
}

bool TcpPort::drop_acknowledged(uint64_t number) {
  if (number > posted_) return false;
  if (number <= acknowledged_) return true;  // overtaken by a later one
  kept_from_ += number - acknowledged_;
  acknowledged_ = number;
  // Moves what is left to the front now and then: no allocation, a bounded share of the work.
  if (kept_from_ == kept_.size() || kept_from_ > 1024) {
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(kept_from_));
    kept_from_ = 0;
  }
  return true;
}

void TcpPort::lost(Link& link, const std::string& why) {
  if (!link.alive) return;
  const std::string route = link.route;
  if (link.failure.empty()) link.failure = why;
  links_.remove(link);
  const bool another_rail =
      several_rails_ &&
      std::any_of(sockets_.begin(), sockets_.end(), [](const auto& other) { return other->alive; });
  if (!another_rail) {
    close(Status::error(Code::kRemote,
                        "the connection to {} ({}) ended: {}. Its process may have died or its "
                        "host may be out of reach",
                        name_, route, link.failure));
    return;
  }
  log::warn(own_, "tcp: lost the connection {} to {}: {}; going on over the others", route, name_,
            link.failure);
  first_ = first_alive();
  choose_patience();
  told_ = 0;  // an acknowledgement may have been lost with the socket
  send_again(link);
}

// With one rail left there is no other way: a link that is down for a moment is worth waiting for.
void TcpPort::choose_patience() {
  const bool others = std::any_of(sockets_.begin(), sockets_.end(), [&](const auto& link) {
    return link->alive && link->rail != first_->rail;
  });
  for (const auto& link : sockets_) {
    link->silence_limit =
        others ? std::min(link->patience, kMaxSilenceOfOneOfSeveral) : link->patience;
  }
}

bool TcpPort::replace(Link& link, Fd fd, std::string route, std::chrono::milliseconds timeout) {
  if (link.alive) {
    link.failure = "given up by the peer";
    links_.remove(link);
  }
  link.renew(std::move(fd), std::move(route));
  prepare(link, timeout);
  if (const Status status = links_.add(link); !status.ok()) {
    lost(link, status.message());
    return false;
  }
  log::info(own_, "tcp: {} again over {}", name_, link.route);
  first_ = first_alive();
  choose_patience();
  told_ = 0;
  send_again(link);
  return true;
}

void TcpPort::send_again(const Link& dead) {
  for (size_t i = kept_from_; i < kept_.size(); ++i) {
    Kept& frame = kept_[i];
    if (frame.link != &dead) continue;
    frame.link = frame.header.bytes() > kSmallPut ? least_busy() : first_;
    frame.link->queue.push(frame.header, frame.data, true);
    links_.list(*frame.link);
  }
}

// The same frames still have to leave: others may need them to end the call well.
void TcpPort::retract() {
  for (const auto& link : sockets_) link->queue.own_user_memory(owned_);
  for (size_t i = kept_from_; i < kept_.size(); ++i)
    owned_.take_over(kept_[i].header, kept_[i].data);
}

void TcpPort::refused(const Link& link, const FrameHeader& header) {
  close(Status::error(
      Code::kRemote,
      "{} ({}) sent a frame that is not allowed: kind {}, position {:#x}, value {}, number {}. The "
      "bytes are damaged, or the ranks do not agree on the call",
      name_, link.route, static_cast<int>(header.kind), header.position, header.value,
      header.number));
}

void TcpPort::close(const Status& why) {
  for (const auto& link : sockets_) links_.remove(*link);
  first_ = nullptr;
  kept_.clear();
  kept_from_ = 0;
  landing_.closed(peer_, why);
}

}  // namespace tessera::tcp
