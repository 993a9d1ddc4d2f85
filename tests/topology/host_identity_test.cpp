// Processes that share a host have equal tokens; where that cannot be known, only a process and its
// children do.
#include "topology/host_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace tessera::topology {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class HostToken : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(proc_ / "self/ns");
    fs::create_directories(proc_ / "sys/kernel/random");
    boot("588aeed0-fda5-42df-be66-50e5155dc703");
    std::ofstream(proc_ / "self/ns/net") << "net";
  }
  void TearDown() override { fs::remove_all(proc_); }
  void boot(const std::string& id) {
    std::ofstream(proc_ / "sys/kernel/random/boot_id") << id << "\n";
  }
  std::string token() const { return host_token(proc_.string()); }

  fs::path proc_ = fs::path(::testing::TempDir()) / ("host_identity_" + std::to_string(::getpid()));
};

TEST_F(HostToken, IsTheSameForAllThatReadTheSame) {
  EXPECT_EQ(token(), token());
  EXPECT_THAT(token(), HasSubstr("boot=588aeed0-fda5-42df-be66-50e5155dc703;net="));
  EXPECT_THAT(token(), Not(HasSubstr("unknown")));
}

TEST_F(HostToken, DiffersByBoot) {
  const std::string before = token();
  boot("588aeed0-fda5-42df-be66-50e5155dc704");
  EXPECT_NE(token(), before);
}

TEST_F(HostToken, DiffersByNamespace) {
  const std::string before = token();
  std::ofstream(proc_ / "self/ns/other") << "other";
  fs::rename(proc_ / "self/ns/other", proc_ / "self/ns/net");
  EXPECT_NE(token(), before);
}

TEST_F(HostToken, OfAMaskedBootIdIsTheProcesssOwn) {
  for (const char* text : {"", "00000000-0000-0000-0000-000000000000", "unknown", "588aeed0",
                           "gggggggg-fda5-42df-be66-50e5155dc703"}) {
    boot(text);
    EXPECT_THAT(token(), HasSubstr("boot=unknown-")) << text;
    EXPECT_EQ(token(), token()) << text;
  }
  std::string other;
  std::thread([&] { other = token(); }).join();
  EXPECT_EQ(other, token());
}

TEST_F(HostToken, OfMaskedNamespacesIsTheProcesssOwn) {
  fs::remove_all(proc_ / "self");
  EXPECT_THAT(token(), HasSubstr("net=unknown-"));
}

// Tokens of a child; by exec, so that it is another process to the library.
std::string token_of_another_process(const std::string& proc) {
  int ends[2] = {};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    const std::string self = fs::read_symlink("/proc/self/exe").string();
    ::setenv("HOST_TOKEN_OF", proc.c_str(), 1);
    ::execl(self.c_str(), self.c_str(), "--gtest_filter=HostTokenPrinter.*", nullptr);
    ::_exit(1);
  }
  ::close(ends[1]);
  std::string text;
  char block[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], block, sizeof(block))) > 0;)
    text.append(block, static_cast<size_t>(n));
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  const size_t begin = text.find("token<");
  EXPECT_NE(begin, std::string::npos);
  return begin == std::string::npos ? "" : text.substr(begin + 6, text.find('>') - begin - 6);
}

TEST(HostTokenPrinter, Prints) {
  const char* proc = std::getenv("HOST_TOKEN_OF");
  if (proc == nullptr) GTEST_SKIP() << "runs in a child of other tests";
  std::printf("token<%s>\n", host_token(proc).c_str());
}

TEST_F(HostToken, IsThatOfAnotherProcessOfThisHost) {
  EXPECT_EQ(token_of_another_process("/proc"), host_token());
  EXPECT_THAT(host_token(), HasSubstr("boot="));
}

TEST_F(HostToken, IsNeverSharedWithAnotherProcessWhereProcIsMasked) {
  fs::remove_all(proc_);
  EXPECT_NE(token_of_another_process(proc_.string()), token());
}

TEST_F(HostToken, IsSharedWithAChildAlsoWhereProcIsMasked) {
  fs::remove_all(proc_);
  const std::string own = token();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(token() == own ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HostToken, OfAThreadInAnotherNetworkNamespaceDiffers) {
  std::string inside;
  int error = 0;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0)
      inside = host_token();
    else
      error = errno;
  }).join();
  if (error != 0) GTEST_SKIP() << "no network namespaces here: " << std::strerror(error);
  EXPECT_NE(inside, host_token());
}

}  // namespace
}  // namespace tessera::topology
