// Ranks on several hosts, played by threads that give different host ids: they share no memory and
// talk by TCP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwloc.h>

#include <atomic>
#include <chrono>

#include "comm/checks.h"
#include "comm/network.h"

namespace tessera::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Hosts : public testing::TestWithParam<std::vector<int>> {
 protected:
  int ranks() const { return static_cast<int>(GetParam().size()); }
};

TEST_P(Hosts, EveryCollectiveGivesTheRightResultAtEverySize) {
  run_ranks(
      ranks(), quick_options(),
      [](Communicator& comm) {
        for (const Collective collective : kData)
          check_sizes(comm, collective, {0, 1, 3, 12, 13, 1023, 20'011, 300'003});
      },
      GetParam());
}

TEST_P(Hosts, CallsFollowEachOtherWithoutDisturbance) {
  run_ranks(
      ranks(), quick_options(),
      [](Communicator& comm) {
        for (size_t round = 0; round < 200; ++round) {
          const Collective collective = kData[round * 7 % std::size(kData)];
          const int root = has_root(collective) ? static_cast<int>(round) % comm.size() : -1;
          check(comm, {collective, root, (round * round * 37) % 4000, round % 2 == 0});
        }
      },
      GetParam());
}

TEST_P(Hosts, SendsMeetTheirReceives) {
  run_ranks(
      ranks(), quick_options(),
      [](Communicator& comm) {
        for (const size_t count : {1, 1000, 70'001, 1'000'003}) {
          std::vector<std::vector<int32_t>> out(comm.size()), in(comm.size());
          std::vector<Work> works;
          for (int peer = 0; peer < comm.size(); ++peer) {
            out[peer].assign(count, value(comm.rank(), peer, count));
            in[peer].assign(count, 0);
            Call call;
            call.collective = Collective::kSendRecv;
            call.type = DataType::kInt32;
            call.count = count;
            call.root = peer;
            call.send = out[peer].data();
            works.push_back({&comm, call});
            call.send = nullptr;
            call.recv = in[peer].data();
            call.receives = true;
            works.push_back({&comm, call});
          }
          const Status status = execute(works);
          ASSERT_TRUE(status.ok()) << status.message();
          for (int peer = 0; peer < comm.size(); ++peer)
            ASSERT_EQ(in[peer], std::vector<int32_t>(count, value(peer, comm.rank(), count)));
        }
      },
      GetParam());
}

TEST_P(Hosts, ChildrenConnectAnew) {
  run_ranks(
      ranks(), quick_options(),
      [](Communicator& comm) {
        Result<std::unique_ptr<Communicator>> child =
            comm.split(comm.rank() % 2, -comm.rank(), quick_options());
        ASSERT_TRUE(child.ok()) << child.status().message();
        check_sizes(*child.value(), Collective::kAllReduce, {1, 5000});
        EXPECT_TRUE(child.value()->finalize().ok());
        EXPECT_TRUE(comm.finalize().ok());
      },
      GetParam());
}

TEST_P(Hosts, RanksThatDisagreeAreTold) {
  run_ranks(
      ranks(), quick_options(3000),
      [](Communicator& comm) {
        std::vector<int32_t> in(100), out(100);
        Call call;
        call.collective = Collective::kAllReduce;
        call.send = in.data();
        call.recv = out.data();
        call.type = DataType::kInt32;
        call.count = comm.rank() == comm.size() - 1 ? 99 : 100;
        const Status status = run(comm, call);
        EXPECT_EQ(status.code(), Code::kInvalidUsage) << status.message();
        EXPECT_THAT(status.message(), AllOf(HasSubstr("100"), HasSubstr("99")));
      },
      GetParam());
}

TEST_P(Hosts, AnAbortEndsTheWaitsOfAll) {
  std::atomic<int> inside{0};
  const int last = ranks() - 1;
  run_ranks(
      ranks(), quick_options(),
      [&](Communicator& comm) {
        if (comm.rank() == last) {
          while (inside < last) std::this_thread::yield();
          comm.abort();
          return;
        }
        std::vector<int32_t> in(100'000), out(100'000);
        Call call;
        call.collective = Collective::kAllReduce;
        call.send = in.data();
        call.recv = out.data();
        call.type = DataType::kInt32;
        call.count = in.size();
        ++inside;
        const Status status = run(comm, call);
        EXPECT_EQ(status.code(), Code::kRemote) << status.message();
        EXPECT_THAT(status.message(), HasSubstr(std::to_string(last)));
      },
      GetParam());
}

TEST_P(Hosts, ARevokeByAnotherThreadReachesAllHostsWhateverTheRankIsDoing) {
  for (int round = 0; round < 5; ++round) {
    run_ranks(
        ranks(), quick_options(),
        [round](Communicator& comm) {
          std::vector<float> in(4, 1), out(4);
          std::atomic<int> calls{0};
          std::thread other;
          if (comm.rank() == 0) {
            other = std::thread([&] {
              // After a call, all ranks have their communicators: a revoke before ends creation.
              while (calls < 1 + 20 * round) std::this_thread::yield();
              comm.revoke();
            });
          }
          Deadline soon = Deadline::after(std::chrono::seconds(10));  // half of the time allowed
          while (run(comm, all_reduce(in.data(), out.data(), in.size())).ok()) ++calls;
          EXPECT_FALSE(soon.passed());
          if (other.joinable()) other.join();
        },
        GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Hosts,
                         testing::Values(std::vector{0, 1}, std::vector{0, 0, 1},
                                         std::vector{0, 1, 0, 1}, std::vector{0, 0, 0, 1, 1},
                                         std::vector{0, 1, 2, 3}, std::vector{2, 0, 1, 0, 2, 0}),
                         [](const auto& layout) {
                           std::string name = "on";
                           for (const int host : layout.param) name += std::to_string(host);
                           return name;
                         });

// Ranks of this host behind described links.
CommOptions emulating(const char* links) {
  CommOptions options = quick_options();
  options.config.emulate = links;
  return options;
}

class EmulatedLinks : public testing::TestWithParam<const char*> {
 protected:
  // Keeps hwloc's plugins loaded: what they hold for a thread is freed when it ends, if they still
  // are.
  void SetUp() override { ASSERT_EQ(hwloc_topology_init(&kept_), 0); }
  void TearDown() override { hwloc_topology_destroy(kept_); }

 private:
  hwloc_topology_t kept_ = nullptr;
};

TEST_P(EmulatedLinks, EveryCollectiveGivesTheRightResultAtEverySize) {
  run_ranks(4, emulating(GetParam()), [](Communicator& comm) {
    for (const Collective collective : kData)
      check_sizes(comm, collective, {0, 1, 13, 1023, 100'003});
  });
}

INSTANTIATE_TEST_SUITE_P(Descriptions, EmulatedLinks,
                         testing::Values("uniform:bandwidth=1GB/s,latency=20us",
                                         "uniform:bandwidth=1GB/s,latency=5us,fan_out=100/80/70",
                                         "pack:1 core:2 pu:1,hosts=2,slower=2"),
                         [](const auto& info) { return "number" + std::to_string(info.index); });

TEST(EmulatedLinksOfOneSpeed, TakeTheTimeThatTheyAreDescribedToTake) {
  using Clock = std::chrono::steady_clock;
  run_ranks(2, emulating("uniform:bandwidth=1GB/s,latency=20us"), [](Communicator& comm) {
    std::vector<int32_t> in(1'000'000), out(2'000'000);
    Call call;
    call.collective = Collective::kAllGather;
    call.send = in.data();
    call.recv = out.data();
    call.count = in.size();
    call.type = DataType::kInt32;
    const Clock::time_point begin = Clock::now();
    ASSERT_TRUE(run(comm, call).ok());
    // 4 MB at 1 GB/s; how much longer it takes is the scheduler's affair
    EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(4));
  });
}

TEST(NetworkBandwidth, IsThatOfTheSlowestHostsFastestInterfaceAsFarAsItIsKnown) {
  const double unknown = Network{}.bandwidth;
  std::vector<Member> members(3);
  EXPECT_EQ(network_bandwidth(members), unknown);
  for (Member& member : members) {
    member.endpoint_count = 2;
    member.endpoints[0].speed_mbps = 1'000;
    member.endpoints[1].speed_mbps = 100'000;
  }
  EXPECT_EQ(network_bandwidth(members), unknown);
  members[1].endpoints[1].speed_mbps = 10'000;
  EXPECT_EQ(network_bandwidth(members), 1'250);
  members[2].endpoint_count = 1;
  EXPECT_EQ(network_bandwidth(members), 125);
}

TEST(EmulatedLinksOfOneSpeed, BadDescriptionsAreErrorsOfEveryRank) {
  const CommOptions options = emulating("uniform:bandwidth=fast");
  Result<UniqueId> id = create_unique_id(options.config);
  ASSERT_TRUE(id.ok());
  const auto comm = Communicator::create(id.value(), 1, 0, options);
  EXPECT_EQ(comm.status().code(), Code::kInvalidUsage);
  EXPECT_THAT(comm.status().message(), HasSubstr("TESSERA_EMULATE"));
}

}  // namespace
}  // namespace tessera::test
