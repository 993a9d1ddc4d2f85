// Tuner plugins decide, as far as they name what exists here.
#include "tuner/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "comm/ranks.h"
#include "tuner/tuner.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t KiB = 1024;
const Site kSite{4, false, 8};

std::string path_of(const std::string& name) {
  return fmt::format("{}/libnccl-tuner-{}.so", TESSERA_TEST_PLUGINS, name);
}

Tuner tuner_with(const std::string& name, const Config& config = {}) {
  Result<std::shared_ptr<const TunerLibrary>> library = TunerLibrary::load(path_of(name));
  EXPECT_TRUE(library.ok()) << library.status().message();
  Result<std::unique_ptr<TunerPlugin>> plugin =
      TunerPlugin::create(library.value(), 0x1234, kSite.ranks);
  EXPECT_TRUE(plugin.ok()) << plugin.status().message();
  return Tuner::create(kSite, config, nullptr, std::move(plugin).value()).value();
}

Tuner tuner_without(const Config& config = {}) {
  return Tuner::create(kSite, config, nullptr).value();
}

std::string choice(Tuner& tuner, Collective collective, size_t block) {
  Result<Candidate> chosen = tuner.chosen({collective, block, Access::kMapped, false});
  return chosen.ok() ? describe(chosen.value()) : chosen.status().message();
}

// What the library under test and this test share: the loader gives both the same one.
template <class Function>
Function symbol(const std::string& name, const char* function) {
  void* handle = ::dlopen(path_of(name).c_str(), RTLD_NOW);
  EXPECT_NE(handle, nullptr) << ::dlerror();
  return reinterpret_cast<Function>(::dlsym(handle, function));
}

int calls_of(const std::string& name) { return symbol<int (*)()>(name, "plugin_calls")(); }

std::string refusal(const std::string& setting) {
  const Result<std::shared_ptr<const TunerLibrary>> library = TunerLibrary::load(setting);
  EXPECT_EQ(library.status().code(), Code::kInvalidUsage);
  return library.status().message();
}

TEST(TunerPlugin, VersionTwoNamesWhatRuns) {
  Tuner tuner = tuner_with("two");
  EXPECT_EQ(choice(tuner, Collective::kAllReduce, KiB), "low-latency ring");
  EXPECT_EQ(choice(tuner, Collective::kAllReduce, 64 * KiB), "low-latency ring");
  EXPECT_EQ(choice(tuner, Collective::kAllReduce, 65 * KiB), "staged ring");
}

TEST(TunerPlugin, AnUnchangedTableLeavesTheChoiceToTheTuner) {
  for (const char* name : {"four", "four-nowhere", "four-fails"}) {
    Tuner with = tuner_with(name), without = tuner_without();
    for (int c = 0; c < kCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (collective == Collective::kSendRecv) continue;
      for (const size_t block : {8 * size_t{1}, KiB, 100 * KiB, 1024 * KiB})
        EXPECT_EQ(choice(with, collective, block), choice(without, collective, block)) << name;
    }
  }
}

TEST(TunerPlugin, TheTableHasAnEntryForEachNameThatSomethingStandsForAndNoOther) {
  Tuner tuner = tuner_with("four");
  (void)choice(tuner, Collective::kAllReduce, KiB);
  const auto cost = symbol<float (*)(int, int)>("four", "plugin_cost");
  for (const int algorithm : {0, 1}) {
    for (const int protocol : {0, 1, 2}) EXPECT_GT(cost(algorithm, protocol), 0);
    EXPECT_EQ(cost(algorithm, 0), cost(algorithm, 1));
  }
  for (const int algorithm : {2, 3, 4, 5, 6})
    for (const int protocol : {0, 1, 2}) EXPECT_EQ(cost(algorithm, protocol), -1);
  (void)choice(tuner, Collective::kAllGather, KiB);
  EXPECT_EQ(cost(0, 2), -1);
  EXPECT_GT(cost(6, 2), 0);
}

