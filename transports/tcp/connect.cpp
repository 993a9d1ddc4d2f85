#include "transports/tcp/connect.h"

#include <algorithm>

#include "base/log.h"
#include "transports/tcp/engine.h"
#include "transports/tcp/peer_dialer.h"
#include "transports/tcp/reception.h"
#include "transports/tcp/reunion.h"

namespace tessera::tcp {
namespace {

constexpr size_t kDialedAtOnce = 64;  // peers; each may take several descriptors
constexpr int kTickMs = 20;           // pauses and limits of dialers are about that exact

constexpr const char* kHint =
    "NCCL_SOCKET_IFNAME names the interfaces that join the hosts, if these are not the right ones";

std::string name_of(const RemotePeer& peer) {
  return fmt::format("rank {} (host {})", peer.rank, peer.host_name);
}

class Connector {
 public:
  Connector(Listener listener, int rank, std::span<const RemotePeer> peers, const Secret& secret,
            const Config& config, Deadline deadline)
      : self_{rank, secret},
        peers_(peers),
        config_(config),
        deadline_(deadline),
        reception_(self_, std::move(listener), callers(rank, peers)) {}

  // Ok when all peers are connected.
  Status run(const Meanwhile& meanwhile);
  std::vector<Connection> take_connections();
  // Null if no peer is reached over several rails.
  std::unique_ptr<Reunion> make_reunion(std::span<const Connection> connections);

 private:
  static std::set<int> callers(int rank, std::span<const RemotePeer> peers);

  void dial_more();
  Status wait_and_serve();
  Status look_at_dialers();
  // Those not connected yet, in the order of peers_.
  std::vector<size_t> missing() const;
  std::vector<int> ranks_of(std::span<const size_t> peers) const;
  Status too_late(std::span<const size_t> missing) const;

  const Self self_;
  const std::span<const RemotePeer> peers_;
  const Config& config_;
  const Deadline deadline_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  Reception reception_;
  std::vector<std::unique_ptr<PeerDialer>> dialers_;  // by peer; null: it calls us, or not yet
  size_t dialed_ = 0;                                 // peers looked at
};

std::set<int> Connector::callers(int rank, std::span<const RemotePeer> peers) {
  std::set<int> lower;
  for (const RemotePeer& peer : peers) {
    if (peer.rank < rank) lower.insert(peer.rank);
  }
  return lower;
}

Status Connector::run(const Meanwhile& meanwhile) {
  dialers_.resize(peers_.size());
  while (true) {
    dial_more();
    if (Status status = look_at_dialers(); !status.ok()) return status;
    const std::vector<size_t> missing = this->missing();
    if (missing.empty()) return {};
    if (deadline_.passed()) return too_late(missing);
    if (meanwhile) {
      if (Status status = meanwhile(ranks_of(missing)); !status.ok()) return status;
    }
    if (Status status = wait_and_serve(); !status.ok()) return status;
  }
}

void Connector::dial_more() {
  size_t busy = 0;
  for (const auto& dialer : dialers_) {
    if (dialer != nullptr && dialer->state() != PeerDialer::State::kDone) ++busy;
  }
  for (; dialed_ < peers_.size() && busy < kDialedAtOnce; ++dialed_) {
    const RemotePeer& peer = peers_[dialed_];
    if (peer.rank <= self_.rank) continue;
    dialers_[dialed_] = std::make_unique<PeerDialer>(self_, peer.rank, peer.endpoints,
                                                     reception_.door().listener().local(),
                                                     config_.sockets_per_peer());
    ++busy;
  }
}

Status Connector::wait_and_serve() {
  std::vector<Contact*> contacts;
  for (const auto& dialer : dialers_) {
    if (dialer != nullptr && dialer->state() != PeerDialer::State::kDone) dialer->collect(contacts);
  }
  const int wait_ms = std::min(deadline_.left_ms(), kTickMs);
  if (Status status = reception_.door().serve(std::move(contacts), wait_ms); !status.ok())
    return status;
  reception_.proceed(std::chrono::steady_clock::now());
  return {};
}

Status Connector::look_at_dialers() {
  const auto now = std::chrono::steady_clock::now();
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (dialers_[i] == nullptr) continue;
    dialers_[i]->proceed(now);
    if (dialers_[i]->state() != PeerDialer::State::kFailed) continue;
    return Status::error(Code::kRemote, "rank {} cannot reach {}: {}. {}", self_.rank,
                         name_of(peers_[i]), dialers_[i]->report(), kHint);
  }
  return {};
}

std::vector<size_t> Connector::missing() const {
  std::vector<size_t> missing;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const bool dials = peers_[i].rank > self_.rank;
    const bool there =
        dials ? dialers_[i] != nullptr && dialers_[i]->state() == PeerDialer::State::kDone
              : !reception_.missing().contains(peers_[i].rank);
    if (!there) missing.push_back(i);
  }
  return missing;
}

