#include "transports/net_plugin/peer.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera::net_plugin {

Peer::Peer(const Network& network, Landing& landing, int rank, std::string name)
    : network_(network), landing_(landing), rank_(rank), name_(std::move(name)) {}

Peer::~Peer() {
  if (listening_ != nullptr) network_.driver().close_listening(listening_);
}

Status Peer::listen() {
  if (::getrandom(offer_.token.data(), sizeof offer_.token, 0) !=
      static_cast<ssize_t>(sizeof offer_.token))
    return Status::error(Code::kSystem, "getrandom: {}", std::strerror(errno));
  offer_.message_bytes = std::min(kMessageBytes, network_.largest_message());
  const Outcome outcome = network_.driver().listen(network_.context(), network_.device(),
                                                   offer_.handle.data(), listening_);
  return outcome == 0 ? Status() : network_.failure("listen", outcome, name_);
}

Status Peer::meet() {
  if (has_offer_ && outbox_ == nullptr) {
    if (Status s = connect(); !s.ok()) return s;
  }
  if (inbox_ == nullptr) {
    if (Status s = accept(); !s.ok()) return s;
  }
  bool moved = false;
  if (outbox_ != nullptr) {
    if (Status s = outbox_->progress(moved); !s.ok()) return s;
  }
  // What follows the token stays where it is until all are connected, if it can.
  return inbox_ != nullptr && !inbox_->greeted() ? inbox_->progress(moved) : Status();
}

Status Peer::connect() {
  if (heard_.message_bytes < Network::kLeastMessage) {
    return Status::error(Code::kRemote, "{} wants messages of {} bytes through {}; {} is the least",
                         name_, heard_.message_bytes, network_.name(), Network::kLeastMessage);
  }
  void* sending = nullptr;
  const Outcome outcome = network_.driver().connect(network_.context(), network_.device(),
                                                    heard_.handle.data(), sending);
  if (outcome != 0) return network_.failure("connect", outcome, name_);
  if (sending == nullptr) return {};
  outbox_ = std::make_unique<Outbox>(network_, name_, sending);
  return outbox_->open(std::min<size_t>(offer_.message_bytes, heard_.message_bytes), heard_.token);
}

Status Peer::accept() {
  void* receiving = nullptr;
  const Outcome outcome = network_.driver().accept(listening_, receiving);
  if (outcome != 0) return network_.failure("accept", outcome, name_);
  if (receiving == nullptr) return {};
  inbox_ = std::make_unique<Inbox>(network_, landing_, rank_, name_, receiving);
  network_.driver().close_listening(listening_);
  listening_ = nullptr;
  return inbox_->open(offer_.message_bytes, offer_.token);
}

const char* Peer::what_is_missing() const {
  if (!has_offer_) return "it has not said where it listens";
  if (outbox_ == nullptr) return "connect() gives no connection to it";
  if (inbox_ == nullptr) return "accept() gives no connection from it";
  return "its first message has not come";
}

void Peer::put(uint64_t position, const std::byte* data, std::byte* shadow, size_t bytes) {
  if (open_) outbox_->put(position, data, shadow, bytes);
}

void Peer::signal(const PortSignal& signal) {
  if (open_) outbox_->signal(signal);
}

Status Peer::progress(bool& moved) {
  Status status = inbox_->progress(moved);
  if (!status.ok()) return status;
  if (inbox_->ended()) return Status::error(Code::kRemote, "{} has closed its connections", name_);
  status = outbox_->progress(moved);
  if (status.ok()) return status;
  for (bool more = true; more && !inbox_->ended();) {
    more = false;
    if (!inbox_->progress(more).ok()) break;
  }
  return status;
}

void Peer::end() {
  if (open_ && outbox_ != nullptr) outbox_->end();
}

void Peer::left_alone(const Status& why) {
  if (!why_.ok()) return;
  why_ = why;
  since_ = Clock::now();
}

bool Peer::silent() const { return !why_.ok() && Clock::now() - since_ >= kLast; }

}  // namespace tessera::net_plugin
