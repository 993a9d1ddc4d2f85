// Runs the programs as a shell does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tessera::tools::testing {

struct Ended {
  int code = -1;
  std::string text;
};

// `command` starts with the name of a program. With what it writes to both outputs, or with
// standard output only.
inline Ended run(const std::string& command,
                 const std::string& environment = "TESSERA_PROFILE=none",
                 const std::string& errors = "2>&1") {
  Ended ended;
  std::FILE* pipe =
      popen((environment + " " TESSERA_TOOLS_DIR "/" + command + " " + errors).c_str(), "r");
  if (pipe == nullptr) return ended;
  std::array<char, 4096> piece{};
  for (size_t n = 0; (n = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;)
    ended.text.append(piece.data(), n);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

// Standard output of a run that has to succeed.
inline std::string printed(const std::string& command) {
  const Ended ended = run(command, "TESSERA_PROFILE=none", "2>/dev/null");
  EXPECT_EQ(ended.code, 0) << command;
  return ended.text;
}

// A folder of the test's own, gone afterwards.
class InFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("tessera-tools-" + std::to_string(getpid()) + "-" + info->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string written(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return path(name);
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace tessera::tools::testing