TEST(TunerPlugin, WhatTheUserForcesIsAllThatIsOffered) {
  Config config;
  config.nccl_algorithms = "allreduce:tree";
  Tuner tuner = tuner_with("two", config);  // wants the ring
  EXPECT_THAT(choice(tuner, Collective::kAllReduce, 100 * KiB), HasSubstr("tree"));
  Config low_latency;
  low_latency.low_latency_max = 0;
  Tuner never = tuner_with("two", low_latency);
  EXPECT_THAT(choice(never, Collective::kAllReduce, KiB), Not(HasSubstr("low-latency")));
}

TEST(TunerPlugin, VersionThreeIsAskedWithoutTheRegistrationOfBuffers) {
  Tuner tuner = tuner_with("three");
  EXPECT_EQ(choice(tuner, Collective::kAllReduce, 8), "staged ring");
  EXPECT_EQ(choice(tuner, Collective::kBroadcast, 100 * KiB), "staged ring");
}

TEST(TunerPlugin, VersionFiveIsVersionSixWithoutChunks) {
  Tuner tuner = tuner_with("five"), without = tuner_without();
  const BulkCall call{Collective::kAllReduce, 100 * KiB, Access::kMapped, false};
  const Candidate ring = tuner.bulk(call).value();
  EXPECT_EQ(describe(ring), "staged ring");
  EXPECT_EQ(tuner.choice_of_bulk(call, ring).slot_bytes, without.choice_of_bulk(ring).slot_bytes);
}

TEST(TunerPlugin, TheLeastEntryOfAChangedTableDecides) {
  Tuner tuner = tuner_with("six");
  EXPECT_THAT(choice(tuner, Collective::kAllReduce, KiB), HasSubstr("low-latency double-tree"));
  EXPECT_EQ(choice(tuner, Collective::kAllReduce, 5 * KiB), "staged ring");
  EXPECT_EQ(choice(tuner, Collective::kAllGather, 100 * KiB), "staged ring");
}

TEST(TunerPlugin, ThePluginChoosesTheChunk) {
  Tuner tuner = tuner_with("six"), without = tuner_without();
  const BulkCall call{Collective::kAllReduce, 100 * KiB, Access::kMapped, false};
  const Candidate ring = tuner.bulk(call).value();
  EXPECT_EQ(tuner.choice_of_bulk(call, ring).slot_bytes,
            2 * without.choice_of_bulk(ring).slot_bytes);
}

TEST(TunerPlugin, ItIsAskedOncePerCollectiveAndPowerOfTwo) {
  Tuner tuner = tuner_with("six");
  const int before = calls_of("six");
  for (int i = 0; i < 3; ++i) {
    for (const size_t block : {5 * KiB, 8 * KiB, 7 * KiB + 3, 9 * KiB})
      (void)choice(tuner, Collective::kAllReduce, block);
    (void)choice(tuner, Collective::kAllToAll, KiB);
    (void)choice(tuner, Collective::kSendRecv, KiB);
  }
  EXPECT_EQ(calls_of("six"), before + 2);
}

TEST(TunerPlugin, AFailureIsAWarningOnce) {
  const std::string path = ::testing::TempDir() + "tuner-plugin-log";
  std::filesystem::remove(path);
  log::configure(log::Level::kInfo, path);
  {
    Tuner tuner = tuner_with("four-fails");
    (void)choice(tuner, Collective::kAllReduce, KiB);
    (void)choice(tuner, Collective::kAllReduce, 64 * KiB);
  }
  log::configure(log::Level::kWarn, "");
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, HasSubstr("tuner plugin: ready for 4 ranks"));
  const size_t first = text.find("getCollInfo() failed with result 3");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("getCollInfo() failed", first + 1), std::string::npos);
}

TEST(TunerPlugin, ThePluginIsFinalizedWithItsTuner) {
  {
    Tuner tuner = tuner_with("two");
    EXPECT_GE(calls_of("two"), 0);  // and the library stays loaded
  }
  EXPECT_EQ(calls_of("two"), -1);
}

