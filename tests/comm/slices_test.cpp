// Communicators whose profile chooses other slices for some sizes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "comm/checks.h"
#include "tuner/tuner.h"

namespace tessera::test {
namespace {

constexpr int kRanks = 3;
constexpr size_t KiB = 1024;
constexpr size_t kSmall = 8 * KiB, kLarge = 128 * KiB;  // beside the rule's 32 KiB

// By size of a block: the rule's slices, then small ones, then large ones are the fastest.
Profile profile_of(Collective collective, const char* algorithm) {
  Profile profile{"machine", "", {}};
  const auto add = [&](size_t bytes, double microseconds, size_t slot_bytes) {
    profile.samples.push_back(
        {collective, Protocol::kStaged, algorithm, kRanks, bytes, microseconds, slot_bytes});
  };
  add(64 * KiB, 100, 0);
  add(256 * KiB, 400, 0);
  add(256 * KiB, 200, kSmall);
  add(1024 * KiB, 1600, 0);
  add(1024 * KiB, 1600, kSmall);
  add(1024 * KiB, 800, kLarge);
  return profile;
}

TEST(Slices, OfEverySizeThatAProfileChoosesGiveTheRightResult) {
  const std::string path =
      testing::TempDir() + "tessera-slices-" + std::to_string(getpid()) + ".json";
  for (const auto& [collective, algorithm] : {std::pair(Collective::kAllReduce, "ring"),
                                              {Collective::kAllGather, "one-hop"},
                                              {Collective::kBroadcast, "tree"}}) {
    const Profile profile = profile_of(collective, algorithm);
    ASSERT_TRUE(save_profile(profile, path).ok());
    CommOptions options = quick_options();
    options.config.profile = path;
    Tuner tuner = Tuner::create({kRanks, false, kRanks}, options.config,
                                std::make_shared<const Profile>(profile))
                      .value();
    const auto slot = [&](size_t count) {
      return tuner.bulk({collective, count * sizeof(int32_t), Access::kMapped, true})
          .value()
          .slot_bytes;
    };
    ASSERT_EQ(slot(20'000), 0U);
    ASSERT_EQ(slot(65'000), kSmall);
    ASSERT_EQ(slot(300'001), kLarge);
    run_ranks(kRanks, options, [&](Communicator& comm) {
      check_sizes(comm, collective, {20'000, 300'001, 65'000, 20'001, 65'001, 300'000});
    });
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tessera::test
