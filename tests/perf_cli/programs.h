// Runs the perf programs as a shell does.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace tessera::perf {

struct Outcome {
  int code = -1;
  std::string text;
};

inline Outcome shell(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> piece{};
  for (size_t n = 0; (n = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;)
    outcome.text.append(piece.data(), n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

#if defined(TESSERA_PERF_DIR)
inline constexpr bool kBuilt = true;
inline const std::string kPrograms = TESSERA_PERF_DIR;
inline const std::string kFaulty = TESSERA_FAULTY_PERF;
inline const std::string kMpirun = TESSERA_MPIRUN;
#else
inline constexpr bool kBuilt = false;
inline const std::string kPrograms, kFaulty, kMpirun;
#endif

class PerfCli : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kBuilt) GTEST_SKIP() << "the perf programs are not built";
    folder_ = std::filesystem::temp_directory_path() /
              ("perf_cli_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  Outcome run(const std::string& program, const std::string& arguments,
              const std::string& environment = "") {
    return shell(environment + " " + kPrograms + "/" + program + "_perf " + arguments);
  }
  Outcome run_mpi(int processes, const std::string& program, const std::string& arguments,
                  const std::string& environment = "") {
    const std::string root = geteuid() == 0 ? " --allow-run-as-root" : "";
    return shell(environment + " " + kMpirun + " -n " + std::to_string(processes) + root +
                 " --oversubscribe --bind-to none " + kPrograms + "/" + program + "_perf " +
                 arguments);
  }

  std::filesystem::path folder_;
};

}  // namespace tessera::perf
