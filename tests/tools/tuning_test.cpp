// tessera-tune and tessera-explain: what they print and how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "tools/support/shell.h"
#include "tuner/profile.h"

namespace {

using tessera::tools::testing::Ended;
using tessera::tools::testing::run;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Tuning : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            ("tessera-tools-" + std::to_string(getpid()) + ".json");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(Tuning, AMeasuredProfileIsReadByCommunicatorsAndByTheExplanation) {
  const Ended made =
      run("tessera-tune --ranks 2 3 --collectives all-reduce broadcast "
          "--largest 256KiB --seconds 8 --out " +
          path_);
  ASSERT_EQ(made.code, 0) << made.text;
  EXPECT_THAT(made.text, HasSubstr("saved as " + path_));
  const auto profile = tessera::load_profile(path_);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile.value().machine, tessera::machine_fingerprint());
  EXPECT_GT(profile.value().samples.size(), 20U);
  const auto slices = [](const tessera::Sample& sample) { return sample.slot_bytes; };
  EXPECT_TRUE(std::ranges::any_of(profile.value().samples, slices));
  const Ended explained =
      run("tessera-explain allreduce 4KiB --ranks 3", "TESSERA_PROFILE=" + path_);
  EXPECT_EQ(explained.code, 0) << explained.text;
  EXPECT_THAT(explained.text, HasSubstr("profile of " + profile.value().about));
  EXPECT_THAT(explained.text, ContainsRegex("\\* [a-z-]+ [a-z-]+,? .* measured"));
  const Ended checked = run("tessera-tune --check --ranks 2 --collectives broadcast --largest 4KiB",
                            "TESSERA_PROFILE=" + path_);
  EXPECT_TRUE(checked.code == 0 || checked.code == 3) << checked.text;  // 3: this machine is busy
  EXPECT_THAT(checked.text, ContainsRegex("broadcast +2 +512 "));
  EXPECT_THAT(checked.text, HasSubstr("# 5 cells"));
}

TEST_F(Tuning, AProfileIsMeasuredBeforeItIsChecked) {
  const Ended checked =
      run("tessera-tune --check --ranks 2 3 --collectives broadcast all-gather --largest 4KiB "
          "--seconds 4 --out " +
          path_);
  EXPECT_TRUE(checked.code == 0 || checked.code == 3) << checked.text;
  EXPECT_THAT(checked.text, HasSubstr("saved as " + path_));
  EXPECT_THAT(checked.text, HasSubstr("# 19 cells"));
  const auto profile = tessera::load_profile(path_);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  const auto known = [&](tessera::Collective collective, int ranks) {
    return std::ranges::any_of(profile->samples, [&](const tessera::Sample& sample) {
      return sample.collective == collective && sample.ranks == ranks;
    });
  };
  EXPECT_TRUE(known(tessera::Collective::kBroadcast, 2));
  EXPECT_TRUE(known(tessera::Collective::kAllGather, 3));
}

TEST_F(Tuning, WhatTheTimeDoesNotSufficeForIsLeftOutFromTheLargestMessagesOn) {
  const std::string in_a_second =
      "tessera-tune --seconds 1 --ranks 4 --collectives all-to-all --out " + path_;
  const Ended large = run(in_a_second + " --largest 256MiB");
  ASSERT_EQ(large.code, 0) << large.text;
  EXPECT_THAT(large.text, ContainsRegex("[0-9]+ of 12 sizes were left out for want of time"));
  const auto profile = tessera::load_profile(path_);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  const auto bytes = [](const tessera::Sample& sample) { return sample.block_bytes; };
  EXPECT_LT(std::ranges::max(profile->samples, {}, bytes).block_bytes, size_t{64} << 20);
  EXPECT_EQ(std::ranges::min(profile->samples, {}, bytes).block_bytes, 8U);
  const Ended small = run(in_a_second + " --largest 4KiB");
  EXPECT_THAT(small.text, Not(HasSubstr("left out")));
}

