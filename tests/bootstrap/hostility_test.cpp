// Strangers at the root's door.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>

#include <random>

#include "bootstrap/rendezvous.h"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;

std::string garbage(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST(Hostility, TwoHundredSilentConnectionsDoNotDelayTheRanks) {
  const UniqueId id = new_id();
  std::vector<Fd> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(connect_raw(id));
  expect_all_joined(join_all(id, ranks_of(8)));
}

TEST(Hostility, MoreSilentConnectionsThanTheRootKeepsDoNotLockTheRanksOut) {
  const UniqueId id = new_id();
  std::vector<Fd> silent;
  for (int i = 0; i < 600; ++i) silent.push_back(connect_raw(id));
  expect_all_joined(join_all(id, ranks_of(4)));
}

TEST(Hostility, PortScansAreIgnored) {
  const UniqueId id = new_id();
  for (int i = 0; i < 300; ++i) connect_raw(id).reset();
  expect_all_joined(join_all(id, ranks_of(4)));
}

TEST(Hostility, GarbageIsClosedOutAndTheJobGoesOn) {
  const UniqueId id = new_id();
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Fd fd = connect_raw(id);
    send_raw(fd, garbage(1 + 97 * seed, seed));
    if (seed % 2 == 0) continue;
    if (97 * seed >= sizeof(bootstrap::FrameHeader)) {
      EXPECT_TRUE(closed_by_root(fd));
    }
  }
  expect_all_joined(join_all(id, ranks_of(4)));
}

TEST(Hostility, HalfAHelloIsNotWaitedForByTheOthers) {
  const UniqueId id = new_id();
  std::vector<Fd> halves;
  for (size_t part = 1; part < 100; part += 7) {
    halves.push_back(connect_raw(id));
    const std::string frame = frame_of(id, read_nonce(halves.back()), hello_of(1, 4));
    ASSERT_TRUE(send_raw(halves.back(), std::string_view(frame).substr(0, part)));
  }
  expect_all_joined(join_all(id, ranks_of(4)));
}

TEST(Hostility, AHelloInSmallPiecesIsUnderstood) {
  const UniqueId id = new_id();
  const Fd fd = connect_raw(id);
  const std::string frame = frame_of(id, read_nonce(fd), hello_of(0, 1));
  for (const char c : frame) ASSERT_TRUE(send_raw(fd, std::string_view(&c, 1)));
  EXPECT_TRUE(read_reply(fd).ok());
}

TEST(Hostility, AnOversizedHelloIsClosedAfterItsHeader) {
  const UniqueId id = new_id();
  for (const uint64_t bytes : {uint64_t{bootstrap::kMaxHelloBytes} + 1, ~uint64_t{0}}) {
    const Fd fd = connect_raw(id);
    read_nonce(fd);
    bootstrap::FrameHeader header{
        bootstrap::kWireMagic, bootstrap::kVersion, bootstrap::MessageKind::kHello, bytes, {}};
    ASSERT_TRUE(send_raw(fd, bootstrap::bytes_of(header)));
    EXPECT_TRUE(closed_by_root(fd));
  }
  expect_all_joined(join_all(id, ranks_of(2)));
}

TEST(Hostility, AWrongSecretGetsNoAnswerAndDoesNotCountAsARank) {
  const UniqueId id = new_id();
  bootstrap::IdContent wrong = content_of(id);
  wrong.secret[7] ^= 1;
  const auto intruder = join(bootstrap::encode(wrong), {0, 2, {}}, soon());
  EXPECT_EQ(intruder.status().code(), Code::kRemote);
  EXPECT_THAT(intruder.status().message(), HasSubstr("another job"));
  expect_all_joined(join_all(id, ranks_of(2)));
}

TEST(Hostility, ARecordedHelloCannotBeReplayed) {
  const UniqueId id = new_id();
  const Fd first = connect_raw(id);
  const std::string frame = frame_of(id, read_nonce(first), hello_of(0, 2));
  const Fd second = connect_raw(id);
  read_nonce(second);
  ASSERT_TRUE(send_raw(second, frame));
  EXPECT_TRUE(closed_by_root(second));
  expect_all_joined(join_all(id, ranks_of(2)));
}

TEST(Hostility, AGenuineFrameWithAMangledBodyIsRefusedWithAReason) {
  const UniqueId id = new_id();
  const Fd fd = connect_raw(id);
  std::string body = bootstrap::pack(hello_of(0, 2));
  body.resize(body.size() - 3);
  const auto header =
      bootstrap::seal(content_of(id).secret, read_nonce(fd), bootstrap::MessageKind::kHello, body);
  ASSERT_TRUE(send_raw(fd, bootstrap::bytes_of(header) + body));
  EXPECT_EQ(read_reply(fd).code(), Code::kInternal);
}

TEST(Hostility, AConnectionWithoutAHelloIsClosedAtItsLimit) {
  bootstrap::RootOptions options;
  options.hello_limit = std::chrono::milliseconds(1);
  auto listener = bootstrap::listen_at(bootstrap::make_address(in_addr{htonl(INADDR_LOOPBACK)}, 0));
  ASSERT_TRUE(listener.ok());
  bootstrap::IdContent content;
  content.address = listener.value().address;
  options.idle = std::chrono::seconds(20);
  ASSERT_TRUE(bootstrap::start_root(std::move(listener).value(), content.secret, options).ok());
  EXPECT_TRUE(closed_by_root(connect_raw(bootstrap::encode(content))));
}

TEST(Hostility, ARankDoesNotBelieveAStrangerInTheRootsPlace) {
  auto listener = bootstrap::listen_at(bootstrap::make_address(in_addr{htonl(INADDR_LOOPBACK)}, 0));
  ASSERT_TRUE(listener.ok());
  bootstrap::IdContent content;
  content.address = listener.value().address;
  std::optional<Result<Membership>> result;
  std::thread rank([&] { result = join(bootstrap::encode(content), {0, 1, {}}, soon()); });
  pollfd polled = {listener.value().fd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&polled, 1, 20'000), 1);
  const Fd fd(::accept(listener.value().fd.get(), nullptr, nullptr));
  ASSERT_TRUE(send_raw(fd, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"));
  rank.join();
  EXPECT_EQ(result->status().code(), Code::kRemote);
  EXPECT_THAT(result->status().message(), HasSubstr("not the root of this unique id"));
}

}  // namespace
}  // namespace tessera::testing
