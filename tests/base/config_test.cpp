#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tessera {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kNames[] = {
    "TESSERA_TIMEOUT_MS",
    "TESSERA_ALGO",
    "TESSERA_LL_MAX",
    "TESSERA_SLICE_BYTES",
    "TESSERA_SINGLE_COPY",
    "TESSERA_SPIN",
    "TESSERA_EMULATE",
    "NCCL_COMM_BLOCKING",
    "TESSERA_SHARE_MEMORY",
    "NCCL_SOCKET_IFNAME",
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_TIMEOUT",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_TC",
    "NCCL_IB_SL",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_SOCKET_FAMILY",
    "NCCL_SOCKET_NTHREADS",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_DEBUG",
    "NCCL_COMM_ID",
    "NCCL_DEBUG_FILE",
    "NCCL_CONF_FILE",
    "NCCL_TOPO_FILE",
    "NCCL_TOPO_DUMP_FILE",
    "NCCL_TOPO_DUMP_FILE_RANK",
    "NCCL_GRAPH_FILE",
    "NCCL_GRAPH_DUMP_FILE",
    "NCCL_GRAPH_DUMP_FILE_RANK",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MAX_CTAS",
    "NCCL_TUNER_PLUGIN",
    "NCCL_NET_PLUGIN",
    "NCCL_NET",
};

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {(std::istreambuf_iterator<char>(file)), {}};
}

// Each test starts with a home of its own and nothing set.
class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tessera-config-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    home_ = pattern;
    if (const char* home = std::getenv("HOME")) old_home_ = home;
    ::setenv("HOME", home_.c_str(), 1);
    for (const char* name : kNames) ::unsetenv(name);
  }

  void TearDown() override {
    for (const char* name : kNames) ::unsetenv(name);
    if (old_home_.empty()) {
      ::unsetenv("HOME");
    } else {
      ::setenv("HOME", old_home_.c_str(), 1);
    }
    std::filesystem::remove_all(home_);
  }

  std::string write_file(const std::string& name, const std::string& text) {
    const std::string path = home_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  static Config read() {
    Result<Config> config = Config::from_environment();
    EXPECT_TRUE(config.ok()) << config.status().message();
    return config.ok() ? config.value() : Config{};
  }

  static std::string refusal(const char* name, const char* text) {
    ::setenv(name, text, 1);
    const Result<Config> config = Config::from_environment();
    ::unsetenv(name);
    EXPECT_EQ(config.status().code(), Code::kInvalidUsage) << name << "=" << text;
    EXPECT_THAT(config.status().message(), HasSubstr(name));
    EXPECT_THAT(config.status().message(), HasSubstr(text));
    return config.status().message();
  }

  std::string home_;
  std::string old_home_;
};

TEST_F(ConfigTest, AnEmptyEnvironmentGivesTheDefaults) {
  const Config config = read();
  EXPECT_EQ(config.timeout, std::chrono::seconds(30));
  EXPECT_EQ(config.algorithm, "");
  EXPECT_EQ(config.low_latency_max, -1);
  EXPECT_EQ(config.blocking, -1);
  EXPECT_TRUE(config.single_copy);
  EXPECT_EQ(config.debug, log::Level::kWarn);
}