TEST_F(Tuning, TheExplanationNamesEveryCandidateAndWhyOthersAreOut) {
  const Ended all = run("tessera-explain all-reduce 1MiB --ranks 4 --cores 2");
  EXPECT_EQ(all.code, 0);
  for (const char* name : {"staged ring", "staged double-tree", "low-latency one-hop",
                           "direct direct", "single-copy direct"})
    EXPECT_THAT(all.text, HasSubstr(name));
  EXPECT_THAT(all.text, HasSubstr("buffers are mapped"));
  EXPECT_THAT(all.text, HasSubstr("no profile"));
  const Ended forced =
      run("tessera-explain allreduce 1MiB --ranks 4", "TESSERA_PROFILE=none NCCL_ALGO=ring");
  EXPECT_THAT(forced.text, HasSubstr("excluded by NCCL_ALGO=ring"));
  EXPECT_THAT(forced.text, HasSubstr("* staged ring"));
}

TEST_F(Tuning, TheExplanationNamesTheSlices) {
  std::ofstream(path_) << R"({"tessera_profile": 2, "machine": "m", "about": "a machine",
    "samples": [["all-reduce", "staged", "ring", 4, 1048576, 900],
                ["all-reduce", "staged", "ring", 4, 1048576, 600, 8192]]})";
  const std::string ring = "tessera-explain allreduce 1MiB --ranks 4 --plain";
  const Ended measured = run(ring, "TESSERA_PROFILE=" + path_);
  EXPECT_THAT(measured.text, ContainsRegex("\\* staged ring, slices of 8 KiB +600.00 +measured"));
  EXPECT_THAT(measured.text, ContainsRegex("  staged ring, slices of 32 KiB +900.00 +measured"));
  EXPECT_THAT(measured.text, HasSubstr("\n* staged ring, slices of 8 KiB: "));
  const std::string by_rule = run(ring, "TESSERA_PROFILE=none").text;
  EXPECT_THAT(by_rule, HasSubstr("staged ring, slices of 32 KiB"));
  EXPECT_THAT(by_rule, Not(HasSubstr("8 KiB ")));
  const Ended forced = run(ring, "TESSERA_SLICE_BYTES=1000 TESSERA_PROFILE=" + path_);
  EXPECT_THAT(forced.text, HasSubstr("* staged ring, slices of 1000 bytes: "));
  EXPECT_THAT(forced.text, Not(HasSubstr("KiB ")));
}

TEST_F(Tuning, TheExplanationDescribesEmulatedLinksAsCommunicatorsDo) {
  const std::string two = "TESSERA_PROFILE=none TESSERA_EMULATE='pack:1 core:2 pu:1,hosts=2'";
  const Ended hosts = run("tessera-explain allreduce 64 --ranks 4 --cores 4", two);
  EXPECT_EQ(hosts.code, 0) << hosts.text;
  EXPECT_THAT(hosts.text, ContainsRegex("4 ranks on 4 cores of 2 hosts, buffers beyond reach"));
  EXPECT_THAT(hosts.text, ContainsRegex("between hosts: [0-9.]+ us and 1.25 GB/s\n"));
  EXPECT_THAT(hosts.text, HasSubstr("note: links are emulated (TESSERA_EMULATE="));
  EXPECT_THAT(hosts.text, HasSubstr("\n* low-latency hierarchical-hop: "));
  const Ended one = run("tessera-explain allreduce 1MiB --ranks 4 --cores 4",
                        "TESSERA_PROFILE=none TESSERA_EMULATE=uniform:bandwidth=1GB/s,latency=5us");
  EXPECT_THAT(one.text, HasSubstr("one host; estimates do not count how fast they are"));
  EXPECT_THAT(one.text, ContainsRegex("\n\\* staged "));
  const Ended both = run("tessera-explain allreduce 64 --hosts 2x2", two);
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.text, HasSubstr("leave one of them out"));
  const Ended few = run("tessera-explain allreduce 64 --ranks 4",
                        "TESSERA_PROFILE=none TESSERA_EMULATE=uniform:bandwidth=lots");
  EXPECT_EQ(few.code, 1);
  EXPECT_THAT(few.text, HasSubstr("TESSERA_EMULATE"));
}

