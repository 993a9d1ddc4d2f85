#include "net_plugin/support/job.h"

#include <dlfcn.h>

#include <cstdlib>
#include <thread>

#include "transports/tcp/connect.h"

namespace tessera::net_plugin {
namespace {

constexpr std::array<uint8_t, 16> kSecret = {1, 2, 3};

Config loopback() {
  Config config;
  config.socket_ifname = "lo";
  return config;
}

tcp::Listener open_listener() {
  Result<tcp::Listener> listener = tcp::Listener::open(loopback());
  EXPECT_TRUE(listener.ok()) << listener.status().message();
  return std::move(listener.value());
}

Result<std::unique_ptr<PortEngine>> connect(tcp::Listener listener, int rank,
                                            std::span<const tcp::RemotePeer> peers,
                                            const std::string& plugin, Landing& landing,
                                            Deadline deadline) {
  Result<std::unique_ptr<Network>> network = Network::open(library(plugin), rank, 7);
  if (!network.ok()) return network.status();
  std::vector<PeerName> names;
  for (const tcp::RemotePeer& peer : peers)
    names.push_back({peer.rank, fmt::format("rank {} (host {})", peer.rank, peer.host_name)});
  Result<std::unique_ptr<Engine>> engine =
      Engine::create(std::move(network).value(), names, landing);
  if (!engine.ok()) return engine.status();
  Result<std::unique_ptr<PortEngine>> spare = tcp::connect(
      std::move(listener), rank, peers, kSecret, loopback(), engine.value()->control(), deadline);
  if (!spare.ok()) return spare.status();
  if (Status s = engine.value()->connect(std::move(spare).value(), deadline); !s.ok()) return s;
  return std::unique_ptr<PortEngine>(std::move(engine).value());
}

}  // namespace

std::string path_of(const std::string& name) {
  return fmt::format("{}/libnccl-net-{}.so", TESSERA_TEST_NET_PLUGINS, name);
}

std::shared_ptr<const Library> library(const std::string& name) {
  Result<std::shared_ptr<const Library>> library = Library::load(path_of(name), "");
  EXPECT_TRUE(library.ok()) << library.status().message();
  return library.value();
}

int asked(const std::string& name, const char* function) {
  void* handle = ::dlopen(path_of(name).c_str(), RTLD_NOW);
  EXPECT_NE(handle, nullptr) << ::dlerror();
  return reinterpret_cast<int (*)()>(::dlsym(handle, function))();
}

Fault::Fault(const char* variable, const std::string& value) : variable_(variable) {
  ::setenv(variable, value.c_str(), 1);
}

Fault::~Fault() {
  if (variable_ != nullptr) ::unsetenv(variable_);
}

Job::Job(int ranks, const std::string& plugin, size_t memory_bytes, int timeout_ms) {
  const auto n = static_cast<size_t>(ranks);
  std::vector<tcp::Listener> listeners;
  std::vector<tcp::RemotePeer> all;
  for (int rank = 0; rank < ranks; ++rank) {
    listeners.push_back(open_listener());
    const auto endpoints = listeners.back().endpoints();
    all.push_back({rank, "here", {endpoints.begin(), endpoints.end()}});
    landings.push_back(std::make_unique<MemoryLanding>(memory_bytes));
  }
  engines.resize(n);
  statuses.resize(n);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < n; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<tcp::RemotePeer> peers = all;
      peers.erase(peers.begin() + static_cast<std::ptrdiff_t>(rank));
      auto engine =
          connect(std::move(listeners[rank]), static_cast<int>(rank), peers, plugin,
                  *landings[rank], Deadline::after(std::chrono::milliseconds(timeout_ms)));
      statuses[rank] = engine.status();
      if (engine.ok()) engines[rank] = std::move(engine).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Job::expect_connected() const {
  for (const Status& status : statuses) ASSERT_TRUE(status.ok()) << status.message();
}

void Job::run_until(const std::function<bool()>& done) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  while (!done()) {
    ASSERT_FALSE(deadline.passed());
    for (const auto& engine : engines) {
      if (engine != nullptr) engine->progress();
    }
  }
}

}  // namespace tessera::net_plugin
