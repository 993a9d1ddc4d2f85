// Communicators over hosts that a plugin connects; hosts are threads that give different host ids.
#include <gmock/gmock.h>

#include "comm/checks.h"
#include "comm/processes.h"
#include "net_plugin/support/job.h"

namespace tessera::test {
namespace {

using net_plugin::asked;
using net_plugin::Fault;
using net_plugin::path_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

CommOptions options_for(const std::string& plugin, int timeout_ms = 20'000) {
  CommOptions options = quick_options(timeout_ms);
  options.config.net_plugin = path_of(plugin);
  options.config.socket_ifname = "lo";
  return options;
}

Call all_reduce(const std::vector<int32_t>& in, std::vector<int32_t>& out) {
  Call call;
  call.collective = Collective::kAllReduce;
  call.send = in.data();
  call.recv = out.data();
  call.type = DataType::kInt32;
  call.count = in.size();
  return call;
}

class PluggedHosts : public ::testing::TestWithParam<std::tuple<const char*, std::vector<int>>> {
 protected:
  std::string plugin() const { return std::get<0>(GetParam()); }
  const std::vector<int>& hosts() const { return std::get<1>(GetParam()); }
  int ranks() const { return static_cast<int>(hosts().size()); }
};

TEST_P(PluggedHosts, EveryCollectiveGivesTheRightResultThroughThePlugin) {
  run_ranks(
      ranks(), options_for(plugin()),
      [&](Communicator& comm) {
        EXPECT_GT(asked(plugin(), "plugin_open"), 0);
        for (const Collective collective : kData)
          check_sizes(comm, collective, {0, 1, 13, 1023, 20'011, 150'003});
        EXPECT_TRUE(comm.finalize().ok());
      },
      hosts());
  EXPECT_EQ(asked(plugin(), "plugin_open"), 0);
}

TEST_P(PluggedHosts, ChildrenConnectAnew) {
  run_ranks(
      ranks(), options_for(plugin()),
      [](Communicator& comm) {
        Result<std::unique_ptr<Communicator>> child =
            comm.split(comm.rank() % 2, -comm.rank(), comm.options());
        ASSERT_TRUE(child.ok()) << child.status().message();
        check_sizes(*child.value(), Collective::kAllReduce, {1, 5000});
        EXPECT_TRUE(child.value()->finalize().ok());
        EXPECT_TRUE(comm.finalize().ok());
      },
      hosts());
  EXPECT_EQ(asked(plugin(), "plugin_open"), 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, PluggedHosts,
                         ::testing::Combine(::testing::Values("v8", "v10", "v12"),
                                            ::testing::Values(std::vector{0, 1},
                                                              std::vector{0, 0, 1, 1},
                                                              std::vector{0, 1, 2})),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + std::string("on");
                           for (const int host : std::get<1>(info.param))
                             name += std::to_string(host);
                           return name;
                         });

TEST(PluggedCommunicator, ASlowPluginMakesItSlowAndNotWrong) {
  for (const auto& [variable, value] :
       {std::pair{"TEST_NET_RARELY", "7"}, {"TEST_NET_PIECES", "777"}, {"TEST_NET_LATER", "20"}}) {
    const Fault fault(variable, value);
    run_ranks(3, options_for("v11"),
              [](Communicator& comm) {
                for (const Collective collective : {Collective::kAllReduce, Collective::kAllToAll})
                  check_sizes(comm, collective, {1, 1023, 40'011});
              },
              {0, 1, 1});
  }
}

TEST(PluggedCommunicator, RanksThatUseDifferentPluginsAreTold) {
  const CommOptions options = options_for("v8");
  Result<UniqueId> id = create_unique_id(options.config);
  ASSERT_TRUE(id.ok());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      CommOptions own = options;
      if (rank == 1) own.config.net_plugin = "none";
      const auto comm = Communicator::create(id.value(), 2, rank, own);
      EXPECT_EQ(comm.status().code(), Code::kInvalidUsage);
      EXPECT_THAT(comm.status().message(),
                  AllOf(HasSubstr("NCCL_NET_PLUGIN (in use)"), HasSubstr("sockets (version 8)")));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PluggedCommunicator, APluginThatIsNotThereIsAnError) {
  const CommOptions options = options_for("absent");
  Result<UniqueId> id = create_unique_id(options.config);
  ASSERT_TRUE(id.ok());
  const auto comm = Communicator::create(id.value(), 1, 0, options);
  EXPECT_EQ(comm.status().code(), Code::kInvalidUsage);
  EXPECT_THAT(comm.status().message(), HasSubstr("NCCL_NET_PLUGIN"));
}

TEST(PluggedCommunicator, APluginThatFailsInTheMiddleEndsTheCallOfAllRanks) {
  const Fault fault("TEST_NET_FAIL", "isend:400");
  run_ranks(3, options_for("v12"),
            [](Communicator& comm) {
              const std::vector<int32_t> in(30'000);
              std::vector<int32_t> out(in.size());
              Status status;
              for (int i = 0; i < 1000 && status.ok(); ++i) status = run(comm, all_reduce(in, out));
              EXPECT_EQ(status.code(), Code::kRemote) << status.message();
              EXPECT_THAT(status.message(), AllOf(HasSubstr("net plugin sockets (version 12)"),
                                                  HasSubstr("isend() failed with result 2")));
            },
            {0, 1, 2});
}

class ADeadPeer : public ::testing::TestWithParam<const char*> {};

TEST_P(ADeadPeer, IsNoticedByThePluginOrWithoutIt) {
  const Fault fault("TEST_NET_DEAF", GetParam());
  const std::vector<Ending> endings = run_processes(
      2, options_for("v10"),
      [](Communicator& comm) -> std::string {
        const std::vector<int32_t> in(30'000);
        std::vector<int32_t> out(in.size());
        for (int i = 0; i < 20; ++i) {
          if (const Status s = run(comm, all_reduce(in, out)); !s.ok()) return s.message();
        }
        if (comm.rank() == 1) ::raise(SIGKILL);
        return run(comm, all_reduce(in, out)).message();
      },
      [](int rank, CommOptions& own) { own.config.host_id = "host " + std::to_string(rank); });
  EXPECT_TRUE(endings[1].killed);
  EXPECT_THAT(endings[0].text, HasSubstr("rank 1"));
  EXPECT_THAT(endings[0].text, Not(HasSubstr("no progress")));
}

INSTANTIATE_TEST_SUITE_P(Deaf, ADeadPeer, ::testing::Values("0", "1"));

}  // namespace
}  // namespace tessera::test
