// Paths that are not there yet when ranks start: waited for if there is no other, else done without.
#include <unistd.h>

#include "comm/checks.h"
#include "multihost/support/fixture.h"

namespace tessera::multihost {
namespace {

using std::chrono::seconds;
using test::quick_options;
using ::testing::HasSubstr;

std::string one_call(Communicator& comm, Board&) {
  test::check_sizes(comm, Collective::kAllReduce, {1000});
  return "";
}

struct Missing {
  const char* name;
  int host;  // whose path it is
  bool silently;

  void lose(Network& network, int rail) const {
    silently ? network.silence(host, rail) : network.unplug(host, rail);
  }
  void mend(Network& network, int rail) const {
    silently ? network.unsilence(host, rail) : network.plug(host, rail);
  }
};

class LatePath : public MultihostTest, public testing::WithParamInterface<Missing> {};

// Longer than a host's kernel looks for the other (3 s).
TEST_P(LatePath, IsWaitedForWhenThereIsNoOther) {
  Network network(2);
  GetParam().lose(network, 0);
  Job job(network, {0, 1, 1}, quick_options(), one_call);
  ::usleep(4'500'000);
  GetParam().mend(network, 0);
  expect_all_well(job, seconds(40));
}

// Interfaces that are ready lead nowhere.
TEST_P(LatePath, IsWaitedForWhenTheOthersLeadNowhere) {
  Network network(2);
  for (int host = 0; host < 2; ++host) {
    network.host(host).ip(fmt::format(
        "link add aaa index 10 type veth peer name bbb index 11\naddr add 10.9.{}.1/24 dev aaa\n"
        "link set aaa up\nlink set bbb up\n",
        host));
  }
  GetParam().lose(network, 0);
  Job job(network, {0, 1}, quick_options(), one_call);
  ::usleep(1'500'000);
  GetParam().mend(network, 0);
  expect_all_well(job, seconds(40));
}

TEST_P(LatePath, KeepsNobodyWaitingWhenThereIsAnother) {
  for (const int rail : {0, 1}) {
    Network network(2, 2);
    GetParam().lose(network, rail);
    Job job(network, {0, 1, 1}, quick_options(60'000), one_call);
    for (const Ending& ending : job.endings(seconds(70))) {
      EXPECT_EQ(ending.text, "");
      EXPECT_LE(ending.after, seconds(20));
    }
  }
}

TEST_P(LatePath, ThatNeverComesIsAnErrorAtTheDeadlineThatNamesIt) {
  Network network(2);
  GetParam().lose(network, 0);
  Job job(network, {0, 1}, quick_options(4000), one_call);
  const std::vector<Ending> endings = job.endings(seconds(40));
  for (const Ending& ending : endings) {
    EXPECT_FALSE(ending.hung);
    EXPECT_LE(ending.after, seconds(9)) << ending.text;
    EXPECT_THAT(ending.text, HasSubstr("create: "));
  }
  EXPECT_THAT(endings[0].text, HasSubstr("rank 1"));
  EXPECT_THAT(endings[1].text, HasSubstr("10.7.0.1"));
}

INSTANTIATE_TEST_SUITE_P(Paths, LatePath,
                         testing::Values(Missing{"CarrierOfTheFirstHost", 0, false},
                                         Missing{"CarrierOfTheSecondHost", 1, false},
                                         Missing{"SilentFirstHost", 0, true},
                                         Missing{"SilentSecondHost", 1, true}),
                         [](const auto& info) { return std::string(info.param.name); });

// They meet over eth1, and rank 1 wants its data by eth0, to which host 0 has no way at first.
TEST_F(MultihostTest, AWayThatComesUpAfterTheMeetingIsWaitedFor) {
  const Network network(2, 2);
  network.host(0).ip("link set eth0 down\n");
  const Job::OptionsOf options = [](int rank) {
    CommOptions own = quick_options();
    if (rank == 1) own.config.socket_ifname = "=eth0";
    return own;
  };
  Job job(network, {0, 1}, options, one_call);
  ::usleep(4'500'000);
  network.host(0).ip("link set eth0 up\n");
  expect_all_well(job, seconds(40));
}

}  // namespace
}  // namespace tessera::multihost
