#include "transports/ib/engine.h"

#include <poll.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace tessera::ib {
namespace {

// Of one device: what all peers' requests can leave there.
int completions(int ranks, const Config& config) {
  constexpr int kPerPair = static_cast<int>(SentLog::kMost + kBuffers);
  return std::max(ranks - 1, 1) * config.ib_pairs_per_connection * kPerPair;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(int rank, int ranks, const Config& config,
                                               Landing& landing) {
  std::unique_ptr<Engine> engine(new Engine(rank, ranks, config, landing));
  if (::strcasecmp(config.net.c_str(), "Socket") == 0) return engine;
  const auto without = [&](const std::string& why) -> Result<std::unique_ptr<Engine>> {
    if (::strcasecmp(config.net.c_str(), "IB") == 0)
      return Status::error(Code::kInvalidUsage, "rank {}: NCCL_NET=IB: {}", rank, why);
    log::info(rank, "ib: not used: {}", why);
    return std::move(engine);
  };
  if (config.ib_disabled) return without("NCCL_IB_DISABLE is set");
  Result<const Verbs*> verbs = Verbs::load();
  if (!verbs.ok()) return without(verbs.status().message());
  std::string why_none;
  engine->devices_ =
      Device::open_all(*verbs.value(), config, completions(ranks, config), kMaxLanes, why_none);
  if (engine->devices_.empty()) return without(why_none);
  std::vector<ibv_pd*> domains;
  for (const auto& device : engine->devices_) domains.push_back(device->domain());
  engine->registrations_ = std::make_unique<Registrations>(*verbs.value(), domains, rank);
  return engine;
}

Engine::Engine(int rank, int ranks, const Config& config, Landing& landing)
    : rank_(rank),
      config_(config),
      landing_(landing),
      handshakes_(static_cast<size_t>(ranks)),
      ports_(static_cast<size_t>(ranks)) {}

Engine::~Engine() {
  if (spare_ == nullptr) return;
  const Deadline deadline = Deadline::after(kLinger);
  const auto waiting = [&](int peer) { return !rdma(peer)->delivered(); };
  while (std::any_of(listed_.begin(), listed_.end(), waiting) && !deadline.passed()) progress();
  report();
  ports_.clear();
  handshakes_.clear();
}

void Engine::report() const {
  if (listed_.empty()) return;
  for (const int peer : listed_) {
    const IbPort::Carried carried = rdma(peer)->carried();
    log::info(rank_, "ib: {} messages and {} writes of {} KiB to {}", carried.messages,
              carried.writes, carried.bytes_written >> 10,
              handshakes_[static_cast<size_t>(peer)]->name());
  }
  const Registrations::Counts& counts = registrations_->counts();
  log::info(rank_, "ib: {} registrations made, {} found again, {} refused, {} KiB at most",
            counts.made, counts.found, counts.refused, counts.most_bytes >> 10);
}

Status Engine::connect(std::unique_ptr<PortEngine> spare, std::span<const PeerName> peers,
                       Deadline deadline, const std::function<Status()>& meanwhile) {
  spare_ = std::move(spare);
  for (const PeerName& peer : peers) {
    auto& handshake = handshakes_[static_cast<size_t>(peer.rank)];
    handshake =
        std::make_unique<Handshake>(config_, rank_, peer.rank, peer.name, *spare_->port(peer.rank));
    handshake->begin(devices_, static_cast<size_t>(config_.ib_pairs_per_connection));
  }
  if (Status status = await(deadline, meanwhile); !status.ok()) return status;
  list_ports();
  return listed_.empty() ? Status() : open_wait_fd();
}

Status Engine::await(Deadline deadline, const std::function<Status()>& meanwhile) {
  while (true) {
    spare_->progress();
    for (const auto& device : devices_) serve(*device);
    const Handshake* missing = nullptr;
    for (size_t peer = 0; peer < handshakes_.size(); ++peer) {
      if (handshakes_[peer] == nullptr) continue;
      handshakes_[peer]->proceed(landing_, registrations_.get(), ports_[peer]);
      if (!handshakes_[peer]->over()) missing = handshakes_[peer].get();
    }
    if (missing == nullptr) return {};
    if (!lost_.ok()) return lost_;
    if (meanwhile) {
      if (Status status = meanwhile(); !status.ok()) return status;
    }
    if (deadline.passed()) {
      return Status::error(Code::kTimeout, "rank {}: {} does not say whether it can use RDMA",
                           rank_, missing->name());
    }
    pollfd polled = {spare_->wait_fd(), POLLIN, 0};
    ::poll(&polled, 1, 1);
  }
}

void Engine::list_ports() {
  listed_.clear();
  spare_in_use_ = false;
  for (size_t peer = 0; peer < ports_.size(); ++peer) {
    if (ports_[peer] != nullptr) listed_.push_back(static_cast<int>(peer));
    if (handshakes_[peer] != nullptr &&
        (ports_[peer] == nullptr || ports_[peer]->state() != IbPort::State::kActive))
      spare_in_use_ = true;
  }
}

Status Engine::open_wait_fd() {
  wait_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  ready_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::vector<int> fds = {ready_.get(), spare_->wait_fd()};
  for (const auto& device : devices_) {
    fds.push_back(device->event_fd());
    fds.push_back(device->async_fd());
  }
  for (const int fd : fds) {
    epoll_event event = {};
    event.events = EPOLLIN;
    if (::epoll_ctl(wait_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return Status::error(Code::kSystem, "ib: epoll_ctl: {}", std::strerror(errno));
  }
  return {};
}

Port* Engine::port(int rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= ports_.size()) return nullptr;
  return rdma(rank) != nullptr ? rdma(rank) : spare_->port(rank);
}

bool Engine::progress() {
  bool moved = false;
  for (const auto& device : devices_) moved |= serve(*device);
  for (const int peer : listed_) {
    IbPort& port = *rdma(peer);
    moved |= port.pump();
    if (port.state() == IbPort::State::kFailing) look_at_failing(port, peer);
  }
  ++calls_;
  if (spare_in_use_ || calls_ % kLookAtSpare == 0) moved |= spare_->progress();
  if (calls_ % kLookAtEvents == 0 && !listed_.empty()) look_at_events();
  return moved;
}

bool Engine::serve(Device& device) {
  bool moved = false;
  for (const ibv_wc& completion : device.poll()) {
    const auto peer = static_cast<size_t>(IbPort::peer_of(completion.wr_id));
    if (peer >= ports_.size()) continue;
    if (ports_[peer] != nullptr) {
      moved |= ports_[peer]->completed(completion);
    } else if (handshakes_[peer] != nullptr) {
      handshakes_[peer]->completed(completion);
    }
  }
  return moved;
}

void Engine::look_at_failing(IbPort& port, int peer) {
  spare_in_use_ = true;
  if (const uint64_t taken = port.farewell(); taken > 0) {
    spare_->port(peer)->signal(
        {kControlMemory, taken - 1, static_cast<uint64_t>(Word::kStopped), PortSignal::Kind::kSet});
  }
}

void Engine::look_at_events() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (!devices_[i]->take_async_events(rank_)) continue;
    for (const int peer : listed_) {
      if (rdma(peer)->uses(i)) rdma(peer)->fail(devices_[i]->to_text() + " reported a failure");
    }
  }
}

void Engine::retract() {
  for (const int peer : listed_) rdma(peer)->retract();
  end_call();
  spare_->retract();
}

void Engine::end_call() {
  if (registrations_ != nullptr) registrations_->end_call();
}

bool Engine::flushed() const {
  return spare_->flushed() && std::all_of(listed_.begin(), listed_.end(),
                                          [&](int peer) { return rdma(peer)->flushed(); });
}

int Engine::wait_fd() const {
  if (listed_.empty()) return spare_->wait_fd();
  uint64_t count;
  while (::read(ready_.get(), &count, sizeof count) > 0) {
  }
  bool some = false;
  for (const auto& device : devices_) some |= device->arm();
  if (some) static_cast<void>(::eventfd_write(ready_.get(), 1));
  return wait_.get();
}

std::byte* Engine::locate(int peer, uint64_t position, size_t bytes) {
  if (position < kControlMemory || position >= kUserMemory)
    return landing_.locate(peer, position, bytes);
  Handshake* handshake = handshakes_[static_cast<size_t>(peer)].get();
  if (position != kControlMemory || bytes != sizeof(Hello) || handshake == nullptr) return nullptr;
  return reinterpret_cast<std::byte*>(&handshake->hello_in());
}

bool Engine::signalled(int peer, const PortSignal& signal) {
  if (signal.position < kControlMemory) return landing_.signalled(peer, signal);
  Handshake* handshake = handshakes_[static_cast<size_t>(peer)].get();
  if (signal.position != kControlMemory || signal.fingerprint >= kWords || handshake == nullptr)
    return false;
  const auto word = static_cast<Word>(signal.fingerprint);
  if (word != Word::kStopped) {
    handshake->heard(word, signal.value);
  } else if (rdma(peer) != nullptr) {
    rdma(peer)->peer_stopped(signal.value);
    spare_in_use_ = true;
  }
  return true;
}

// What the peer sent by RDMA before is still handed over.
void Engine::closed(int peer, const Status& why) {
  lost_ = why;
  if (IbPort* port = rdma(peer); port != nullptr) {
    for (const auto& device : devices_) {
      while (serve(*device)) {
      }
    }
    if (port->state() == IbPort::State::kClosed) return;
    port->close();
  }
  landing_.closed(peer, why);
}

}  // namespace tessera::ib
