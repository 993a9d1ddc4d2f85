// Which plugin is used, and why another is not.
#include "transports/net_plugin/library.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "net_plugin/support/job.h"

namespace tessera::net_plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& plugins, const std::string& net = "") {
  const Result<std::shared_ptr<const Library>> library = Library::load(plugins, net);
  EXPECT_EQ(library.status().code(), Code::kInvalidUsage);
  return library.status().message();
}

std::string found(const std::string& plugins, const std::string& net = "") {
  const Result<std::shared_ptr<const Library>> library = Library::load(plugins, net);
  EXPECT_TRUE(library.ok()) << library.status().message();
  return library.ok() ? in_use(library.value().get()) : "";
}

TEST(NetLibrary, EveryVersionIsUnderstood) {
  for (int version = 8; version <= 12; ++version) {
    EXPECT_EQ(found(path_of(fmt::format("v{}", version))),
              fmt::format("sockets (version {})", version));
  }
}

TEST(NetLibrary, TheNewestVersionOfALibraryIsTaken) {
  EXPECT_EQ(found(path_of("two-versions")), "sockets (version 12)");
}

TEST(NetLibrary, NoneAndTheOwnNetworksLeavePluginsAlone) {
  EXPECT_EQ(found("none"), "none");
  EXPECT_EQ(found("NONE"), "none");
  EXPECT_EQ(found(path_of("v8"), "Socket"), "none");
  EXPECT_EQ(found(path_of("v8"), "ib"), "none");
  EXPECT_EQ(found(path_of("too-old") + ",none"), "none");
}

TEST(NetLibrary, WithoutASettingThereIsNoPluginHere) { EXPECT_EQ(found(""), "none"); }

TEST(NetLibrary, OfAListTheFirstThatCanBeUsedIsTaken) {
  EXPECT_EQ(found("absent," + path_of("too-old") + "," + path_of("v9") + "," + path_of("v10")),
            "sockets (version 9)");
}

TEST(NetLibrary, ALibraryThatCannotBeLoadedIsRefusedWithAllNamesThatWereTried) {
  EXPECT_THAT(refusal("absent"), AllOf(HasSubstr("NCCL_NET_PLUGIN=absent"),
                                       HasSubstr("libnccl-net-absent.so"), HasSubstr("cannot")));
  EXPECT_THAT(refusal("/absent/plugin.so"), HasSubstr("/absent/plugin.so"));
}

TEST(NetLibrary, APluginThatLacksWhatIsNeededIsRefusedInWords) {
  EXPECT_THAT(refusal(path_of("too-old")), HasSubstr("exports no ncclNetPlugin_v8 to _v12"));
  EXPECT_THAT(refusal(path_of("no-isend")), HasSubstr("table of version 12 lacks a function"));
  EXPECT_THAT(refusal(path_of("only-gpu")),
              AllOf(HasSubstr("sockets (version 10)"), HasSubstr("none of its 3 devices")));
}

TEST(NetLibrary, ANetworkOfThatNameIsDemanded) {
  EXPECT_EQ(found(path_of("v11"), "SOCKETS"), "sockets (version 11)");
  EXPECT_THAT(refusal(path_of("v11"), "OFI"),
              AllOf(HasSubstr("NCCL_NET=OFI"), HasSubstr("sockets (version 11)")));
  EXPECT_THAT(refusal("none", "OFI"), HasSubstr("NCCL_NET=OFI"));
}

// A plugin of its own, which has not proved itself.
std::string fresh_copy(const std::string& name) {
  const std::string path =
      fmt::format("{}/libnccl-net-{}-copy{}.so", ::testing::TempDir(), name, ::getpid());
  std::filesystem::copy_file(path_of(name), path,
                             std::filesystem::copy_options::overwrite_existing);
  return path;
}

TEST(NetLibrary, APluginWhoseInitFailsIsRefusedWithItsResult) {
  for (const char* name : {"v8", "v12"}) {
    const std::string path = fresh_copy(name);
    {
      const Fault fault("TEST_NET_FAIL", "init:1");
      EXPECT_THAT(refusal(path), AllOf(HasSubstr("init() failed with result 2 (system error)"),
                                       HasSubstr("NCCL_NET_PLUGIN=none")));
    }
    EXPECT_THAT(found(path), HasSubstr("sockets"));
    std::filesystem::remove(path);
  }
}

TEST(Network, TakesTheFastestDeviceThatSendsHostMemory) {
  Result<std::unique_ptr<Network>> network = Network::open(library("v8"), 0, 1);
  ASSERT_TRUE(network.ok()) << network.status().message();
  EXPECT_EQ(network.value()->device(), 2);
  EXPECT_EQ(network.value()->name(), "net plugin sockets (version 8), device 2 (fast2)");
}

TEST(Network, OldPluginsBeginOnceAProcessAndNewOnesWithEachCommunicator) {
  for (const auto& [name, times] : {std::pair{"v10", 0}, {"v11", 2}}) {
    const auto plugin = library(name);
    const int before = asked(name, "plugin_inits"), open = asked(name, "plugin_open");
    {
      auto first = Network::open(plugin, 0, 1), second = Network::open(plugin, 0, 2);
      EXPECT_TRUE(first.ok() && second.ok());
      EXPECT_EQ(asked(name, "plugin_open"), open + times);
    }
    EXPECT_EQ(asked(name, "plugin_inits"), before + times);
    EXPECT_EQ(asked(name, "plugin_open"), open);
  }
}

}  // namespace
}  // namespace tessera::net_plugin
