// Ranks that see different machines or settings: where it matters all of them are told who differs
// in what, and where it does not they work together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "comm/checks.h"
#include "comm/processes.h"

namespace tessera::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kTopology =
    R"(<system version="1"><cpu numaid="0" affinity="{}" arch="x86_64"/></system>)";

class Views : public testing::Test {
 protected:
  using Change = std::function<void(Config& config)>;
  static constexpr int kRanks = 3;

  void SetUp() override {
    std::string pattern = testing::TempDir() + "tessera-views-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::string topology(const char* affinity) const {
    return write(fmt::format("machine{}.xml", affinity),
                 fmt::format(fmt::runtime(kTopology), affinity));
  }
  std::string profile(int microseconds) const {
    return write(fmt::format("profile{}.json", microseconds),
                 fmt::format(R"({{"tessera_profile": 1, "machine": "m", "about": "", "samples":
                 [["all-reduce", "staged", "ring", 2, 4096, {}]]}})",
                             microseconds));
  }

  // Makes a communicator of which the last rank differs, perhaps on a host of its own, and if that
  // works runs collectives. What each rank was told.
  static std::vector<Status> meet(const Change& first, const Change& last, bool two_hosts) {
    const Result<UniqueId> id = create_unique_id({});
    EXPECT_TRUE(id.ok());
    std::vector<Status> told(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        CommOptions options = quick_options();
        const bool differs = rank == kRanks - 1;
        if (two_hosts) options.config.host_id = differs ? "b" : "a";
        (differs ? last : first)(options.config);
        auto comm = Communicator::create(id.value(), kRanks, rank, options);
        told[rank] = comm.status();
        if (!comm.ok()) return;
        for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather})
          check_sizes(*comm.value(), collective, {1, 1000, 100'000});
      });
    }
    for (std::thread& thread : threads) thread.join();
    return told;
  }

  static void expect_harmless(const Change& first, const Change& last) {
    for (const bool two_hosts : {false, true})
      for (const Status& status : meet(first, last, two_hosts))
        EXPECT_TRUE(status.ok()) << status.message();
  }

  // Both values and both ranks, to all.
  static void expect_told(const Change& first, const Change& last, bool two_hosts,
                          const std::string& variable, const std::string& value,
                          const std::string& other) {
    for (const Status& status : meet(first, last, two_hosts)) {
      EXPECT_EQ(status.code(), Code::kInvalidUsage) << variable;
      EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 2 has " + variable + "=\"" + other),
                                          HasSubstr(variable + "=\"" + value)));
    }
  }

  std::string folder_;
};

TEST_F(Views, WhatForcesAChoiceMustBeEqualEverywhere) {
  struct Setting {
    const char* variable;
    std::string Config::*member;
    const char *value, *other;
  };
  const Setting kSettings[] = {
      {"NCCL_ALGO", &Config::nccl_algorithms, "ring", "tree"},
      {"NCCL_PROTO", &Config::nccl_protocols, "", "Simple"},
      {"TESSERA_ALGO", &Config::algorithm, "ring", "one-hop"},
      {"NCCL_NET", &Config::net, "", "Socket"},
  };
  for (const Setting& setting : kSettings) {
    for (const bool two_hosts : {false, true})
      expect_told([&](Config& config) { config.*setting.member = setting.value; },
                  [&](Config& config) { config.*setting.member = setting.other; }, two_hosts,
                  setting.variable, setting.value, setting.other);
  }
  expect_told([](Config& config) { config.low_latency_max = 64; },
              [](Config& config) { config.low_latency_max = 1024; }, false, "TESSERA_LL_MAX", "64",
              "1024");
}

TEST_F(Views, WhatHasNoEffectOnChoicesMayDiffer) {
  expect_harmless(
      [](Config& config) {
        config.min_channels = 2;
        config.max_ctas = 4;
        config.spin = 0;
        config.sockets_per_thread = 1;
        config.timeout = std::chrono::seconds(30);
      },
      [](Config& config) {
        config.min_channels = 16;
        config.max_ctas = -1;
        config.spin = 1000;
        config.sockets_per_thread = 4;
      });
}

TEST_F(Views, DescriptionsOfAHostMustBeEqualOnIt) {
  const auto seen = [](const std::string& file) {
    return [file](Config& config) { config.topology_file = file; };
  };
  expect_told(seen(topology("f")), seen(topology("ff")), false, "NCCL_TOPO_FILE (contents)",
              "1 CPUs", "1 CPUs");
  expect_told(seen(""), seen(topology("ff")), false, "NCCL_TOPO_FILE (contents)", "none", "1 CPUs");
}

TEST_F(Views, DescriptionsOfHostsMayDiffer) {
  const std::string one = topology("f"), two = topology("ff");
  for (const Status& status : meet([&](Config& config) { config.topology_file = one; },
                                   [&](Config& config) { config.topology_file = two; }, true))
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(Views, ProfilesMustBeEqualOnAHostAndMayDifferBetweenHosts) {
  const auto measured = [](const std::string& file) {
    return [file](Config& config) { config.profile = file; };
  };
  const auto fast = measured(profile(10)), slow = measured(profile(20));
  for (const Status& status : meet(fast, slow, false)) {
    EXPECT_EQ(status.code(), Code::kInvalidUsage);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 2 has TESSERA_PROFILE (contents)=\""),
                                        HasSubstr("all ranks of a host must have the same value")));
  }
  for (const Status& status : meet(fast, slow, true)) EXPECT_TRUE(status.ok()) << status.message();
  for (const Status& status : meet(measured("none"), slow, true))
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(Views, EmulatedLinksMustBeEqual) {
  const auto linked = [](const std::string& text) {
    return [text](Config& config) { config.emulate = text; };
  };
  expect_told(linked("uniform:bandwidth=1GB/s"), linked("uniform:bandwidth=2GB/s"), false,
              "TESSERA_EMULATE", "uniform:bandwidth=1GB/s", "uniform:bandwidth=2GB/s");
  expect_told(linked(""), linked("uniform:bandwidth=2GB/s"), true, "TESSERA_EMULATE", "",
              "uniform:bandwidth=2GB/s");
}

// One name may mean two files: in containers, or where ranks start in different folders.
TEST_F(Views, TheFileThatEmulatedLinksComeFromMustBeEqual) {
  for (const int rank : {0, 1}) {
    std::filesystem::create_directory(fmt::format("{}/{}", folder_, rank));
    write(fmt::format("{}/links.xml", rank),
          fmt::format(fmt::runtime(kTopology), rank == 0 ? "f" : "ff"));
  }
  const auto endings = run_processes(
      2, quick_options(), [](Communicator&) { return std::string("it was made"); },
      [&](int rank, CommOptions& options) {
        ASSERT_EQ(::chdir(fmt::format("{}/{}", folder_, rank).c_str()), 0);
        options.config.emulate = "links.xml,slower=2";
      });
  for (const Ending& ending : endings)
    EXPECT_THAT(ending.text, AllOf(HasSubstr("rank 0 has TESSERA_EMULATE (contents)=\"digest"),
                                   HasSubstr("rank 1 has TESSERA_EMULATE (contents)=\"digest")));
}

}  // namespace
}  // namespace tessera::test
