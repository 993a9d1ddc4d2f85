#include "transports/net_plugin/engine.h"

#include <poll.h>

#include <algorithm>

namespace tessera::net_plugin {
namespace {

// Positions on the other transport.
constexpr uint64_t kOfferMemory = uint64_t{1} << 60;
constexpr uint64_t kFarewellMemory = kOfferMemory + sizeof(Offer);

template <class T>
void tell(Port& port, uint64_t position, T& what) {
  auto* bytes = reinterpret_cast<std::byte*>(&what);  // the peer object keeps it: its own shadow
  port.put(position, bytes, bytes, sizeof what);
  port.signal({position, 1, 0, PortSignal::Kind::kSet});
}

}  // namespace

Engine::Engine(std::unique_ptr<Network> network, Landing& landing)
    : network_(std::move(network)), landing_(landing) {}

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<Network> network,
                                               std::span<const PeerName> peers, Landing& landing) {
  std::unique_ptr<Engine> engine(new Engine(std::move(network), landing));
  for (const PeerName& name : peers) {
    const auto at = static_cast<size_t>(name.rank);
    engine->peers_.resize(std::max(engine->peers_.size(), at + 1));
    engine->peers_[at] = std::make_unique<Peer>(*engine->network_, landing, name.rank, name.name);
    if (Status s = engine->peers_[at]->listen(); !s.ok()) return s;
  }
  return engine;
}

Engine::~Engine() {
  if (!connected_) return;
  for (const auto& peer : peers_) {
    if (peer != nullptr) peer->end();
  }
  const Deadline deadline = Deadline::after(kLinger);
  for (bool waiting = true; waiting && !deadline.passed();) {
    waiting = false;
    bool moved = false;
    for (const auto& peer : peers_) {
      if (peer == nullptr || peer->flushed()) continue;
      if (!peer->send(moved).ok()) peer->close();
      waiting = waiting || !peer->flushed();
    }
  }
}

Peer* Engine::peer(int rank) const {
  if (rank < 0 || static_cast<size_t>(rank) >= peers_.size()) return nullptr;
  return peers_[static_cast<size_t>(rank)].get();
}

Port* Engine::port(int rank) { return peer(rank); }

Status Engine::connect(std::unique_ptr<PortEngine> spare, Deadline deadline,
                       const std::function<Status()>& meanwhile) {
  spare_ = std::move(spare);
  for (const auto& peer : peers_) {
    if (peer != nullptr) tell(*spare_->port(peer->rank()), kOfferMemory, peer->offer());
  }
  for (;;) {
    spare_->progress();
    bool all_met = true;
    Status status = meet(all_met);
    connected_ = status.ok() && all_met && flushed();
    if (connected_) return {};
    if (status.ok() && deadline.passed()) status = too_late();
    if (status.ok() && meanwhile) status = meanwhile();
    if (!status.ok()) {
      for (const auto& peer : peers_) {
        if (peer != nullptr) give_up(*peer, status);
      }
      return status;
    }
    pollfd polled{spare_->wait_fd(), POLLIN, 0};
    ::poll(&polled, 1, 1);
  }
}

Status Engine::meet(bool& all_met) {
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    if (!peer->why().ok()) return peer->why();
    if (Status s = peer->meet(); !s.ok()) return s;
    all_met = all_met && peer->met();
  }
  return {};
}

// The first peer that is missing, and how many others.
Status Engine::too_late() const {
  const Peer* first = nullptr;
  int others = -1;
  for (const auto& peer : peers_) {
    if (peer == nullptr || peer->met()) continue;
    if (first == nullptr) first = peer.get();
    ++others;
  }
  if (first == nullptr)
    return Status::error(Code::kTimeout, "{}: what connects the ranks was not sent in time",
                         network_->name());
  return Status::error(Code::kTimeout, "{}: there is no connection with {} in time: {}{}",
                       network_->name(), first->name(), first->what_is_missing(),
                       others > 0 ? fmt::format("; {} more ranks are missing", others) : "");
}

// The peer may be alive and wait for this rank.
void Engine::give_up(Peer& peer, const Status& why) {
  Port* port = spare_->port(peer.rank());
  if (!peer.why().ok() || port == nullptr) return;
  Farewell& farewell = peer.own_farewell();
  std::strncpy(farewell.text, why.message().c_str(), sizeof farewell.text - 1);
  tell(*port, kFarewellMemory, farewell);
  const Deadline soon = Deadline::after(std::chrono::milliseconds(100));
  while (!spare_->flushed() && !soon.passed()) spare_->progress();
}

bool Engine::progress() {
  bool moved = false;
  for (const auto& peer : peers_) {
    if (peer != nullptr && peer->open()) look_at(*peer, moved);
  }
  if (++calls_ % kLookAtSpare == 0 && spare_->progress()) moved = true;
  if (moved) moved_ = Clock::now();
  return moved;
}

void Engine::look_at(Peer& peer, bool& moved) {
  bool any = false;
  Status status = peer.progress(any);
  const bool failed = !status.ok();
  if (any) moved = true;
  if (!failed && !any && peer.silent()) status = peer.why();
  if (status.ok()) return;
  peer.close();
  if (failed) give_up(peer, status);
  landing_.closed(peer.rank(), status);
}

bool Engine::flushed() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& peer) { return peer == nullptr || peer->flushed(); }) &&
         spare_->flushed();
}

std::chrono::nanoseconds Engine::due_in() const {
  const bool any = std::any_of(peers_.begin(), peers_.end(),
                               [](const auto& peer) { return peer != nullptr && peer->open(); });
  if (!any) return std::chrono::nanoseconds::max();
  return std::clamp<std::chrono::nanoseconds>((Clock::now() - moved_) / 8, kSoonest, kLatest);
}

std::byte* Engine::locate(int rank, uint64_t position, size_t bytes) {
  Peer* from = peer(rank);
  if (from == nullptr) return nullptr;
  if (position == kOfferMemory && bytes == sizeof(Offer))
    return reinterpret_cast<std::byte*>(&from->heard_offer());
  if (position == kFarewellMemory && bytes == sizeof(Farewell))
    return reinterpret_cast<std::byte*>(&from->farewell());
  return nullptr;
}

bool Engine::signalled(int rank, const PortSignal& signal) {
  Peer* from = peer(rank);
  if (from == nullptr) return false;
  if (signal.position == kOfferMemory) {
    from->offered();
  } else if (signal.position == kFarewellMemory) {
    Farewell& farewell = from->farewell();
    farewell.text[sizeof farewell.text - 1] = '\0';
    from->left_alone(Status::error(Code::kRemote, "{} gave up its connection with this rank: {}",
                                   from->name(), farewell.text));
  } else {
    return false;
  }
  return true;
}

void Engine::closed(int rank, const Status& why) {
  if (Peer* gone = peer(rank)) gone->left_alone(why);
}

}  // namespace tessera::net_plugin
