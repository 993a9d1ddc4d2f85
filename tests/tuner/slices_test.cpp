// Slices of staged plans: what the model says of them, and who chooses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tuner/tuner.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kKiB = 1024;
constexpr size_t kRule = 32 * kKiB;  // of two to eight ranks

Candidate staged(Collective collective, std::string_view name, size_t slot_bytes = 0) {
  return {Protocol::kStaged, find_algorithm(collective, name, Reach::kStaged), slot_bytes};
}

double modelled(const Candidate& candidate, size_t bytes, const Site& site = {8, false, 8}) {
  return Estimator(site, nullptr).estimate(candidate, bytes).microseconds;
}

TEST(SlicesInTheModel, TinyOnesCostSteps) {
  for (const char* name : {"ring", "two-phase", "double-tree"}) {
    const auto time = [&](size_t slot) {
      return modelled(staged(Collective::kAllReduce, name, slot), 8192 * kKiB);
    };
    EXPECT_GT(time(256), 2 * time(16 * kKiB)) << name;
    EXPECT_GT(time(256), time(512)) << name;
  }
}

TEST(SlicesInTheModel, HugeOnesKeepRanksWaiting) {
  const auto time = [&](size_t slot) {
    return modelled(staged(Collective::kBroadcast, "ring", slot), 8192 * kKiB);
  };
  EXPECT_GT(time(8192 * kKiB), 2 * time(64 * kKiB));
  EXPECT_GT(time(8192 * kKiB), time(2048 * kKiB));
}

TEST(SlicesInTheModel, MakeNoDifferenceToWhatFitsInOne) {
  const auto time = [&](size_t slot) {
    return modelled(staged(Collective::kAllReduce, "ring", slot), 16 * kKiB);
  };
  EXPECT_EQ(time(2 * kKiB), time(128 * kKiB));  // a chunk is an eighth of a block
  EXPECT_GT(time(1 * kKiB), time(2 * kKiB));
}

TEST(SlicesInTheModel, AreTheRulesUnlessForced) {
  const Candidate ring = staged(Collective::kAllReduce, "ring");
  EXPECT_EQ(modelled(ring, 1024 * kKiB),
            modelled(staged(Collective::kAllReduce, "ring", kRule), 1024 * kKiB));
  Config config;
  config.slice_bytes = 512;
  EXPECT_EQ(Estimator({8, false, 8}, nullptr, config).estimate(ring, 1024 * kKiB).microseconds,
            modelled(staged(Collective::kAllReduce, "ring", 512), 1024 * kKiB));
}

TEST(SlicesInTheModel, OverTheNetworkTheLinkIsTheBottleneckOfLargeOnes) {
  Site site{4, false, 4, 2, {0, 0, 1, 1}};
  site.network.bandwidth = 500;
  Site fast = site;
  fast.network.bandwidth *= 2;
  const Candidate large = staged(Collective::kAllReduce, "hierarchical", 64 * kKiB);
  const Candidate tiny = staged(Collective::kAllReduce, "hierarchical", 64);
  EXPECT_GT(modelled(large, 8192 * kKiB, site), 1.5 * modelled(large, 8192 * kKiB, fast));
  EXPECT_LT(modelled(tiny, 8192 * kKiB, site), 1.1 * modelled(tiny, 8192 * kKiB, fast));
}

std::vector<size_t> slots(const std::vector<Candidate>& candidates) {
  std::vector<size_t> result;
  for (const Candidate& candidate : candidates) result.push_back(candidate.slot_bytes);
  return result;
}

TEST(OtherSlices, AreAQuarterAndFourTimesTheRules) {
  const Candidate ring = staged(Collective::kAllReduce, "ring");
  EXPECT_THAT(slots(other_slices(ring, {8, false, 8}, {})), ElementsAre(kRule / 4, 4 * kRule));
  EXPECT_EQ(choice_of(ring, {8, false, 8}, {}, 0).slot_bytes, kRule);
  const Candidate small = other_slices(ring, {8, false, 8}, {}).front();
  EXPECT_EQ(choice_of(small, {8, false, 8}, {}, 0).slot_bytes, kRule / 4);
  EXPECT_EQ(describe(small), "staged ring, slices of 8 KiB");
  EXPECT_EQ(by_rule(small), ring);
}

TEST(OtherSlices, StayWithinScratch) {
  const Site many{64, true, 8};
  EXPECT_THAT(slots(other_slices(staged(Collective::kAllReduce, "ring"), many, {})),
              ElementsAre(16 * kKiB));  // a quarter of 4 kKiB would be all steps
  EXPECT_THAT(other_slices(staged(Collective::kBroadcast, "binomial"), many, {}), IsEmpty());
}

