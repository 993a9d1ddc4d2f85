// What a plugin, or a peer, does wrong has a name, and comes to an end.
#include <gmock/gmock.h>

#include "net_plugin/support/job.h"

namespace tessera::net_plugin {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string failing(const char* function) {
  return fmt::format("{}() failed with result 2 (system error)", function);
}

class PluginFailure : public ::testing::TestWithParam<const char*> {};

TEST_P(PluginFailure, WhileConnectingEndsAllRanksWithItsNameAndThePeers) {
  const Fault fault("TEST_NET_FAIL", fmt::format("{}:1", GetParam()));
  Job job(3, "v12", 4096, 20'000);
  bool named = false;
  for (const Status& status : job.statuses) {
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.code(), Code::kTimeout) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("rank "));
    if (status.message().find(failing(GetParam())) != std::string::npos) {
      named = true;
      EXPECT_THAT(status.message(), AllOf(HasSubstr("net plugin sockets (version 12)"),
                                          HasSubstr("device 2 (fast2)")));
    }
  }
  EXPECT_TRUE(named);
  EXPECT_EQ(asked("v12", "plugin_open"), 0);
}

INSTANTIATE_TEST_SUITE_P(Functions, PluginFailure,
                         ::testing::Values("listen", "connect", "accept", "regMr", "isend", "irecv",
                                           "test"));

TEST(PluginFailures, AConnectionThatNeverComesIsATimeOutThatNamesThePeer) {
  const Fault fault("TEST_NET_LATER", "1000000000");
  Job job(2, "v9", 4096, 300);
  for (const Status& status : job.statuses) EXPECT_THAT(status.message(), HasSubstr("(host here)"));
  EXPECT_TRUE(job.statuses[0].code() == Code::kTimeout || job.statuses[1].code() == Code::kTimeout);
}

TEST(PluginFailures, ASendThatFailsClosesTheConnectionOnBothSides) {
  Job job(2, "v11", 4096);
  job.expect_connected();
  {
    const Fault fault("TEST_NET_FAIL", "isend:1");
    job.port(0, 1).signal({8, 1, 0, PortSignal::Kind::kAdd});
    job.run_until([&] { return !job.landing(0).ends().empty() && !job.landing(1).ends().empty(); });
  }
  EXPECT_EQ(job.landing(0).ends()[0].peer, 1);
  EXPECT_THAT(job.landing(0).ends()[0].why.message(),
              AllOf(HasSubstr("rank 1 (host here)"), HasSubstr(failing("isend"))));
  EXPECT_THAT(job.landing(1).ends()[0].why.message(),
              AllOf(HasSubstr("rank 0 (host here)"), HasSubstr(failing("isend"))));
  // Nothing more comes of it, and nothing is owed.
  job.port(0, 1).signal({8, 1, 0, PortSignal::Kind::kAdd});
  for (int i = 0; i < 100; ++i) job.engines[0]->progress();
  EXPECT_EQ(job.landing(0).ends().size(), 1U);
  EXPECT_EQ(job.engines[0]->due_in(), std::chrono::nanoseconds::max());
}

TEST(PluginFailures, WhatWasPostedBeforeAnEngineWentStillArrives) {
  Job job(2, "v8", 8 << 20);
  job.expect_connected();
  std::vector<std::byte> data(100'000, std::byte{7}), shadow(data.size());
  job.port(0, 1).put(0, data.data(), shadow.data(), data.size());
  job.port(0, 1).signal({8, 1, 0, PortSignal::Kind::kAdd});
  job.engines[0].reset();
  job.run_until([&] { return !job.landing(1).ends().empty(); });
  ASSERT_EQ(job.landing(1).signals().size(), 1U);
  EXPECT_EQ(job.landing(1).memory()[data.size() - 1], std::byte{7});
  EXPECT_THAT(job.landing(1).ends()[0].why.message(), HasSubstr("rank 0 (host here) has closed"));
}

TEST(PluginFailures, AWriteToAForbiddenPlaceEndsTheConnectionInWords) {
  Job job(2, "v12", 4096);
  job.expect_connected();
  std::byte bytes[16] = {};
  job.port(0, 1).put(4090, bytes, bytes, sizeof bytes);
  job.run_until([&] { return !job.landing(1).ends().empty() && !job.landing(0).ends().empty(); });
  EXPECT_THAT(job.landing(1).ends()[0].why.message(),
              AllOf(HasSubstr("rank 0 (host here) sent a message"), HasSubstr("position 0xffa"),
                    HasSubstr("not allowed")));
  EXPECT_THAT(job.landing(0).ends()[0].why.message(), HasSubstr("rank 1 (host here)"));
}

TEST(PluginFailures, ARefusedSignalEndsTheConnection) {
  Job job(2, "v10", 4096);
  job.expect_connected();
  job.landing(1).refuse_signals();
  job.port(0, 1).signal({8, 1, 0, PortSignal::Kind::kAdd});
  job.run_until([&] { return !job.landing(1).ends().empty(); });
  EXPECT_THAT(job.landing(1).ends()[0].why.message(), HasSubstr("not allowed"));
}

}  // namespace
}  // namespace tessera::net_plugin
