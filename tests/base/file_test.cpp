#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReadFile : public testing::Test {
 protected:
  ReadFile() : path_(testing::TempDir() + fmt::format("tessera-file-{}", getpid())) {}
  ~ReadFile() override { std::filesystem::remove_all(path_); }

  void expect_error(Code code, const std::string& text, size_t most = 1 << 20) const {
    const Result<std::string> read = read_file(path_, most);
    EXPECT_EQ(read.status().code(), code);
    EXPECT_THAT(read.status().message(), AllOf(StartsWith(path_ + ": "), HasSubstr(text)));
  }

  const std::string path_;
};

TEST_F(ReadFile, GivesAllOfAFileUpToTheLimit) {
  const std::string text(100'000, 'x');
  std::ofstream(path_) << text;
  EXPECT_EQ(read_file(path_, text.size()).value(), text);
  expect_error(Code::kInvalidArgument, "larger than", text.size() - 1);
}

TEST_F(ReadFile, ReadsFilesWhoseSizeIsNotTrue) {
  EXPECT_FALSE(read_file("/proc/self/stat", 1 << 20).value().empty());
  EXPECT_EQ(read_file("/proc/self/stat", 10).status().code(), Code::kInvalidArgument);
}

TEST_F(ReadFile, NeverWaitsForWhatIsNoFile) {
  expect_error(Code::kSystem, "No such file");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_error(Code::kSystem, "no regular file");
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  expect_error(Code::kSystem, "Is a directory");
}

}  // namespace
}  // namespace tessera