TEST(OtherSlices, AreNotOfWhatHasNoneOrIsForced) {
  const Site site{4, false, 4};
  EXPECT_THAT(other_slices({Protocol::kLowLatency,
                            find_algorithm(Collective::kAllReduce, "ring", Reach::kStaged)},
                           site, {}),
              IsEmpty());
  EXPECT_THAT(other_slices(staged(Collective::kBarrier, "dissemination"), site, {}), IsEmpty());
  EXPECT_THAT(other_slices(staged(Collective::kSendRecv, "staged"), {2, false, 2}, {}), IsEmpty());
  Config forced;
  forced.slice_bytes = 4096;
  EXPECT_THAT(other_slices(staged(Collective::kAllReduce, "ring"), site, forced), IsEmpty());
}

TEST(OtherSlices, MakeADifferenceOnceSlicesAreFull) {
  const Site site{4, false, 4};
  const Candidate ring = staged(Collective::kAllReduce, "ring", 8 * kKiB);
  EXPECT_EQ(one_pass_up_to(ring, site, {}), 4 * 8 * kKiB);  // four chunks
  EXPECT_EQ(one_pass_up_to(staged(Collective::kAllReduce, "ring", 128 * kKiB), site, {}),
            4 * kRule);
}

// Rings of two ranks: in small slices faster from 256 KiB on, in large ones hardly.
Profile measured_ring(double small = 0.5, double large = 0.95) {
  Profile profile{"machine", "", {}};
  const auto add = [&](size_t bytes, double microseconds, size_t slot_bytes) {
    profile.samples.push_back(
        {Collective::kAllReduce, Protocol::kStaged, "ring", 2, bytes, microseconds, slot_bytes});
  };
  for (const size_t bytes : {4 * kKiB, 64 * kKiB, 256 * kKiB, 1024 * kKiB}) {
    const auto time = static_cast<double>(bytes) / 1024;
    add(bytes, time, 0);
    if (bytes == 4 * kKiB) continue;
    add(bytes, bytes == 64 * kKiB ? time : small * time, kRule / 4);
    add(bytes, large * time, 4 * kRule);
  }
  return profile;
}

