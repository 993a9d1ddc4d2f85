// NCCL_DEBUG=TRACE: what each call runs as.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "comm/ranks.h"

namespace tessera::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Traces : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("tessera-trace-" + std::to_string(getpid()));
  }
  void TearDown() override {
    log::configure(log::Level::kWarn, "");
    std::filesystem::remove(path_);
  }

  // What is logged while two ranks run `body`, on one host or on these.
  std::string logged(log::Level level, CommOptions options,
                     const std::function<void(Communicator&)>& body,
                     const std::vector<int>& hosts = {}) {
    log::configure(level, path_);
    options.config.debug = level;
    run_ranks(2, options, body, hosts);
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  std::string path_;
};

TEST_F(Traces, NameWhatEveryCallRunsAsRepeatedOnesIncluded) {
  const std::string text = logged(log::Level::kTrace, quick_options(), [](Communicator& comm) {
    std::vector<float> data(65536);
    for (int i = 0; i < 2; ++i)
      ASSERT_TRUE(run(comm, all_reduce(data.data(), data.data(), 2)).ok());
    ASSERT_TRUE(run(comm, all_reduce(data.data(), data.data(), data.size())).ok());
  });
  for (const char* call : {"1", "2"}) {
    for (const char* rank : {"0", "1"}) {
      EXPECT_THAT(text, ContainsRegex(fmt::format(
                            "\\[{}\\] NCCL TRACE all-reduce \\(call {}, count 2, float32, sum\\): "
                            "blocks of 8 bytes, runs as low-latency one-hop\n",
                            rank, call)));
    }
  }
  EXPECT_THAT(text, ContainsRegex("\\(call 3, count 65536, float32, sum\\): "
                                  "blocks of 262144 bytes, runs as direct direct\n"));
}

TEST_F(Traces, NameTheSlicesOfStagedCalls) {
  CommOptions options = quick_options();
  options.config.algorithm = "ring";
  options.config.single_copy = false;
  options.config.slice_bytes = 16 * 1024;
  const std::string text = logged(log::Level::kTrace, options, [](Communicator& comm) {
    std::vector<float> data(65536);
    ASSERT_TRUE(run(comm, all_reduce(data.data(), data.data(), data.size())).ok());
  });
  EXPECT_THAT(text, HasSubstr("runs as staged ring, slices of 16 KiB\n"));
}

TEST_F(Traces, NameWhatSendsAndReceivesRunAs) {
  const std::string text = logged(log::Level::kTrace, quick_options(), [](Communicator& comm) {
    float word = 0;
    Call call;
    call.collective = Collective::kSendRecv;
    call.root = 1 - comm.rank();
    call.receives = comm.rank() == 1;
    if (call.receives)
      call.recv = &word;
    else
      call.send = &word;
    call.count = 1;
    ASSERT_TRUE(run(comm, call).ok());
  });
  EXPECT_THAT(text, ContainsRegex("\\[0\\] NCCL TRACE send 1 .*runs as low-latency staged\n"));
  EXPECT_THAT(text, ContainsRegex("\\[1\\] NCCL TRACE receive 1 .*runs as low-latency staged\n"));
}

TEST_F(Traces, NamePutsBetweenHosts) {
  const auto exchange = [](Communicator& comm) {
    std::vector<float> in(65536), out(in.size());
    Call call = all_reduce(in.data(), out.data(), in.size() / 2);
    call.collective = Collective::kAllToAll;
    ASSERT_TRUE(run(comm, call).ok());
  };
  EXPECT_THAT(logged(log::Level::kTrace, quick_options(), exchange, {0, 1}),
              HasSubstr("blocks of 131072 bytes, runs as put put\n"));
}

TEST_F(Traces, AreNotWrittenUnlessAskedFor) {
  const std::string text = logged(log::Level::kInfo, quick_options(), [](Communicator& comm) {
    float word = 0;
    ASSERT_TRUE(run(comm, all_reduce(&word, &word, 1)).ok());
  });
  EXPECT_THAT(text, HasSubstr("Init COMPLETE"));
  EXPECT_THAT(text, Not(HasSubstr("runs as")));
}

}  // namespace
}  // namespace tessera::test