TEST_F(Tuning, WhatAFileHasOfOtherRankCountsIsKept) {
  const std::string tune =
      "tessera-tune --collectives broadcast --largest 64 --seconds 1 --out " + path_;
  ASSERT_EQ(run(tune + " --ranks 2").code, 0);
  const Ended more = run(tune + " --ranks 3");
  ASSERT_EQ(more.code, 0) << more.text;
  EXPECT_THAT(more.text, ContainsRegex("[0-9]+ times of other .* were kept"));
  const auto profile = tessera::load_profile(path_);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  for (const int ranks : {2, 3})
    EXPECT_TRUE(std::ranges::any_of(profile.value().samples,
                                    [&](const auto& sample) { return sample.ranks == ranks; }));
}

TEST_F(Tuning, AFileThatCannotBeWrittenIsRefusedBeforeAnythingIsMeasured) {
  const std::string tune = "tessera-tune --ranks 2 --collectives broadcast --largest 64 --out ";
  EXPECT_THAT(run(tune + "/dev/full").text, HasSubstr("is no regular file"));
  EXPECT_EQ(run(tune + "''").code, 2);
}

TEST_F(Tuning, ClosedStandardStreamsAreNoMatter) {
  const std::string tune =
      "tessera-tune --ranks 2 --collectives broadcast --largest 64 --seconds 1 --out " + path_;
  EXPECT_EQ(run(tune, "NCCL_DEBUG=INFO TESSERA_PROFILE=none", "<&- 2>&-").code, 0);
}

TEST_F(Tuning, ATimeThatIsNoNumberIsRefused) {
  EXPECT_EQ(run("tessera-tune --seconds nan --out " + path_).code, 2);
}

TEST_F(Tuning, ARankCountThatIsNamedTwiceIsMeasuredOnce) {
  const Ended made = run(
      "tessera-tune --ranks 2 3 2 --collectives broadcast --largest 64 --seconds 2 --out " + path_);
  ASSERT_EQ(made.code, 0) << made.text;
  EXPECT_TRUE(tessera::load_profile(path_).ok());
}

TEST_F(Tuning, ItEndsAlsoWhereItsParentIgnoredTheEndOfChildren) {
  const Ended made =
      run("tessera-tune --ranks 2 --collectives broadcast --largest 64 --seconds 1 --out " + path_,
          "TESSERA_PROFILE=none timeout 60 env --ignore-signal=CHLD");
  EXPECT_EQ(made.code, 0) << made.text;
}

TEST_F(Tuning, MistakesAreNamed) {
  EXPECT_EQ(run("tessera-explain alreduce 1MiB").code, 2);
  EXPECT_THAT(run("tessera-explain alreduce 1MiB").text, HasSubstr("\"alreduce\""));
  EXPECT_EQ(run("tessera-explain allreduce lots").code, 2);
  EXPECT_EQ(run("tessera-tune --ranks 1").code, 2);
  EXPECT_EQ(run("tessera-tune --ranks 2 --largest 8 --seconds 1 --out /proc/none/b").code, 1);
  const Ended forced =
      run("tessera-explain alltoall 1MiB --ranks 4", "TESSERA_PROFILE=none NCCL_ALGO=alltoall:pat");
  EXPECT_EQ(forced.code, 1);
  EXPECT_THAT(forced.text, HasSubstr("has no such algorithm"));
  EXPECT_THAT(run("tessera-explain allreduce 8", "TESSERA_PROFILE=/nonexistent").text,
              HasSubstr("/nonexistent"));
}

TEST_F(Tuning, HelpSaysWhatTheProgramsDo) {
  EXPECT_EQ(run("tessera-tune --help").code, 0);
  EXPECT_THAT(run("tessera-tune --help").text, HasSubstr("--check"));
  EXPECT_EQ(run("tessera-explain --help").code, 0);
}

}  // namespace