std::vector<int> Connector::ranks_of(std::span<const size_t> peers) const {
  std::vector<int> ranks;
  for (const size_t peer : peers) ranks.push_back(peers_[peer].rank);
  return ranks;
}

// What became of the first peer that is missing, and which others are.
Status Connector::too_late(std::span<const size_t> missing) const {
  const RemotePeer& peer = peers_[missing.front()];
  const auto& dialer = dialers_[missing.front()];
  std::string first;
  if (peer.rank > self_.rank) {
    first = fmt::format("{} has not answered: {}", name_of(peer),
                        dialer != nullptr ? dialer->report() : "not dialed yet");
  } else {
    std::vector<std::string> own;
    for (const Endpoint& endpoint : reception_.door().listener().endpoints())
      own.push_back(to_text(endpoint));
    first = fmt::format("{} has not connected to any of {}", name_of(peer), fmt::join(own, ", "));
  }
  const std::vector<int> others = ranks_of(missing.subspan(1));
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun_);
  return Status::error(
      Code::kTimeout, "rank {}, after {:.1f} s: {}{}{}. {}", self_.rank,
      static_cast<double>(waited.count()) / 1000, first,
      others.empty() ? "" : fmt::format("; missing, too: {}", fmt::join(others, ", ")),
      reception_.door().turned_away() > 0
          ? fmt::format("; {} connections that did not belong to this communicator were closed",
                        reception_.door().turned_away())
          : "",
      kHint);
}

std::vector<Connection> Connector::take_connections() {
  std::vector<Connection> connections;
  for (size_t i = 0; i < peers_.size(); ++i) {
    Connection connection;
    connection.peer = peers_[i].rank;
    connection.name = name_of(peers_[i]);
    connection.sockets = dialers_[i] != nullptr ? dialers_[i]->take_sockets()
                                                : reception_.take_sockets(peers_[i].rank);
    if (dialers_[i] != nullptr) connection.ways = dialers_[i]->ways();
    for (const auto& link : connection.sockets) {
      prepare(*link, config_.timeout);
      log::info(self_.rank, "tcp: {} over {}", connection.name, link->route);
    }
    connections.push_back(std::move(connection));
  }
  return connections;
}

std::unique_ptr<Reunion> Connector::make_reunion(std::span<const Connection> connections) {
  bool wanted = false, called = false;
  for (const Connection& connection : connections) {
    if (!over_several_rails(connection.sockets)) continue;
    wanted = true;
    called = called || connection.ways.empty();
  }
  if (!wanted) return nullptr;
  return std::make_unique<Reunion>(self_, called ? reception_.door().take_listener() : Listener(),
                                   config_.timeout);
}

}  // namespace

Result<std::unique_ptr<PortEngine>> connect(Listener listener, int rank,
                                            std::span<const RemotePeer> peers,
                                            const std::array<uint8_t, 16>& secret,
                                            const Config& config, Landing& landing,
                                            Deadline deadline, const Meanwhile& meanwhile) {
  Connector connector(std::move(listener), rank, peers, secret, config, deadline);
  if (Status status = connector.run(meanwhile); !status.ok()) return status;
  std::vector<Connection> connections = connector.take_connections();
  std::unique_ptr<Reunion> reunion = connector.make_reunion(connections);
  return Engine::create(std::move(connections), rank, landing, std::move(reunion));
}

}  // namespace tessera::tcp
