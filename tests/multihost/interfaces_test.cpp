// Hosts with interfaces that lead nowhere, names that mean nothing, and settings that are wrong.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "multihost/support/fixture.h"

namespace tessera::multihost {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::quick_options;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string some_traffic(Communicator& comm, Board& board) {
  Traffic traffic;
  traffic.rounds = 30;
  return run_traffic(comm, board, traffic);
}

class Interfaces : public MultihostTest {
 protected:
  void expect_well(const Network& network, const CommOptions& options) {
    Job job(network, {0, 1, 1}, options, some_traffic);
    expect_all_well(job, seconds(40));
  }
};

// As it is on hosts that run containers: the same address everywhere, and no way to another host.
TEST_F(Interfaces, BridgesOfContainersArePassedOver) {
  const Network network(2);
  for (int host = 0; host < 2; ++host) {
    network.host(host).ip(
        "link add docker0 index 10 type bridge\naddr add 172.17.0.1/16 dev docker0\n"
        "link add c1 type veth peer name c2\nlink set c1 master docker0 up\nlink set c2 up\n"
        "link set docker0 up\n");
  }
  expect_well(network, quick_options());
}

// Nothing in their names tells.
TEST_F(Interfaces, AddressesThatLeadNowhereArePassedOver) {
  const Network network(2);
  for (int host = 0; host < 2; ++host) {
    network.host(host).ip(
        "link add aaa index 10 type veth peer name bbb index 11\naddr add 10.9.0.1/24 dev aaa\n"
        "addr add 10.9.1.1/24 dev bbb\nlink set aaa up\nlink set bbb up\n");
  }
  expect_well(network, quick_options());
}

TEST_F(Interfaces, APairWithoutItsOtherEndIsPassedOver) {
  const Network network(2);
  for (int host = 0; host < 2; ++host) {
    network.host(host).ip(
        "link add aaa index 10 type veth peer name bbb index 11\naddr add 10.9.0.1/24 dev "
        "aaa\nlink set aaa up\n");
  }
  expect_well(network, quick_options());
}

TEST_F(Interfaces, LinkLocalAddressesArePassedOver) {
  const Network network(2, 1, Family::kIpv6);
  for (int host = 0; host < 2; ++host)
    network.host(host).ip(
        "link add aaa index 10 type veth peer name bbb index 11\nlink set aaa up\nlink set bbb "
        "up\n");
  expect_well(network, quick_options());
}

TEST_F(Interfaces, OneThatIsNamedIsUsed) {
  const Network network(2, 2);
  CommOptions options = quick_options();
  options.config.socket_ifname = "=eth1";
  network.host(0).ip("link set eth0 down\n");
  expect_well(network, options);
}

TEST_F(Interfaces, TheFamilyThatIsNamedIsUsed) {
  const Network network(2, 1, Family::kIpv6);
  CommOptions options = quick_options();
  options.config.socket_family = "AF_INET6";
  for (int host = 0; host < 2; ++host) network.host(host).ip("addr add 10.9.0.1/24 dev eth0\n");
  expect_well(network, options);
}

TEST_F(Interfaces, HostsOfOneNameAreDifferentHosts) {
  const Network network(2);
  CommOptions options = quick_options();
  options.name = "node";
  expect_well(network, options);
}

class WrongSettings : public MultihostTest {
 protected:
  // Rank 1 has these, and all ranks are to fail to make the communicator.
  std::vector<Ending> endings_with(const std::string& ifname, const Network& network) {
    const auto options = [&](int rank) {
      CommOptions own = quick_options(3000);
      if (rank == 1) own.config.socket_ifname = ifname;
      return own;
    };
    Job job(network, {0, 1}, options, some_traffic);
    const std::vector<Ending> endings = job.endings(seconds(30));
    for (const Ending& ending : endings) {
      EXPECT_FALSE(ending.hung);
      EXPECT_LE(ending.after, milliseconds(8000)) << ending.text;
      EXPECT_THAT(ending.text, HasSubstr("create: "));
    }
    return endings;
  }
};

TEST_F(WrongSettings, AnInterfaceThatIsNotThereIsNamedWithThoseThatAre) {
  const Network network(2);
  const std::vector<Ending> endings = endings_with("=ib7", network);
  EXPECT_THAT(endings[1].text, AllOf(HasSubstr("NCCL_SOCKET_IFNAME=\"=ib7\""), HasSubstr("eth0")));
}

TEST_F(WrongSettings, AnInterfaceThatLeadsNowhereIsNamedToBothSides) {
  const Network network(2);
  network.host(1).ip(
      "link add aaa index 10 type veth peer name bbb index 11\naddr add 10.9.0.1/24 dev aaa\nlink "
      "set aaa up\n"
      "link set bbb up\n");
  network.host(1).await_carrier("aaa");
  const std::vector<Ending> endings = endings_with("=aaa", network);
  EXPECT_THAT(endings[0].text, AllOf(HasSubstr("rank 1"), HasSubstr("10.9.0.1")));
  EXPECT_THAT(endings[1].text, HasSubstr("rank 0"));
}

TEST_F(WrongSettings, AHostWithoutItsCableCannotJoinAndSaysWhereItWanted) {
  Network network(2);
  network.silence(1);
  const std::vector<Ending> endings = endings_with("", network);
  EXPECT_THAT(endings[0].text, HasSubstr("rank 1"));
  EXPECT_THAT(endings[1].text, HasSubstr("10.7.0.1"));
}

// What forces a choice must be equal everywhere; what describes a host, on it.
TEST_F(Interfaces, HostsThatDifferInWhatDecidesAreToldByRankAndValue) {
  const Network network(2);
  const Job::OptionsOf options = [](int rank) {
    CommOptions own = quick_options();
    if (rank == 2) own.config.nccl_algorithms = "ring";
    return own;
  };
  Job job(network, {0, 1, 1}, options, some_traffic);
  for (const Ending& ending : job.endings(seconds(20))) {
    EXPECT_FALSE(ending.hung);
    EXPECT_THAT(ending.text,
                AllOf(HasSubstr("create: "), HasSubstr("rank 2 has NCCL_ALGO=\"ring\""),
                      HasSubstr("NCCL_ALGO=\"\"")));
  }
}

TEST_F(Interfaces, HostsThatAreDescribedDifferentlyWorkTogether) {
  const std::string file = testing::TempDir() + fmt::format("one-host-{}.xml", getpid());
  std::ofstream(file) << R"(<system version="1"><cpu numaid="0" affinity="f"/></system>)";
  const Network network(2);
  const Job::OptionsOf options = [&](int rank) {
    CommOptions own = quick_options();
    if (rank > 0) own.config.topology_file = file;
    return own;
  };
  Job job(network, {0, 1, 1}, options, some_traffic);
  expect_all_well(job, seconds(40));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tessera::multihost
