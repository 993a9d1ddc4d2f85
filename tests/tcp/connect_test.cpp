// Finding the way to peers, and keeping everybody else out.
#include <gmock/gmock.h>
#include <netinet/in.h>

#include <cstring>
#include <thread>

#include "base/deadline.h"
#include "tcp/support/job.h"
#include "transports/tcp/contact.h"
#include "transports/tcp/greeting.h"

namespace tessera::tcp {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

using Engine = Result<std::unique_ptr<PortEngine>>;

Deadline within(int milliseconds) {
  return Deadline::after(std::chrono::milliseconds(milliseconds));
}

constexpr int kGenerous = 60'000;

Endpoint ipv4(const char (&address)[4 + 1], uint16_t port, const char* interface) {
  Endpoint endpoint;
  endpoint.family = AF_INET;
  endpoint.port = port;
  std::memcpy(endpoint.address, address, 4);
  std::strncpy(endpoint.interface, interface, sizeof endpoint.interface - 1);
  return endpoint;
}

// Two ranks whose peers and secrets a test may bend before they connect.
class TwoRanks : public ::testing::Test {
 protected:
  void open(const Config& config) {
    config_ = config;
    for (int rank : {0, 1}) {
      listeners_.push_back(open_listener(config));
      peers_[1 - rank] = {peer_of(rank, listeners_.back())};
    }
  }

  Engine connect_rank(int rank, Deadline deadline,
                      const std::array<uint8_t, 16>& secret = kSecret) {
    const auto i = static_cast<size_t>(rank);
    return connect(std::move(listeners_[i]), rank, peers_[i], secret, config_, landings_[i],
                   deadline);
  }

  // Rank 0's outcome first.
  std::pair<Status, Status> connect_both(int timeout_ms) {
    Status first;
    std::thread thread([&] {
      Engine engine = connect_rank(0, within(timeout_ms));
      first = engine.status();
      if (engine.ok()) engines_[0] = std::move(engine.value());
    });
    Engine engine = connect_rank(1, within(timeout_ms));
    thread.join();
    if (engine.ok()) engines_[1] = std::move(engine.value());
    return {first, engine.status()};
  }

  void expect_traffic() {
    engines_[0]->port(1)->signal({0, 42, 0, {}});
    const Deadline deadline = within(kGenerous);
    while (landings_[1].signals().empty() && !deadline.passed()) {
      engines_[0]->progress();
      engines_[1]->progress();
    }
    ASSERT_EQ(landings_[1].signals().size(), 1U);
  }