Tuner tuner_of(const Profile& profile, int ranks = 2, const Config& config = {}) {
  Result<Tuner> made =
      Tuner::create({ranks, false, 8}, config, std::make_shared<const Profile>(profile));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

size_t chosen_slot(Tuner& tuner, size_t bytes) {
  const BulkCall call{Collective::kAllReduce, bytes, Access::kNone, false};
  const Result<Candidate> candidate = tuner.bulk(call);
  EXPECT_TRUE(candidate.ok()) << candidate.status().message();
  EXPECT_EQ(candidate.value().algorithm->name, "ring");
  return tuner.choice_of_bulk(call, candidate.value()).slot_bytes;
}

TEST(SlicesByProfile, AreThoseThatWereMeasuredAsClearlyFaster) {
  Tuner tuner = tuner_of(measured_ring());
  EXPECT_EQ(chosen_slot(tuner, 4 * kKiB), kRule);
  EXPECT_EQ(chosen_slot(tuner, 64 * kKiB), kRule);
  EXPECT_EQ(chosen_slot(tuner, 256 * kKiB), kRule / 4);
  EXPECT_EQ(chosen_slot(tuner, 4 << 20), kRule / 4) << "what was measured last holds beyond";
  Tuner larger = tuner_of(measured_ring(0.95, 0.5));
  EXPECT_EQ(chosen_slot(larger, 256 * kKiB), 4 * kRule);
}

TEST(SlicesByProfile, AreTheRulesWhereOnlyTheseWereMeasuredForTheSize) {
  Profile profile = measured_ring();
  profile.samples.push_back(
      {Collective::kAllReduce, Protocol::kStaged, "ring", 2, 4096 * kKiB, 4096, 0});
  Tuner tuner = tuner_of(profile);
  EXPECT_EQ(chosen_slot(tuner, 1024 * kKiB), kRule / 4);
  EXPECT_EQ(chosen_slot(tuner, 4096 * kKiB), kRule) << "what others gain is not carried on";
}

TEST(SlicesByProfile, AreListedAsMeasuredForTheRanksThatTheyWereMeasuredWith) {
  const Candidate ring = staged(Collective::kAllReduce, "ring");
  EXPECT_THAT(slots(tuner_of(measured_ring()).measured_slices(ring)),
              ElementsAre(kRule / 4, 4 * kRule));
  EXPECT_THAT(tuner_of(measured_ring(), 4).measured_slices(ring), IsEmpty());
}

TEST(SlicesByProfile, AreTheRulesWhereOthersAreHardlyFaster) {
  Tuner tuner = tuner_of(measured_ring(0.95, 0.95));
  for (const size_t bytes : {64 * kKiB, 256 * kKiB, 1024 * kKiB, 4096 * kKiB})
    EXPECT_EQ(chosen_slot(tuner, bytes), kRule) << bytes;
}

TEST(SlicesByProfile, AreTheRulesWhereOthersWereNotMeasured) {
  Tuner four = tuner_of(measured_ring(), 4);  // measured with two ranks
  EXPECT_EQ(chosen_slot(four, 1024 * kKiB), kRule);
  Result<Tuner> none = Tuner::create({2, false, 8}, {}, nullptr);
  const BulkCall call{Collective::kAllReduce, 1024 * kKiB, Access::kNone, false};
  const Candidate candidate = none->bulk(call).value();
  EXPECT_EQ(candidate.slot_bytes, 0U);
  EXPECT_EQ(none->choice_of_bulk(call, candidate).slot_bytes, kRule);
}

TEST(SlicesByProfile, GiveWayToWhatIsForced) {
  Config config;
  config.slice_bytes = 5000;
  Tuner tuner = tuner_of(measured_ring(), 2, config);
  EXPECT_EQ(chosen_slot(tuner, 1024 * kKiB), 5000U);
}

TEST(SlicesByProfile, AreTheSameOnAllRanksWhateverTheyAskedBefore) {
  const Profile profile = measured_ring();
  Tuner upwards = tuner_of(profile), downwards = tuner_of(profile);
  std::vector<size_t> up, down;
  for (size_t bytes = 4; bytes <= size_t{1} << 22; bytes *= 2)
    up.push_back(chosen_slot(upwards, bytes));
  for (size_t bytes = size_t{1} << 22; bytes >= 4; bytes /= 2)
    down.insert(down.begin(), chosen_slot(downwards, bytes));
  EXPECT_EQ(up, down);
}

TEST(SlicesByProfile, MakeAnotherAlgorithmTheFastest) {
  Profile profile = measured_ring();
  profile.samples.push_back(
      {Collective::kAllReduce, Protocol::kStaged, "two-phase", 2, 1024 * kKiB, 800});
  Tuner tuner = tuner_of(profile);  // ring: 1024 by the rule, 512 in small slices
  EXPECT_EQ(chosen_slot(tuner, 1024 * kKiB), kRule / 4);
}

TEST(SlicesInProfiles, AreReadAgain) {
  const Profile profile = measured_ring(0.5, 0.75);
  const Result<Profile> read = parse_profile(to_json(profile), "test");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value(), profile);
}

std::string with_row(int version, const std::string& row) {
  return fmt::format(R"({{"tessera_profile": {}, "machine": "m", "about": "", "samples": [{}]}})",
                     version, row);
}

TEST(SlicesInProfiles, AreNotInFilesOfTheFirstVersionWhichAreReadAsWell) {
  const Result<Profile> old =
      parse_profile(with_row(1, R"(["all-reduce", "staged", "ring", 2, 4096, 8])"), "old.json");
  ASSERT_TRUE(old.ok()) << old.status().message();
  ASSERT_EQ(old->samples.size(), 1U);
  EXPECT_EQ(old->samples[0].slot_bytes, 0U);
}

TEST(SlicesInProfiles, ThatCannotBeAreRefused) {
  const auto refusal = [](int version, const std::string& row) {
    const Result<Profile> read = parse_profile(with_row(version, row), "file.json");
    EXPECT_FALSE(read.ok()) << row;
    return read.status().message();
  };
  const std::string good = R"(["all-reduce", "staged", "ring", 2, 4096, 8, 512])";
  ASSERT_TRUE(parse_profile(with_row(2, good), "").ok());
  EXPECT_THAT(refusal(3, good), HasSubstr("reads versions 1 to 2: make a new profile"));
  for (const char* last : {"0", "-1", "1.5"}) {
    EXPECT_THAT(
        refusal(2, fmt::format(R"(["all-reduce", "staged", "ring", 2, 4096, 8, {}])", last)),
        HasSubstr("samples[0]: slices are"));
  }
  EXPECT_THAT(refusal(2, R"(["all-reduce", "direct", "direct", 2, 4096, 8, 512])"),
              HasSubstr("slices are of staged candidates"));
  EXPECT_THAT(refusal(2, R"(["all-reduce", "staged", "ring", 2, 4096, 8, "512"])"),
              HasSubstr("samples[0]: is not"));
  EXPECT_THAT(refusal(2, good + ", " + good), HasSubstr("samples[1]: occurs twice"));
}

}  // namespace
}  // namespace tessera