TEST_F(ConfigTest, EveryVariableIsRead) {
  ::setenv("TESSERA_TIMEOUT_MS", "1500", 1);
  ::setenv("TESSERA_ALGO", "ring", 1);
  ::setenv("TESSERA_LL_MAX", "0x1000", 1);
  ::setenv("TESSERA_SLICE_BYTES", "65536", 1);
  ::setenv("TESSERA_SINGLE_COPY", "0", 1);
  ::setenv("TESSERA_SHARE_MEMORY", "0", 1);
  ::setenv("TESSERA_SPIN", "7", 1);
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  ::setenv("NCCL_SOCKET_IFNAME", "^docker,lo", 1);
  ::setenv("NCCL_COMM_ID", "127.0.0.1:4711", 1);
  ::setenv("NCCL_DEBUG", "info", 1);
  ::setenv("NCCL_DEBUG_FILE", "/tmp/log.%h.%p", 1);
  const Config config = read();
  EXPECT_EQ(config.timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(config.algorithm, "ring");
  EXPECT_EQ(config.low_latency_max, 4096);
  EXPECT_EQ(config.slice_bytes, 65536);
  EXPECT_FALSE(config.single_copy);
  EXPECT_FALSE(config.share_memory);
  EXPECT_EQ(config.spin, 7);
  EXPECT_EQ(config.blocking, 0);
  EXPECT_EQ(config.socket_ifname, "^docker,lo");
  EXPECT_EQ(config.comm_id, "127.0.0.1:4711");
  EXPECT_EQ(config.debug, log::Level::kInfo);
  EXPECT_EQ(config.debug_file, "/tmp/log.%h.%p");
}

TEST_F(ConfigTest, FilesOfTheTopologyAndPluginsAreRead) {
  ::setenv("NCCL_TOPO_FILE", "/a", 1);
  ::setenv("NCCL_TOPO_DUMP_FILE", "/b", 1);
  ::setenv("NCCL_GRAPH_FILE", "/c", 1);
  ::setenv("NCCL_GRAPH_DUMP_FILE", "/d", 1);
  ::setenv("NCCL_TUNER_PLUGIN", "mine", 1);
  ::setenv("NCCL_NET_PLUGIN", "theirs", 1);
  ::setenv("NCCL_NET", "Socket", 1);
  EXPECT_EQ(read().topology_dump_rank, 0);
  ::setenv("NCCL_TOPO_DUMP_FILE_RANK", "3", 1);
  ::setenv("NCCL_GRAPH_DUMP_FILE_RANK", "4", 1);
  const Config config = read();
  EXPECT_EQ(config.topology_file, "/a");
  EXPECT_EQ(config.topology_dump, "/b");
  EXPECT_EQ(config.topology_dump_rank, 3);
  EXPECT_EQ(config.graph_file, "/c");
  EXPECT_EQ(config.graph_dump, "/d");
  EXPECT_EQ(config.graph_dump_rank, 4);
  EXPECT_EQ(config.tuner_plugin, "mine");
  EXPECT_EQ(config.net_plugin, "theirs");
  EXPECT_EQ(config.net, "Socket");
  refusal("NCCL_TOPO_DUMP_FILE_RANK", "-1");
  refusal("NCCL_GRAPH_DUMP_FILE_RANK", "all");
}

TEST_F(ConfigTest, ChannelsAreLimitedAsNcclDoes) {
  ::setenv("NCCL_MIN_NCHANNELS", "4000", 1);
  ::setenv("NCCL_MAX_NCHANNELS", "0", 1);
  ::setenv("NCCL_MIN_CTAS", "-5", 1);
  ::setenv("NCCL_MAX_CTAS", "32", 1);
  Config config = read();
  EXPECT_EQ(config.min_channels, 64);
  EXPECT_EQ(config.max_channels, 1);
  EXPECT_EQ(config.min_ctas, 1);
  EXPECT_EQ(config.max_ctas, 32);
  ::setenv("NCCL_MIN_NCHANNELS", "-2", 1);  // unset, in NCCL's words
  EXPECT_EQ(read().min_channels, -1);
  refusal("NCCL_MIN_NCHANNELS", "8x");
}

TEST_F(ConfigTest, TheProductOfThreadsAndSocketsPerThreadIsTheNumberOfSockets) {
  EXPECT_EQ(read().sockets_per_peer(), 1);
  ::setenv("NCCL_SOCKET_NTHREADS", "4", 1);
  EXPECT_EQ(read().sockets_per_peer(), 4);
  ::setenv("NCCL_NSOCKS_PERTHREAD", "16", 1);
  EXPECT_EQ(read().sockets_per_peer(), 64);
  EXPECT_THAT(refusal("NCCL_NSOCKS_PERTHREAD", "17"), HasSubstr("68 sockets"));
  ::setenv("NCCL_NSOCKS_PERTHREAD", "2", 1);
  EXPECT_THAT(refusal("NCCL_SOCKET_NTHREADS", "0"), HasSubstr("from 1 to 16"));
  EXPECT_THAT(refusal("NCCL_NSOCKS_PERTHREAD", "65"), HasSubstr("from 1 to 64"));
}

TEST_F(ConfigTest, TheSocketFamilyIsOneOfTwoWords) {
  EXPECT_EQ(read().socket_family, "");
  ::setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
  EXPECT_EQ(read().socket_family, "AF_INET6");
  EXPECT_THAT(refusal("NCCL_SOCKET_FAMILY", "ipv6"), HasSubstr("AF_INET or AF_INET6"));
}

TEST_F(ConfigTest, TheVariablesOfRdmaAreReadAndChecked) {
  EXPECT_FALSE(read().ib_disabled);
  EXPECT_EQ(read().ib_gid_index, -1);
  ::setenv("NCCL_IB_DISABLE", "1", 1);
  ::setenv("NCCL_IB_HCA", "^=mlx5_0:1,mlx5_1", 1);
  ::setenv("NCCL_IB_GID_INDEX", "3", 1);
  ::setenv("NCCL_IB_TIMEOUT", "22", 1);
  ::setenv("NCCL_IB_RETRY_CNT", "3", 1);
  ::setenv("NCCL_IB_TC", "106", 1);
  ::setenv("NCCL_IB_SL", "5", 1);
  ::setenv("NCCL_IB_QPS_PER_CONNECTION", "4", 1);
  const Config config = read();
  EXPECT_TRUE(config.ib_disabled);
  EXPECT_EQ(config.ib_hca, "^=mlx5_0:1,mlx5_1");
  EXPECT_EQ(config.ib_gid_index, 3);
  EXPECT_EQ(config.ib_timeout, 22);
  EXPECT_EQ(config.ib_retries, 3);
  EXPECT_EQ(config.ib_traffic_class, 106);
  EXPECT_EQ(config.ib_service_level, 5);
  EXPECT_EQ(config.ib_pairs_per_connection, 4);
  EXPECT_THAT(refusal("NCCL_IB_HCA", "mlx5_0:one"), HasSubstr(":port"));
  EXPECT_THAT(refusal("NCCL_IB_TIMEOUT", "32"), HasSubstr("from 0 to 31"));
  EXPECT_THAT(refusal("NCCL_IB_QPS_PER_CONNECTION", "0"), HasSubstr("from 1 to 8"));
}

TEST_F(ConfigTest, OneLineSaysWhyMoreChannelsHaveNoEffect) {
  Config config;
  config.min_channels = 8;
  const std::string path = home_ + "/log";
  log::configure(log::Level::kInfo, path);
  config.log_changes(0);
  config.min_channels = 1;
  config.log_changes(1);
  log::configure(log::Level::kWarn, "");
  const std::string text = text_of_file(path);
  EXPECT_THAT(text, HasSubstr("[0] NCCL INFO NCCL_MIN_NCHANNELS=8 has no effect: a host rank"));
  EXPECT_EQ(text.find("no effect"), text.rfind("no effect"));
}

TEST_F(ConfigTest, NamesThatMeanNothingAreLogged) {
  ::setenv("NCCL_ALG", "ring", 1);
  const std::string path = home_ + "/log";
  log::configure(log::Level::kInfo, path);
  Config().log_changes(0);
  log::configure(log::Level::kWarn, "");
  ::unsetenv("NCCL_ALG");
  EXPECT_THAT(text_of_file(path), HasSubstr("NCCL_ALG: has no meaning to this library"));
}

TEST_F(ConfigTest, ANumberWithTrailingGarbageIsRefusedByName) {
  EXPECT_THAT(refusal("TESSERA_LL_MAX", "4k"), HasSubstr("number of bytes"));
  EXPECT_THAT(refusal("TESSERA_SLICE_BYTES", "64 "), HasSubstr("number of bytes"));
  EXPECT_THAT(refusal("TESSERA_TIMEOUT_MS", "30s"), HasSubstr("milliseconds"));
  refusal("TESSERA_SPIN", "1e3");
  refusal("TESSERA_SPIN", "0x");
  refusal("TESSERA_SPIN", "--1");
  refusal("TESSERA_SPIN", "99999999999999999999999");
}

TEST_F(ConfigTest, AValueOutOfRangeIsRefusedWithWhatIsAllowed) {
  EXPECT_THAT(refusal("TESSERA_TIMEOUT_MS", "0"), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal("TESSERA_TIMEOUT_MS", "-5"), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal("TESSERA_LL_MAX", "-2"), HasSubstr("-1"));
  EXPECT_THAT(refusal("TESSERA_SLICE_BYTES", "0"), HasSubstr("at least one byte"));
  EXPECT_THAT(refusal("TESSERA_SINGLE_COPY", "yes"), HasSubstr("0 or 1"));
  EXPECT_THAT(refusal("NCCL_COMM_BLOCKING", "2"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refusal("NCCL_DEBUG", "LOUD"), HasSubstr("WARN, INFO"));
}

TEST_F(ConfigTest, AnEmptyValueCountsAsUnset) {
  ::setenv("TESSERA_SPIN", "", 1);
  ::setenv("NCCL_DEBUG", "", 1);
  EXPECT_EQ(read().spin, -1);
  EXPECT_EQ(read().debug, log::Level::kWarn);
}

TEST_F(ConfigTest, ChangesOfTheEnvironmentAreSeenByTheNextRead) {
  ::setenv("TESSERA_SPIN", "1", 1);
  EXPECT_EQ(read().spin, 1);
  ::setenv("TESSERA_SPIN", "2", 1);
  EXPECT_EQ(read().spin, 2);
}

TEST_F(ConfigTest, TheHomeFileIsReadAndNeverOverridesTheEnvironment) {
  write_file(".nccl.conf",
             "# comment\nTESSERA_SPIN=5\r\n\nTESSERA_ALGO=tree\nNCCL_P2P_DISABLE=1\n");
  ::setenv("TESSERA_ALGO", "ring", 1);
  const Config config = read();
  EXPECT_EQ(config.spin, 5);
  EXPECT_EQ(config.algorithm, "ring");
}

TEST_F(ConfigTest, TheNamedFileReplacesTheHomeFile) {
  write_file(".nccl.conf", "TESSERA_SPIN=5\n");
  ::setenv("NCCL_CONF_FILE", write_file("other.conf", "TESSERA_ALGO=a b\n").c_str(), 1);
  const Config config = read();
  EXPECT_EQ(config.spin, -1);
  EXPECT_EQ(config.algorithm, "a b");
}

TEST_F(ConfigTest, TheFirstOfTwoEqualLinesHolds) {
  write_file(".nccl.conf", "TESSERA_SPIN=5\nTESSERA_SPIN=6\n");
  EXPECT_EQ(read().spin, 5);
}

TEST_F(ConfigTest, AValueInAFileIsParsedAsStrictly) {
  write_file(".nccl.conf", "TESSERA_SPIN=5x\n");
  const Result<Config> config = Config::from_environment();
  EXPECT_EQ(config.status().code(), Code::kInvalidUsage);
  EXPECT_THAT(config.status().message(), HasSubstr("TESSERA_SPIN=\"5x\""));
}

TEST_F(ConfigTest, ALineThatIsNoAssignmentIsRefusedWithFileAndLine) {
  const std::string path = write_file(".nccl.conf", "TESSERA_SPIN=5\nnonsense\n");
  const Result<Config> config = Config::from_environment();
  EXPECT_EQ(config.status().code(), Code::kInvalidUsage);
  EXPECT_THAT(config.status().message(), HasSubstr(path + " line 2"));
}

TEST_F(ConfigTest, ANamedFileThatCannotBeReadIsRefused) {
  ::setenv("NCCL_CONF_FILE", (home_ + "/absent").c_str(), 1);
  const Result<Config> config = Config::from_environment();
  EXPECT_EQ(config.status().code(), Code::kInvalidUsage);
  EXPECT_THAT(config.status().message(), HasSubstr("NCCL_CONF_FILE"));
}

TEST_F(ConfigTest, SharedSettingsHoldWhatDecidesTheScheduleAndNothingPersonal) {
  Config config;
  config.algorithm = "ring";
  config.slice_bytes = 4096;
  const auto shared = config.shared_settings();
  EXPECT_THAT(shared, Contains(Pair("TESSERA_ALGO", "ring")));
  EXPECT_THAT(shared, Contains(Pair("TESSERA_SLICE_BYTES", "4096")));
  EXPECT_THAT(shared, Contains(Pair("TESSERA_LL_MAX", "-1")));
  EXPECT_THAT(shared, Contains(Pair("TESSERA_SINGLE_COPY", "1")));
  EXPECT_THAT(shared, Contains(Pair("NCCL_NET", "")));
  EXPECT_THAT(shared, Contains(Pair("TESSERA_EMULATE (contents)", "none")));
  EXPECT_THAT(shared, Contains(Pair("NCCL_GRAPH_FILE (contents)", "none")));
  EXPECT_THAT(shared, Contains(Pair("NCCL_TUNER_PLUGIN (in use)", "none")));
  EXPECT_THAT(shared, Contains(Pair("NCCL_NET_PLUGIN (in use)", "none")));
  EXPECT_THAT(shared, Not(Contains(Pair("NCCL_DEBUG", ::testing::_))));
  EXPECT_THAT(shared, Not(Contains(Pair("TESSERA_TIMEOUT_MS", ::testing::_))));
  EXPECT_THAT(shared, Not(Contains(Pair("NCCL_TOPO_FILE (contents)", ::testing::_))));
  EXPECT_THAT(config.host_settings(), ElementsAre(Pair("TESSERA_PROFILE (contents)", "none"),
                                                  Pair("NCCL_TOPO_FILE (contents)", "none")));
}

TEST_F(ConfigTest, OnlySettingsThatDifferFromTheDefaultAreLogged) {
  Config config;
  config.spin = 12;
  const std::string path = home_ + "/log";
  log::configure(log::Level::kInfo, path);
  config.log_changes(3);
  log::configure(log::Level::kWarn, "");
  const std::string text = text_of_file(path);
  EXPECT_THAT(text, HasSubstr("[3] NCCL INFO TESSERA_SPIN set to 12"));
  EXPECT_THAT(text, Not(HasSubstr("TESSERA_LL_MAX")));
}

}  // namespace
}  // namespace tessera
