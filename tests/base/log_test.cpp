#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tessera-log-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    log::configure(log::Level::kWarn, "");
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/log"; }
  std::string text() const {
    std::ifstream file(path());
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  std::string folder_;
};

TEST_F(LogTest, AnInfoLineNamesHostProcessThreadAndRank) {
  log::configure(log::Level::kInfo, path());
  log::info(5, "hello {}", 7);
  EXPECT_THAT(text(), MatchesRegex("[^ :]+:[0-9]+:[0-9]+ \\[5\\] NCCL INFO hello 7\n"));
}

TEST_F(LogTest, AWarningFollowsABlankLineAndNamesItsSource) {
  log::configure(log::Level::kWarn, path());
  log::warn(2, "careful");
  EXPECT_THAT(
      text(),
      MatchesRegex("\n[^ :]+:[0-9]+:[0-9]+ \\[2\\] log_test.cpp:[0-9]+ NCCL WARN careful\n"));
}

TEST_F(LogTest, LinesAboveTheLevelAreNotWritten) {
  log::configure(log::Level::kWarn, path());
  log::info(0, "quiet");
  log::configure(log::Level::kNone, path());
  log::warn(0, "also quiet");
  EXPECT_EQ(text(), "");
}

TEST_F(LogTest, TheLastWarningIsKeptEvenWhenNothingIsPrinted) {
  log::configure(log::Level::kNone, path());
  log::warn(0, "kept {}", 1);
  EXPECT_EQ(log::last_warning(), "kept 1");
}

TEST_F(LogTest, TheLastWarningHasAtMost1023Characters) {
  log::configure(log::Level::kNone, path());
  log::warn_text(0, std::string(5000, 'x'));
  EXPECT_EQ(log::last_warning(), std::string(1023, 'x'));
}

TEST_F(LogTest, TheFileNameMayHoldHostAndProcess) {
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  log::configure(log::Level::kInfo, folder_ + "/a.%h.%p.%%");
  log::info(0, "x");
  EXPECT_TRUE(std::filesystem::exists(fmt::format("{}/a.{}.{}.%", folder_, host, ::getpid())));
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsNamedInAWarning) {
  ::testing::internal::CaptureStderr();
  log::configure(log::Level::kWarn, folder_ + "/absent/log");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("NCCL_DEBUG_FILE"));
  EXPECT_THAT(log::last_warning(), HasSubstr("absent/log"));
}

TEST_F(LogTest, WithoutAFileLinesGoToStandardError) {
  log::configure(log::Level::kInfo, "");
  ::testing::internal::CaptureStderr();
  log::info(1, "to the error stream");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("NCCL INFO to the error stream"));
}

TEST_F(LogTest, LinesOfManyThreadsStayWhole) {
  log::configure(log::Level::kInfo, path());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) log::info(t, "line {}", std::string(200, 'y'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::ifstream file(path());
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    ASSERT_THAT(line, MatchesRegex(".* NCCL INFO line y+"));
  }
  EXPECT_EQ(lines, 400);
}

}  // namespace
}  // namespace tessera
