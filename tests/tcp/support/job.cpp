#include "tcp/support/job.h"

#include <sys/socket.h>

#include <thread>

#include "base/deadline.h"
#include "transports/tcp/engine.h"

namespace tessera::tcp {
namespace {

constexpr std::chrono::seconds kPatience{60};

// Two connected TCP sockets over loopback.
std::pair<Fd, Fd> connected_pair() {
  const Listener listener = open_listener(loopback_config());
  const SocketAddress address = socket_address(listener.endpoints()[0]);
  Fd one(::socket(listener.endpoints()[0].family, SOCK_STREAM, 0));
  EXPECT_EQ(::connect(one.get(), address.get(), address.bytes), 0);
  Fd other(::accept(listener.sockets()[0].get(), nullptr, nullptr));
  EXPECT_TRUE(other.valid());
  return {std::move(one), std::move(other)};
}

std::unique_ptr<PortEngine> engine_over(std::vector<std::unique_ptr<Link>> links, int peer,
                                        Landing& landing, std::vector<Way> ways,
                                        std::unique_ptr<Reunion> reunion) {
  std::vector<Connection> connections(1);
  connections[0] = {peer, fmt::format("rank {} (host test)", peer), std::move(links),
                    std::move(ways)};
  auto engine = Engine::create(std::move(connections), 1 - peer, landing, std::move(reunion));
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine.value());
}

}  // namespace

Config loopback_config(int sockets) {
  Config config;
  config.socket_ifname = "lo";
  config.sockets_per_thread = sockets;
  return config;
}

Listener open_listener(const Config& config) {
  Result<Listener> listener = Listener::open(config);
  EXPECT_TRUE(listener.ok()) << listener.status().message();
  return std::move(listener.value());
}

RemotePeer peer_of(int rank, const Listener& listener) {
  return {rank, "here", {listener.endpoints().begin(), listener.endpoints().end()}};
}

Job::Job(int ranks, const Config& config, size_t memory_bytes) {
  const auto n = static_cast<size_t>(ranks);
  std::vector<Listener> listeners;
  std::vector<RemotePeer> all;
  for (int rank = 0; rank < ranks; ++rank) {
    listeners.push_back(open_listener(config));
    all.push_back(peer_of(rank, listeners.back()));
    landings.push_back(std::make_unique<MemoryLanding>(memory_bytes));
  }
  engines.resize(n);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<RemotePeer> peers = all;
      peers.erase(peers.begin() + static_cast<std::ptrdiff_t>(rank));
      auto engine = connect(std::move(listeners[rank]), static_cast<int>(rank), peers, kSecret,
                            config, *landings[rank], Deadline::after(kPatience));
      ASSERT_TRUE(engine.ok()) << engine.status().message();
      engines[rank] = std::move(engine.value());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Job::run_until(const std::function<bool()>& done) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!done()) {
    ASSERT_FALSE(deadline.passed());
    for (const auto& engine : engines) {
      if (engine != nullptr) engine->progress();
    }
  }
}

HandMade::HandMade(const std::vector<int>& rails, size_t memory_bytes,
                   const std::array<uint8_t, 16>* reunited)
    : sockets(2), landing0(memory_bytes), landing1(memory_bytes) {
  std::vector<std::unique_ptr<Link>> links[2];
  for (const int rail : rails) {
    auto [one, other] = connected_pair();
    sockets[0].push_back(one.get());
    sockets[1].push_back(other.get());
    for (auto* fd : {&one, &other}) {
      auto link = std::make_unique<Link>();
      link->rail = rail;
      link->route = fmt::format("rail {}", rail);
      link->fd = std::move(*fd);
      links[fd == &other].push_back(std::move(link));
    }
  }
  std::vector<Way> ways;
  std::unique_ptr<Reunion> seeking, called;
  if (reunited != nullptr) {
    Listener listener = open_listener(loopback_config());
    door = listener.endpoints()[0];
    ways.assign(rails.size(), {door, {}});
    seeking = std::make_unique<Reunion>(Self{0, *reunited}, Listener(), kPatience);
    called = std::make_unique<Reunion>(Self{1, kSecret}, std::move(listener), kPatience);
  }
  engine0 = engine_over(std::move(links[0]), 1, landing0, std::move(ways), std::move(seeking));
  engine1 = engine_over(std::move(links[1]), 0, landing1, {}, std::move(called));
}

TcpPort& HandMade::port(int of_rank) {
  return static_cast<TcpPort&>(of_rank == 0 ? *engine0->port(1) : *engine1->port(0));
}

bool HandMade::whole() {
  for (const int rank : {0, 1}) {
    for (const auto& link : port(rank).sockets()) {
      if (!link->alive) return false;
    }
  }
  return true;
}

}  // namespace tessera::tcp
