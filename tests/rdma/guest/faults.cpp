// What happens when RDMA stops working in the middle. The job goes on over TCP, or ends with an
// error that names the peer.
#include <gmock/gmock.h>

#include <csignal>

#include "base/deadline.h"
#include "rdma/guest/hosts.h"

namespace tessera::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void shell(const std::string& command) {
  EXPECT_EQ(::system(command.c_str()), 0) << command;  // NOLINT(cert-env33-c)
}

// Whether rank 0 says so, on all ranks.
bool agreed(Communicator& comm, bool mine) {
  int32_t said = mine ? 1 : 0, heard = 0;
  Call call;
  call.collective = Collective::kBroadcast;
  call.root = 0;
  call.send = &said;
  call.recv = &heard;
  call.count = 1;
  call.type = DataType::kInt32;
  EXPECT_TRUE(run(comm, call).ok());
  return heard != 0 || testing::Test::HasFailure();
}

// Calls of both kinds and several sizes, while `command` runs that many seconds after the first.
void disturb(Hosts& hosts, const std::string& command, const std::string& seconds = "0.2") {
  hosts.check([&](Communicator& comm) {
    if (comm.rank() == 0) shell("(sleep " + seconds + "; " + command + ") &");
    const Deadline over = Deadline::after(std::chrono::milliseconds(1500));
    for (int round = 0; round < 40 || !agreed(comm, over.passed()); ++round) {
      const Collective collective = kData[round % std::size(kData)];
      check(comm, {collective, has_root(collective) ? 0 : -1,
                   round % 3 == 0 ? size_t{100'003} : size_t{17}, false});
    }
  });
}

TEST(RdmaFaults, APathThatLosesEveryPacketIsLeftAndTheErrorSaysWhatHappened) {
  for (const char* seconds : {"0.05", "0.5"}) {
    Hosts hosts(2);
    disturb(hosts, "tc qdisc add dev wire0 root netem loss 100%", seconds);
    shell("tc qdisc del dev wire0 root");
    EXPECT_THAT(hosts.log_of(0) + hosts.log_of(1),
                AllOf(HasSubstr("transport retry counter exceeded (12"), HasSubstr("rxe"),
                      HasSubstr("GID 10.7.0."), HasSubstr("Going on over tcp")));
  }
}

TEST(RdmaFaults, APathThatLetsNothingThroughIsNotChosen) {
  Hosts hosts(2);
  shell("tc qdisc add dev wire0 root netem loss 100%");
  hosts.check([](Communicator& comm) { check_sizes(comm, Collective::kAllReduce, {1, 5000}); });
  shell("tc qdisc del dev wire0 root");
  EXPECT_THAT(hosts.log_of(0), HasSubstr("nothing gets through to rank 1"));
}

TEST(RdmaFaults, LossAndDelayThatRetriesCanMendAreMended) {
  Hosts hosts(2);
  hosts.options.config.ib_retries = 7;
  shell("tc qdisc add dev wire0 root netem loss 1% delay 1ms");
  disturb(hosts, "true");
  shell("tc qdisc del dev wire0 root");
  EXPECT_THAT(hosts.log_of(0), HasSubstr("over rxe0"));
}

TEST(RdmaFaults, TheJobGoesOnWhenAPortGoesDown) {
  Hosts hosts(4);
  disturb(hosts, "ip link set wire0 down");
  shell("ip link set wire0 up");
  EXPECT_THAT(hosts.log_of(0), AllOf(HasSubstr("rxe0:1"), HasSubstr("Going on over tcp")));
}

// Runs one all-reduce of which the last rank is not part: it does `instead`.
std::vector<Ending> without_the_last(Hosts& hosts,
                                     const std::function<void(Communicator&)>& instead) {
  return hosts.run([&](Communicator& comm) -> std::string {
    check(comm, {Collective::kAllReduce, -1, 1000, false});
    if (comm.rank() == comm.size() - 1) {
      instead(comm);
      return "";
    }
    std::vector<int32_t> in(100'000), out(100'000);
    Call call;
    call.collective = Collective::kAllReduce;
    call.send = in.data();
    call.recv = out.data();
    call.type = DataType::kInt32;
    call.count = in.size();
    return run(comm, call).message();
  });
}

TEST(RdmaFaults, TheSurvivorsOfADeathShrinkAndGoOnByRdma) {
  Hosts hosts(3);
  const std::vector<Ending> endings = hosts.run([&](Communicator& comm) -> std::string {
    check(comm, {Collective::kAllReduce, -1, 100'003, false});
    if (comm.rank() == 2) ::raise(SIGKILL);
    std::vector<int32_t> in(100'003), out(100'003);
    Call call;
    call.collective = Collective::kAllReduce;
    call.send = in.data();
    call.recv = out.data();
    call.type = DataType::kInt32;
    call.count = in.size();
    if (run(comm, call).ok()) return "an all-reduce without rank 2";
    const int excluded[] = {2};
    Result<std::unique_ptr<Communicator>> rest = comm.shrink(excluded, rdma_options());
    if (!rest.ok()) return rest.status().message();
    check_sizes(*rest.value(), Collective::kAllReduce, {1, 100'003});
    return testing::Test::HasFailure() ? "see above" : "";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(endings[rank].text, "") << hosts.log_of(rank);
}

TEST(RdmaFaults, ARankThatDiesIsNamed) {
  Hosts hosts(3);
  const std::vector<Ending> endings =
      without_the_last(hosts, [](Communicator&) { ::raise(SIGKILL); });
  EXPECT_TRUE(endings[2].killed);
  for (int rank = 0; rank < 2; ++rank) EXPECT_THAT(endings[rank].text, HasSubstr("rank 2"));
}

TEST(RdmaFaults, AnAbortEndsTheWaitsOfAll) {
  Hosts hosts(3);
  const std::vector<Ending> endings =
      without_the_last(hosts, [](Communicator& comm) { comm.abort(); });
  for (int rank = 0; rank < 2; ++rank) EXPECT_THAT(endings[rank].text, HasSubstr("rank 2"));
}

}  // namespace
}  // namespace tessera::test
