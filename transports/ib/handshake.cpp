#include "transports/ib/handshake.h"

#include <algorithm>

#include "base/log.h"

namespace tessera::ib {

Handshake::Handshake(const Config& config, int own, int peer, std::string name, Port& spare)
    : config_(config), own_(own), peer_(peer), name_(std::move(name)), spare_(spare) {}

void Handshake::say(Word word, uint64_t value) {
  spare_.signal({kControlMemory, value, static_cast<uint64_t>(word), PortSignal::Kind::kSet});
}

void Handshake::heard(Word word, uint64_t value) {
  heard_[static_cast<size_t>(word)] = true;
  values_[static_cast<size_t>(word)] = value;
}

void Handshake::begin(const std::vector<std::unique_ptr<Device>>& devices, size_t per_device) {
  for (size_t i = 0; i < devices.size() * per_device && lanes_.size() < kMaxLanes; ++i) {
    const size_t device = i % devices.size();
    Result<std::unique_ptr<QueuePair>> pair =
        QueuePair::create(*devices[device], SentLog::kMost, kBuffers);
    if (!pair.ok()) {
      log::info(own_, "{}", pair.status().message());
      break;  // the order of lanes is that of the peer
    }
    hello_out_.lanes[lanes_.size()] = pair.value()->offer();
    lanes_.push_back({std::move(pair).value(), device});
  }
  hello_out_.count = static_cast<uint32_t>(lanes_.size());
  auto* bytes = reinterpret_cast<std::byte*>(&hello_out_);
  spare_.put(kControlMemory, bytes, bytes, sizeof hello_out_);
  say(Word::kHello, 0);
}

void Handshake::proceed(Landing& landing, Registrations* registrations,
                        std::unique_ptr<IbPort>& port) {
  if (stage_ == Stage::kHello && has_heard(Word::kHello)) connect();
  if (stage_ == Stage::kReady && has_heard(Word::kReady)) probe();
  if (stage_ == Stage::kProbe &&
      ((usable_ & ~answered_) == 0 || Clock::now() - probed_ > kProbeLimit)) {
    usable_ &= answered_;
    say(Word::kVerdict, usable_);
    stage_ = Stage::kVerdict;
  }
  if (stage_ == Stage::kVerdict && has_heard(Word::kVerdict)) {
    usable_ &= value(Word::kVerdict);
    if (usable_ == 0)
      log::info(own_, "ib: nothing gets through to {}: it is reached over tcp", name_);
    if (usable_ == 0)
      stage_ = Stage::kOver;
    else
      settle(landing, *registrations, port);
  }
  if (stage_ == Stage::kGo && has_heard(Word::kGo)) {
    if (value(Word::kGo) == 0) port.reset();
    stage_ = Stage::kOver;
  }
  if (over()) lanes_.clear();
}

void Handshake::connect() {
  const size_t count = std::min<size_t>(lanes_.size(), hello_in_.count);
  if (count == 0) {
    if (!lanes_.empty()) log::info(own_, "ib: {} has no RDMA port: it is reached over tcp", name_);
    stage_ = Stage::kOver;
    return;
  }
  lanes_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Status status = lanes_[i].pair->connect(hello_in_.lanes[i], config_);
    if (status.ok())
      usable_ |= uint64_t{1} << i;
    else
      log::info(own_, "{} ({})", status.message(), name_);
  }
  say(Word::kReady, usable_);
  stage_ = Stage::kReady;
}

// An empty write: it is completed when the peer's device has answered.
void Handshake::probe() {
  usable_ &= value(Word::kReady);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const uint64_t bit = uint64_t{1} << i;
    if ((usable_ & bit) != 0 &&
        !lanes_[i].pair->write(IbPort::request_id(peer_, i, false, 0), nullptr, 0, 0, 0, 0))
      usable_ &= ~bit;
  }
  probed_ = Clock::now();
  stage_ = Stage::kProbe;
}

void Handshake::completed(const ibv_wc& completion) {
  const size_t lane = completion.wr_id >> 24 & 0xff;
  const uint64_t bit = uint64_t{1} << lane;
  answered_ |= bit;
  if (completion.status == IBV_WC_SUCCESS || lane >= lanes_.size()) return;
  usable_ &= ~bit;
  const QueuePair& pair = *lanes_[lane].pair;
  log::info(own_, "ib: {} cannot be reached over {} and GID {}: {}", name_, pair.device().to_text(),
            ib::to_text(pair.remote().gid), pair.device().verbs().wc_status_str(completion.status));
}

void Handshake::settle(Landing& landing, Registrations& registrations,
                       std::unique_ptr<IbPort>& port) {
  std::vector<Lane> agreed;
  std::string routes;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if ((usable_ >> i & 1) == 0) continue;
    const QueuePair& pair = *lanes_[i].pair;
    routes += fmt::format("{}{} to GID {}", agreed.empty() ? "" : ", ", pair.device().to_text(),
                          ib::to_text(pair.remote().gid));
    agreed.push_back(std::move(lanes_[i]));
  }
  lanes_.clear();
  port = std::make_unique<IbPort>(landing, registrations, spare_, own_, peer_, name_,
                                  std::move(agreed));
  const Status status = port->open();
  if (status.ok()) {
    log::info(own_, "ib: {} over {}", name_, routes);
  } else {
    log::warn(own_, "{}: it is reached over tcp", status.message());
    port.reset();
  }
  say(Word::kGo, status.ok() ? 1 : 0);
  stage_ = status.ok() ? Stage::kGo : Stage::kOver;
}

}  // namespace tessera::ib