  Config config_;
  std::vector<Listener> listeners_;
  std::vector<RemotePeer> peers_[2];  // of rank 0, of rank 1
  MemoryLanding landings_[2] = {MemoryLanding(64), MemoryLanding(64)};
  std::unique_ptr<PortEngine> engines_[2];
};

// A connection of somebody who is no peer.
Fd dial(const Endpoint& endpoint) {
  const SocketAddress address = socket_address(endpoint);
  Fd fd(::socket(endpoint.family, SOCK_STREAM, 0));
  EXPECT_EQ(::connect(fd.get(), address.get(), address.bytes), 0);
  return fd;
}

TEST_F(TwoRanks, AnIpv6AddressServesWhenTheFamilyIsChosen) {
  Config config = loopback_config();
  config.socket_family = "AF_INET6";
  if (!Listener::open(config).ok()) GTEST_SKIP() << "no IPv6 here";
  open(config);
  for (const Endpoint& endpoint : listeners_[0].endpoints()) EXPECT_EQ(endpoint.family, AF_INET6);
  const auto [first, second] = connect_both(kGenerous);
  ASSERT_TRUE(first.ok()) << first.message();
  ASSERT_TRUE(second.ok()) << second.message();
  expect_traffic();
}

TEST(TwoSockets, FramesMayFollowOnOneBeforeTheOtherIsReady) {
  const Config config = loopback_config(2);
  const Listener listener = open_listener(config);
  MemoryLanding landing(64);
  std::thread dialer([&] {
    const RemotePeer peer = peer_of(1, listener);
    Engine engine =
        connect(open_listener(config), 0, {&peer, 1}, kSecret, config, landing, within(kGenerous));
    EXPECT_TRUE(engine.ok()) << engine.status().message();
  });
  const Self self{1, kSecret};
  std::vector<std::unique_ptr<Guest>> guests;
  const Deadline deadline = within(kGenerous);
  size_t seated = 0;
  while (seated < 2 && !deadline.passed()) {
    Fd fd(::accept4(listener.sockets()[0].get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) guests.push_back(std::make_unique<Guest>(self, std::move(fd)));
    seated = 0;
    for (const auto& guest : guests) {
      guest->serve();
      if (guest->state() == Guest::State::kSeated) ++seated;
    }
  }
  ASSERT_EQ(guests.size(), 2U);
  guests[0]->say_ready();
  const char frame = 1;
  EXPECT_EQ(::send(guests[0]->fd(), &frame, 1, MSG_NOSIGNAL), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the dialer sees it
  guests[1]->say_ready();
  dialer.join();
}

TEST_F(TwoRanks, AddressesThatLeadNowhereOrToSomebodyElseAreNotChosen) {
  open(loopback_config());
  const Listener silent = open_listener(loopback_config());  // takes connections, never talks
  std::vector<Endpoint>& endpoints = peers_[0][0].endpoints;
  endpoints.insert(endpoints.begin(),
                   {ipv4("\x7f\0\0\1", 1, "docker0"),       // refuses
                    ipv4("\xc6\x33\x64\1", 4711, "veth0"),  // 198.51.100.1: for documents only
                    silent.endpoints()[0], listeners_[0].endpoints()[0]});  // the own rank
  const auto [first, second] = connect_both(kGenerous);
  ASSERT_TRUE(first.ok()) << first.message();
  ASSERT_TRUE(second.ok()) << second.message();
  expect_traffic();
}

TEST_F(TwoRanks, WhenNoAddressLeadsToThePeerTheErrorTellsEachOne) {
  open(loopback_config());
  peers_[0][0].host_name = "node7";
  peers_[0][0].endpoints = {ipv4("\x7f\0\0\1", 1, "eth0"), listeners_[0].endpoints()[0]};
  const Engine engine = connect_rank(0, within(kGenerous));
  EXPECT_EQ(engine.status().code(), Code::kRemote);
  EXPECT_THAT(engine.status().message(),
              HasSubstr("rank 0 cannot reach rank 1 (host node7): no address leads there; "
                        "127.0.0.1:1 (eth0): Connection refused"));
  EXPECT_THAT(engine.status().message(), HasSubstr("rank 0 answers there"));
  EXPECT_THAT(engine.status().message(), HasSubstr("NCCL_SOCKET_IFNAME"));
}

TEST_F(TwoRanks, APeerThatNeverComesIsNamedAtTheDeadlineByBothSides) {
  open(loopback_config());
  const Engine first = connect_rank(0, within(300));
  EXPECT_EQ(first.status().code(), Code::kTimeout);
  EXPECT_THAT(first.status().message(), HasSubstr("rank 1 (host here) has not answered"));
  EXPECT_THAT(first.status().message(), HasSubstr("nobody has answered the greeting"));
  const Engine second = connect_rank(1, within(300));
  EXPECT_EQ(second.status().code(), Code::kTimeout);
  EXPECT_THAT(second.status().message(),
              HasSubstr("rank 0 (host here) has not connected to any of 127.0.0.1:"));
}

TEST_F(TwoRanks, WhoDoesNotKnowTheSecretIsRefusedByBothSides) {
  open(loopback_config());
  std::array<uint8_t, 16> wrong = kSecret;
  wrong[15] ^= 1;
  Status first;
  std::thread thread([&] { first = connect_rank(0, within(kGenerous), wrong).status(); });
  const Engine second = connect_rank(1, within(2000));
  thread.join();
  EXPECT_EQ(first.code(), Code::kRemote);
  EXPECT_THAT(first.message(), HasSubstr("does not know the secret of this communicator"));
  EXPECT_EQ(second.status().code(), Code::kTimeout);
  EXPECT_THAT(second.status().message(), HasSubstr("did not belong to this communicator"));
}

// A dialer that shows what it saw, or nothing, instead of a proof.
TEST_F(TwoRanks, AnAnswerPlayedBackIsNoProof) {
  open(loopback_config());
  const Endpoint endpoint = listeners_[1].endpoints()[0];
  Fd stranger = dial(endpoint);
  Hello hello;
  hello.from = 0;
  hello.to = 1;
  ASSERT_EQ(::send(stranger.get(), &hello, sizeof hello, 0), ssize_t{sizeof hello});
  std::thread thread([&] {
    Answer answer;
    ASSERT_EQ(::recv(stranger.get(), &answer, sizeof answer, MSG_WAITALL), ssize_t{sizeof answer});
    EXPECT_EQ(answer.rank, 1);
    ::send(stranger.get(), &answer.proof, sizeof answer.proof, MSG_NOSIGNAL);
    const Seat seat = {0, 1, 0, 0};
    ::send(stranger.get(), &seat, sizeof seat, MSG_NOSIGNAL);
    Ready ready;
    EXPECT_LE(::recv(stranger.get(), &ready, sizeof ready, MSG_WAITALL), 0);
  });
  EXPECT_EQ(connect_rank(1, within(1500)).status().code(), Code::kTimeout);
  thread.join();
}

TEST_F(TwoRanks, GarbageSilenceAndPortScansDoNotDisturb) {
  open(loopback_config());
  const Endpoint endpoint = listeners_[1].endpoints()[0];
  std::vector<Fd> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(dial(endpoint));
    if (i % 3 == 0) {
      const std::string garbage(4096, static_cast<char>(i));
      ::send(strangers.back().get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    } else if (i % 3 == 1) {
      strangers.back().reset();
    }
  }
  const auto [first, second] = connect_both(kGenerous);
  ASSERT_TRUE(first.ok()) << first.message();
  ASSERT_TRUE(second.ok()) << second.message();
  expect_traffic();
}

TEST_F(TwoRanks, ImpossibleSeatsAreRefused) {
  open(loopback_config());
  Fd knowing = dial(listeners_[1].endpoints()[0]);
  std::thread thread([&] {
    for (uint32_t count : {0U, 1U << 30}) {
      if (count != 0) knowing = dial(peers_[0][0].endpoints[0]);
      Hello hello;
      hello.from = 0;
      hello.to = 1;
      ::send(knowing.get(), &hello, sizeof hello, MSG_NOSIGNAL);
      Answer answer;
      ASSERT_EQ(::recv(knowing.get(), &answer, sizeof answer, MSG_WAITALL), ssize_t{sizeof answer});
      const Digest proof = prove(kSecret, Role::kDialer, hello, answer.nonce);
      ::send(knowing.get(), &proof, sizeof proof, MSG_NOSIGNAL);
      const Seat seat = {0, count, 0, 0};
      ::send(knowing.get(), &seat, sizeof seat, MSG_NOSIGNAL);
      Ready ready;
      EXPECT_LE(::recv(knowing.get(), &ready, sizeof ready, MSG_WAITALL), 0);
    }
  });
  EXPECT_EQ(connect_rank(1, within(2000)).status().code(), Code::kTimeout);
  thread.join();
}

TEST(OpenListener, LoopbackServesOnlyWhenNamedOrAlone) {
  const Result<Listener> any = Listener::open({});
  ASSERT_TRUE(any.ok()) << any.status().message();
  int loopbacks = 0;
  for (const Endpoint& endpoint : any->endpoints()) loopbacks += is_loopback(endpoint) ? 1 : 0;
  EXPECT_TRUE(loopbacks == 0 || loopbacks == static_cast<int>(any->endpoints().size()));
  const Listener named = open_listener(loopback_config());
  for (const Endpoint& endpoint : named.endpoints()) EXPECT_TRUE(is_loopback(endpoint));
}

TEST(OpenListener, AnInterfaceThatIsNotThereIsAnErrorThatNamesThoseThatAre) {
  Config config;
  config.socket_ifname = "nosuch7";
  const Result<Listener> listener = Listener::open(config);
  EXPECT_EQ(listener.status().code(), Code::kInvalidUsage);
  EXPECT_THAT(listener.status().message(), HasSubstr("NCCL_SOCKET_IFNAME=\"nosuch7\""));
  EXPECT_THAT(listener.status().message(), HasSubstr("lo"));
}

TEST(Addresses, AreReadableAndKnowTheirSubnet) {
  const Endpoint a = ipv4("\x0a\1\2\3", 80, "eth0");
  EXPECT_EQ(to_text(a), "10.1.2.3:80 (eth0)");
  LocalAddress local;
  local.endpoint = ipv4("\x0a\1\2\4", 0, "eth0");
  local.mask[0] = local.mask[1] = local.mask[2] = 0xff;
  EXPECT_TRUE(local.same_subnet(a));
  EXPECT_FALSE(local.same_subnet(ipv4("\x0a\1\3\3", 80, "eth0")));
  Endpoint b;
  b.family = AF_INET6;
  b.address[15] = 1;
  b.port = 7;
  EXPECT_EQ(to_text(b), "[::1]:7");
  EXPECT_FALSE(local.same_subnet(b));
}

}  // namespace
}  // namespace tessera::tcp