TEST(TunerPlugin, ANamedPluginThatCannotBeUsedIsAnError) {
  EXPECT_THAT(refusal("/absent/plugin.so"), HasSubstr("NCCL_TUNER_PLUGIN=/absent/plugin.so"));
  EXPECT_THAT(refusal("absent"), HasSubstr("libnccl-tuner-absent.so"));
  EXPECT_THAT(refusal("libc.so.6"), HasSubstr("exports no ncclTunerPlugin"));
  EXPECT_THAT(refusal("STATIC_PLUGIN"), HasSubstr("exports no ncclTunerPlugin"));
  const auto library = TunerLibrary::load(path_of("six-no-init"));
  ASSERT_TRUE(library.ok());
  EXPECT_EQ(in_use(library.value().get()), "example six (version 6)");
  const auto plugin = TunerPlugin::create(library.value(), 1, 2);
  EXPECT_THAT(plugin.status().message(), HasSubstr("init() failed with result 2"));
}

TEST(TunerPlugin, NobodyNamedOneAndNoneIsThereMeansNone) {
  for (const char* setting : {"", "none", "NONE"}) {
    const auto library = TunerLibrary::load(setting);
    ASSERT_TRUE(library.ok()) << library.status().message();
    EXPECT_EQ(in_use(library.value().get()), "none");
  }
}

// Ranks as threads, through all sizes that a plugin's answer separates.
TEST(TunerPlugin, CollectivesAreRightAsThePluginWantsThem) {
  for (const char* name : {"two", "four-fails", "six"}) {
    CommOptions options = test::quick_options();
    options.config.tuner_plugin = path_of(name);
    test::run_ranks(3, options, [](Communicator& comm) {
      for (const size_t count : {size_t{1}, size_t{1000}, size_t{17000}, size_t{300001}}) {
        std::vector<float> data(count, static_cast<float>(comm.rank() + 1));
        Call call;
        call.collective = Collective::kAllReduce;
        call.send = call.recv = data.data();
        call.count = count;
        for (int i = 0; i < 2; ++i) {
          const Status status = test::run(comm, call);
          ASSERT_TRUE(status.ok()) << status.message();
        }
        EXPECT_EQ(data.front(), 18);
        EXPECT_EQ(data.back(), 18);
      }
    });
  }
}

TEST(TunerPlugin, APluginThatRefusesOneRankStopsAllAtOnce) {
  CommOptions options = test::quick_options(60'000);
  options.config.tuner_plugin = path_of("six-only-once");
  const Result<UniqueId> id = create_unique_id(options.config);
  ASSERT_TRUE(id.ok());
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  std::vector<Status> told(3);
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back(
        [&, rank] { told[rank] = Communicator::create(id.value(), 3, rank, options).status(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : told)
    EXPECT_THAT(status.message(), HasSubstr("tuner plugin")) << status.message();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(TunerPlugin, RanksWhosePluginsAnswerDifferentlyAreTold) {
  for (const char* plugin : {"six-eager-or-not", "six-two-eager", "six-two-bulk"}) {
    SCOPED_TRACE(plugin);
    CommOptions options = test::quick_options();
    options.config.tuner_plugin = path_of(plugin);
    test::run_ranks(2, options, [](Communicator& comm) {
      std::vector<float> data(1000, 1);
      const Status status = test::run(comm, test::all_reduce(data.data(), data.data(), 1000));
      EXPECT_EQ(status.code(), Code::kInvalidUsage);
      EXPECT_THAT(status.message(), HasSubstr("their tuner plugins answer differently"));
      EXPECT_THAT(status.message(), HasSubstr("rank 0"));
      EXPECT_THAT(status.message(), HasSubstr("rank 1"));
    });
  }
}

TEST(TunerPlugin, RanksWithDifferentPluginsAreTold) {
  const CommOptions options = test::quick_options();
  const Result<UniqueId> id = create_unique_id(options.config);
  ASSERT_TRUE(id.ok());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      CommOptions own = options;
      if (rank == 1) own.config.tuner_plugin = path_of("two");
      const auto comm = Communicator::create(id.value(), 2, rank, own);
      EXPECT_EQ(comm.status().code(), Code::kInvalidUsage);
      EXPECT_THAT(comm.status().message(), HasSubstr("NCCL_TUNER_PLUGIN (in use)"));
      EXPECT_THAT(comm.status().message(), HasSubstr("example two (version 2)"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tessera
