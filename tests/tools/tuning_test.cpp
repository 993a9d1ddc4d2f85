// tessera-tune and tessera-explain: what they print and how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tuner/profile.h"

namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Outcome {
  int code = -1;
  std::string text;
};

Outcome run(const std::string& command, const std::string& environment = "TESSERA_PROFILE=none") {
  Outcome outcome;
  std::FILE* pipe =
      popen((environment + " " TESSERA_TOOLS_DIR "/" + command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> piece{};
  for (size_t n = 0; (n = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;)
    outcome.text.append(piece.data(), n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

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
  const Outcome made =
      run("tessera-tune --ranks 2 3 --collectives all-reduce broadcast "
          "--largest 64KiB --seconds 1 --out " +
          path_);
  ASSERT_EQ(made.code, 0) << made.text;
  EXPECT_THAT(made.text, HasSubstr("saved as " + path_));
  const auto profile = tessera::load_profile(path_);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile.value().machine, tessera::machine_fingerprint());
  EXPECT_GT(profile.value().samples.size(), 20U);
  const Outcome explained =
      run("tessera-explain allreduce 4KiB --ranks 3", "TESSERA_PROFILE=" + path_);
  EXPECT_EQ(explained.code, 0) << explained.text;
  EXPECT_THAT(explained.text, HasSubstr("profile of " + profile.value().about));
  EXPECT_THAT(explained.text, ContainsRegex("\\* [a-z-]+ [a-z-]+ .* measured"));
  const Outcome checked =
      run("tessera-tune --check --ranks 2 --collectives broadcast --largest 4KiB",
          "TESSERA_PROFILE=" + path_);
  EXPECT_TRUE(checked.code == 0 || checked.code == 3) << checked.text;  // 3: this machine is busy
  EXPECT_THAT(checked.text, ContainsRegex("broadcast +2 +512 "));
  EXPECT_THAT(checked.text, HasSubstr("# 5 cells"));
}

TEST_F(Tuning, TheExplanationNamesEveryCandidateAndWhyOthersAreOut) {
  const Outcome all = run("tessera-explain all-reduce 1MiB --ranks 4 --cores 2");
  EXPECT_EQ(all.code, 0);
  for (const char* name : {"staged ring", "staged double-tree", "low-latency one-hop",
                           "direct direct", "single-copy direct"})
    EXPECT_THAT(all.text, HasSubstr(name));
  EXPECT_THAT(all.text, HasSubstr("buffers are mapped"));
  EXPECT_THAT(all.text, HasSubstr("no profile"));
  const Outcome forced =
      run("tessera-explain allreduce 1MiB --ranks 4", "TESSERA_PROFILE=none NCCL_ALGO=ring");
  EXPECT_THAT(forced.text, HasSubstr("excluded by NCCL_ALGO=ring"));
  EXPECT_THAT(forced.text, HasSubstr("* staged ring"));
}

TEST_F(Tuning, MistakesAreNamed) {
  EXPECT_EQ(run("tessera-explain alreduce 1MiB").code, 2);
  EXPECT_THAT(run("tessera-explain alreduce 1MiB").text, HasSubstr("\"alreduce\""));
  EXPECT_EQ(run("tessera-explain allreduce lots").code, 2);
  EXPECT_EQ(run("tessera-tune --ranks 1").code, 2);
  EXPECT_EQ(run("tessera-tune --ranks 2 --largest 8 --seconds 1 --out /proc/none/b").code, 1);
  const Outcome forced =
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
