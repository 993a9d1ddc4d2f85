#include "comm/bootstrap/unique_id.h"

#include <gmock/gmock.h>
#include <netinet/in.h>

#include "bootstrap/rendezvous.h"
#include "comm/bootstrap/agreement.h"

namespace tessera::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(UniqueId, GarbageIsRefusedAtOnce) {
  UniqueId ones;
  ones.fill('\1');
  for (const UniqueId& id : {UniqueId{}, ones}) {
    const auto result = join(id, {0, 1, {}}, soon());
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(result.status().message(), HasSubstr("not a unique id"));
  }
}

TEST(UniqueId, AFlippedBitAnywhereIsNoticed) {
  Config config;
  config.timeout = std::chrono::milliseconds(1);
  const UniqueId good = new_id(config);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    UniqueId bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(bootstrap::decode(bad).status().code(), Code::kInvalidArgument) << bit;
  }
}

TEST(UniqueId, HoldsAddressesSecretAndCreator) {
  bootstrap::IdContent in;
  in.address = bootstrap::make_address(in6addr_loopback, 4711, 0);
  in6_addr far = {};
  far.s6_addr[0] = 0xfd;
  far.s6_addr[15] = 1;
  in.others = {bootstrap::make_address(in_addr{htonl(0x0a010203)}, 0),
               bootstrap::make_address(far, 0, 0)};
  in.secret = {1, 2, 3};
  in.hosted_by_rank_zero = true;
  in.creator = 99;
  const auto out = bootstrap::decode(bootstrap::encode(in));
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(bootstrap::to_text(out.value().address), "[::1]:4711");
  ASSERT_EQ(out.value().others.size(), 2U);
  EXPECT_EQ(bootstrap::to_text(out.value().others[0]), "10.1.2.3:4711");
  EXPECT_EQ(bootstrap::to_text(out.value().others[1]), "[fd00::1]:4711");
  EXPECT_EQ(out.value().secret, in.secret);
  EXPECT_TRUE(out.value().hosted_by_rank_zero);
  EXPECT_EQ(out.value().creator, 99);
}

TEST(UniqueId, TwoIdsHaveDifferentSecrets) {
  Config config;
  config.timeout = std::chrono::milliseconds(1);
  EXPECT_NE(content_of(new_id(config)).secret, content_of(new_id(config)).secret);
}

TEST(UniqueId, ABadCommIdIsRefusedWithItsText) {
  for (const char* text :
       {"nothing", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:4k",
        ":4711", "::1:4711", "[::1]", "[127.0.0.1]:4711", "[]:4711", "no such host:4711"}) {
    Config config;
    config.comm_id = text;
    const auto id = create_unique_id(config);
    EXPECT_EQ(id.status().code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(id.status().message(),
                AllOf(HasSubstr("NCCL_COMM_ID"), HasSubstr(text), HasSubstr("[ipv6]:port")));
  }
}

TEST(UniqueId, AnInterfaceNameThatMatchesNothingNamesTheInterfacesThereAre) {
  for (const char* text : {"nosuch", "=l", "nosuch,neither"}) {
    Config config;
    config.socket_ifname = text;
    const auto id = create_unique_id(config);
    EXPECT_EQ(id.status().code(), Code::kInvalidUsage);
    EXPECT_THAT(id.status().message(),
                AllOf(HasSubstr(fmt::format("NCCL_SOCKET_IFNAME=\"{}\"", text)),
                      HasSubstr("this host has: "), HasSubstr("lo")));
  }
}

TEST(UniqueId, AnExcludedInterfaceIsNotChosen) {
  const auto loopback = bootstrap::choose_addresses("lo");
  ASSERT_TRUE(loopback.ok());
  const auto other = bootstrap::choose_addresses("^lo");
  if (other.ok()) {
    EXPECT_NE(bootstrap::to_text(other.value()[0]), bootstrap::to_text(loopback.value()[0]));
  } else {
    EXPECT_EQ(other.status().code(), Code::kInvalidUsage);
  }
}

TEST(UniqueId, TheFamilyThatIsWantedIsChosen) {
  const auto six = bootstrap::choose_addresses("", "AF_INET6");
  ASSERT_TRUE(six.ok());
  for (const auto& address : six.value()) EXPECT_EQ(address.family(), AF_INET6);
  const auto four = bootstrap::choose_addresses("lo", "AF_INET");
  ASSERT_TRUE(four.ok());
  EXPECT_EQ(four.value()[0].family(), AF_INET);
}

TEST(UniqueId, AnInterfacePrefixMatches) {
  const auto address = bootstrap::choose_addresses("nosuch,l");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(bootstrap::to_text(address.value()[0]), "127.0.0.1:0");
}

TEST(Agreement, RunsOfRanksAreShortened) {
  using bootstrap::list_of;
  EXPECT_EQ(list_of(std::vector<int>{}), "");
  EXPECT_EQ(list_of(std::vector<int>{3}), "3");
  EXPECT_EQ(list_of(std::vector<int>{3, 4}), "3, 4");
  EXPECT_EQ(list_of(std::vector<int>{0, 2, 3, 4, 9, 10}), "0, 2-4, 9, 10");
}

TEST(Agreement, MissingRanksAreCountedInWords) {
  using std::chrono::milliseconds;
  EXPECT_EQ(bootstrap::missing_text(std::vector<int>{2, 5}, 8, milliseconds(30'000)),
            "ranks 2, 5 of 8 have not joined within 30 s");
  EXPECT_EQ(bootstrap::missing_text(std::vector<int>{1}, 2, milliseconds(250)),
            "rank 1 of 2 has not joined within 0.25 s");
}

TEST(Wire, EveryCutOfAMessageIsRefused) {
  const std::string hello = bootstrap::pack(hello_of(1, 2));
  ASSERT_TRUE(bootstrap::unpack_hello(hello).ok());
  for (size_t n = 0; n < hello.size(); ++n) {
    EXPECT_FALSE(bootstrap::unpack_hello(hello.substr(0, n)).ok()) << n;
  }
  EXPECT_FALSE(bootstrap::unpack_hello(hello + "x").ok());
  const std::string welcome = bootstrap::pack(bootstrap::Welcome{{}, std::vector<Member>(3)});
  ASSERT_TRUE(bootstrap::unpack_welcome(welcome).ok());
  for (size_t n = 0; n < welcome.size(); ++n) {
    EXPECT_FALSE(bootstrap::unpack_welcome(welcome.substr(0, n)).ok()) << n;
  }
}

TEST(Wire, ARejectionKeepsCodeAndWordsAndIsNeverOk) {
  const Status reason(Code::kInvalidUsage, "because");
  const Status back = bootstrap::unpack_rejection(bootstrap::pack_rejection(reason));
  EXPECT_EQ(back.code(), reason.code());
  EXPECT_EQ(back.message(), reason.message());
  EXPECT_FALSE(bootstrap::unpack_rejection(bootstrap::pack_rejection(Status())).ok());
  EXPECT_FALSE(bootstrap::unpack_rejection("").ok());
}

}  // namespace
}  // namespace tessera::testing
