#include "transports/tcp/connect.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "transports/tcp/engine.h"
#include "transports/tcp/peer_dialer.h"
#include "transports/tcp/reception.h"

namespace tessera::tcp {
namespace {

constexpr size_t kDialedAtOnce = 64;          // peers; each may take several descriptors
constexpr int kTickMs = 20;                   // pauses and limits of dialers are about that exact
constexpr int kMaxSilence = 10;               // seconds
constexpr int kMaxSilenceOfOneOfSeveral = 3;  // a rail: the others go on

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
  Status run(const std::function<Status()>& meanwhile);
  std::vector<Connection> take_connections();

 private:
  static std::set<int> callers(int rank, std::span<const RemotePeer> peers);

  void dial_more();
  Status wait_and_serve();
  Status look_at_dialers();
  bool done() const;
  Status too_late() const;
  void prepare(Link& link, bool one_of_several) const;

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

Status Connector::run(const std::function<Status()>& meanwhile) {
  dialers_.resize(peers_.size());
  while (true) {
    dial_more();
    if (Status status = look_at_dialers(); !status.ok()) return status;
    if (done()) return {};
    if (deadline_.passed()) return too_late();
    if (Status status = wait_and_serve(); !status.ok()) return status;
    if (!meanwhile) continue;
    if (Status status = meanwhile(); !status.ok()) return status;
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
    dialers_[dialed_] =
        std::make_unique<PeerDialer>(self_, peer.rank, peer.endpoints,
                                     reception_.listener().local(), config_.sockets_per_peer());
    ++busy;
  }
}

Status Connector::wait_and_serve() {
  std::vector<Contact*> contacts;
  reception_.collect(contacts);
  for (const auto& dialer : dialers_) {
    if (dialer != nullptr && dialer->state() != PeerDialer::State::kDone) dialer->collect(contacts);
  }
  std::vector<pollfd> polled;
  for (Contact* contact : contacts) polled.push_back({contact->fd(), contact->events(), 0});
  for (const Fd& door : reception_.listening()) polled.push_back({door.get(), POLLIN, 0});
  ::poll(polled.data(), polled.size(), std::min(deadline_.left_ms(), kTickMs));
  for (size_t i = 0; i < contacts.size(); ++i) {
    if (polled[i].revents != 0) contacts[i]->serve();
  }
  for (size_t i = 0; i < reception_.listening().size(); ++i) {
    if (polled[contacts.size() + i].revents == 0) continue;
    if (Status status = reception_.let_in(reception_.listening()[i]); !status.ok()) return status;
  }
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

bool Connector::done() const {
  if (!reception_.complete() || dialed_ < peers_.size()) return false;
  return std::all_of(dialers_.begin(), dialers_.end(), [](const auto& dialer) {
    return dialer == nullptr || dialer->state() == PeerDialer::State::kDone;
  });
}

// What became of the first peer that is missing, and which others are.
Status Connector::too_late() const {
  std::string first;
  std::vector<int> others;
  size_t missing = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const bool dials = peers_[i].rank > self_.rank;
    const bool there =
        dials ? dialers_[i] != nullptr && dialers_[i]->state() == PeerDialer::State::kDone
              : !reception_.missing().contains(peers_[i].rank);
    if (there) continue;
    if (++missing > 1) {
      others.push_back(peers_[i].rank);
      continue;
    }
    if (dials) {
      first = fmt::format("{} has not answered: {}", name_of(peers_[i]),
                          dialers_[i] != nullptr ? dialers_[i]->report() : "not dialed yet");
      continue;
    }
    std::vector<std::string> own;
    for (const Endpoint& endpoint : reception_.listener().endpoints())
      own.push_back(to_text(endpoint));
    first =
        fmt::format("{} has not connected to any of {}", name_of(peers_[i]), fmt::join(own, ", "));
  }
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun_);
  return Status::error(
      Code::kTimeout, "rank {}, after {:.1f} s: {}{}{}. {}", self_.rank,
      static_cast<double>(waited.count()) / 1000, first,
      others.empty() ? "" : fmt::format("; missing, too: {}", fmt::join(others, ", ")),
      reception_.turned_away() > 0
          ? fmt::format("; {} connections that did not belong to this communicator were closed",
                        reception_.turned_away())
          : "",
      kHint);
}

void Connector::prepare(Link& link, bool one_of_several) const {
  const auto timeout = std::chrono::duration_cast<std::chrono::seconds>(config_.timeout);
  link.patience = static_cast<int>(std::clamp<int64_t>(timeout.count(), 1, kMaxSilence));
  link.silence_limit =
      one_of_several ? std::min(link.patience, kMaxSilenceOfOneOfSeveral) : link.patience;
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(link.fd.get(), level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  link.zero_copy.enable(link.fd.get());
  // An idle connection to a host that has vanished; the engine watches the others.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, link.patience);
}

std::vector<Connection> Connector::take_connections() {
  std::vector<Connection> connections;
  for (size_t i = 0; i < peers_.size(); ++i) {
    Connection connection;
    connection.peer = peers_[i].rank;
    connection.name = name_of(peers_[i]);
    connection.sockets = dialers_[i] != nullptr ? dialers_[i]->take_sockets()
                                                : reception_.take_sockets(peers_[i].rank);
    const bool several = std::any_of(connection.sockets.begin(), connection.sockets.end(),
                                     [](const auto& link) { return link->rail > 0; });
    for (const auto& link : connection.sockets) {
      prepare(*link, several);
      log::info(self_.rank, "tcp: {} over {}", connection.name, link->route);
    }
    connections.push_back(std::move(connection));
  }
  return connections;
}

}  // namespace

Result<std::unique_ptr<PortEngine>> connect(Listener listener, int rank,
                                            std::span<const RemotePeer> peers,
                                            const std::array<uint8_t, 16>& secret,
                                            const Config& config, Landing& landing,
                                            Deadline deadline,
                                            const std::function<Status()>& meanwhile) {
  Connector connector(std::move(listener), rank, peers, secret, config, deadline);
  if (Status status = connector.run(meanwhile); !status.ok()) return status;
  return Engine::create(connector.take_connections(), rank, landing);
}

}  // namespace tessera::tcp
