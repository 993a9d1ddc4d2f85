// Profiles: their form, and what is made of them.
#include "tuner/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tuner/tuner.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

Sample sample(Protocol protocol, const char* algorithm, int ranks, size_t bytes, double time) {
  return {Collective::kAllReduce, protocol, algorithm, ranks, bytes, time};
}

Profile some_profile() {
  Profile profile{"0123456789abcdef", "a \"machine\"\n", {}};
  for (const size_t bytes : {size_t{8}, size_t{4096}, size_t{1} << 20}) {
    const auto b = static_cast<double>(bytes);
    profile.samples.push_back(sample(Protocol::kLowLatency, "one-hop", 2, bytes, 0.5 + b * 4e-4));
    profile.samples.push_back(sample(Protocol::kLowLatency, "recursive-doubling", 2, bytes, 9 + b));
    profile.samples.push_back(sample(Protocol::kStaged, "ring", 2, bytes, 2 + b * 2e-4));
    profile.samples.push_back(sample(Protocol::kDirect, "direct", 2, bytes, 3 + b * 1e-4));
    profile.samples.push_back(sample(Protocol::kSingleCopy, "direct", 2, bytes, 6 + b * 3e-4));
  }
  return profile;
}

TEST(Profile, WhatIsWrittenIsReadAgain) {
  Profile profile = some_profile();
  for (Sample& s : profile.samples) s.microseconds = 0.25;  // exact in few digits
  const Result<Profile> read = parse_profile(to_json(profile), "test");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value(), profile);
}

TEST(Profile, AFileIsReplacedAsAWholeInAFolderThatIsMade) {
  const std::string folder = ::testing::TempDir() + "/tessera-profile-" + std::to_string(getpid());
  const std::string path = folder + "/a/b.json";
  ASSERT_TRUE(save_profile(some_profile(), path).ok());
  EXPECT_TRUE(load_profile(path).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder + "/a"), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(Profile, ALinkStaysALinkAndWhatIsNoFileStaysWhatItIs) {
  const std::string folder = ::testing::TempDir() + "/tessera-links-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string file = folder + "/file.json", link = folder + "/link.json";
  ASSERT_TRUE(save_profile({"old", "", {}}, file).ok());
  std::filesystem::create_symlink("file.json", link);
  EXPECT_TRUE(save_profile(some_profile(), link).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(load_profile(file).value().machine, some_profile().machine);
  std::filesystem::remove(file);
  EXPECT_TRUE(can_save_profile(link).ok());
  EXPECT_FALSE(std::filesystem::exists(file)) << "nothing is left of the attempt";
  EXPECT_TRUE(save_profile(some_profile(), link).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link)) << "also where it led nowhere";
  EXPECT_TRUE(load_profile(file).ok());
  const Status refused = save_profile(some_profile(), folder);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("no regular file"));
  std::filesystem::remove_all(folder);
}

// Ranks with equal digests must choose alike.
TEST(Profile, DigestsTellApartWhatTheTunerTellsApart) {
  Profile one = some_profile(), other = some_profile();
  one.samples[0].microseconds = 10.001;
  other.samples[0].microseconds = 10.002;
  EXPECT_NE(digest(&one), digest(&other));
}

TEST(Profile, RanksThatDoNotFitAnIntAreRefused) {
  for (const char* ranks : {"4294967298", "-4294967294", "0"}) {
    const Result<Profile> read = parse_profile(
        std::string(R"({"tessera_profile": 1, "machine": "m", "about": "", "samples": )") +
            R"([["all-reduce", "staged", "ring", )" + ranks + ", 8, 1.0]]}",
        "test");
    ASSERT_FALSE(read.ok()) << ranks;
    EXPECT_THAT(read.status().message(), HasSubstr("ranks out of range"));
  }
}

TEST(Profile, WhatIsNoRegularFileIsRefusedAtOnce) {
  for (const char* path : {"/dev/zero", "/", "/nonexistent/profile.json"}) {
    const Result<Profile> read = load_profile(path);
    ASSERT_FALSE(read.ok()) << path;
    EXPECT_THAT(read.status().message(), HasSubstr(path));
  }
}

TEST(Profile, BadTextsAreRefusedWithThePlace) {
  const std::string good = to_json(some_profile());
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const Result<Profile> read = parse_profile(text, "file.json");
    EXPECT_FALSE(read.ok()) << to;
    EXPECT_THAT(read.status().message(), HasSubstr("file.json"));
    return read.status().message();
  };
  EXPECT_THAT(refusal("\"about\"", "\"abouts\""), HasSubstr("unknown field \"abouts\""));
  EXPECT_THAT(refusal("\"tessera_profile\": 2", "\"tessera_profile\": 7"), HasSubstr("version"));
  EXPECT_THAT(refusal("\"one-hop\", 2, 8", "\"two-hop\", 2, 8"), HasSubstr("samples[0]"));
  EXPECT_THAT(refusal("\"all-reduce\", \"low", "\"all-reduces\", \"low"), HasSubstr("samples[0]"));
  EXPECT_THAT(refusal("\"direct\", \"direct\", 2, 8,", "\"single-copy\", \"direct\", 2, 8,"),
              HasSubstr("occurs twice"));
  EXPECT_THAT(refusal("2, 8, ", "2, 0, "), HasSubstr("above 0"));
  EXPECT_THAT(refusal("  ]\n}", "  ]"), HasSubstr("file.json"));
}

TEST(Profile, OneOfAnotherMachineIsUsedWithAWarning) {
  const std::string file = ::testing::TempDir() + "/other_profile.json";
  Config config;
  config.profile = file;
  const auto found = [&](const std::string& machine) {
    Profile profile = some_profile();
    profile.machine = machine;
    EXPECT_TRUE(save_profile(profile, file).ok());
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(find_profile(config).ok());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(found("0123456789abcdef"), HasSubstr("measured on another machine"));
  EXPECT_EQ(found(machine_fingerprint()), "");
}

TEST(Profile, AFileThatWasNamedMustBeThere) {
  Config config;
  config.profile = "/nonexistent/profile.json";
  EXPECT_EQ(find_profile(config).status().code(), Code::kInvalidUsage);
  config.profile = "none";
  ASSERT_TRUE(find_profile(config).ok());
  EXPECT_EQ(find_profile(config).value(), nullptr);
}

class Tuned : public ::testing::Test {
 protected:
  Tuner tuner(int ranks, Config config = {}) {
    Result<Tuner> made = Tuner::create({ranks, ranks > 2, 2}, config,
                                       std::make_shared<const Profile>(some_profile()));
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }
  static BulkCall call(size_t bytes, Access access) {
    return {Collective::kAllReduce, bytes, access, false};
  }
};

TEST_F(Tuned, TheLeastMeasuredTimeIsChosen) {
  Tuner two = tuner(2);
  const auto eager = two.eager(Collective::kAllReduce);
  ASSERT_TRUE(eager.ok());
  ASSERT_EQ(eager.value()->size(), 1U);
  EXPECT_EQ(eager.value()->front().candidate.algorithm->name, "one-hop");
  // one-hop and direct meet between 8 and 16 KiB, ring is the better of the two there
  EXPECT_GE(eager.value()->front().largest, 4096U);
  EXPECT_LE(eager.value()->front().largest, 16384U);
  EXPECT_EQ(two.bulk(call(1 << 20, Access::kMapped)).value().protocol, Protocol::kDirect);
  EXPECT_EQ(two.bulk(call(1 << 20, Access::kSingleCopy)).value().protocol, Protocol::kStaged);
  EXPECT_EQ(two.bulk(call(1 << 20, Access::kNone)).value().algorithm->name, "ring");
}

TEST_F(Tuned, WhatIsForcedComesBeforeWhatWasMeasured) {
  Config config;
  config.nccl_protocols = "Simple";
  Tuner simple = tuner(2, config);
  EXPECT_TRUE(simple.eager(Collective::kAllReduce).value()->empty());
  config = {};
  config.nccl_algorithms = "allreduce:tree";
  Tuner tree = tuner(2, config);
  EXPECT_EQ(tree.bulk(call(1 << 20, Access::kMapped)).value().algorithm->name, "double-tree");
  config.nccl_algorithms = "alltoall:tree";
  Tuner impossible = tuner(2, config);
  EXPECT_EQ(impossible.eager(Collective::kAllToAll).status().code(), Code::kInvalidUsage);
  EXPECT_TRUE(impossible.eager(Collective::kAllReduce).ok());
}

TEST_F(Tuned, ALimitThatIsForcedHolds) {
  Config config;
  config.low_latency_max = 0;
  Tuner never = tuner(2, config);
  EXPECT_TRUE(never.eager(Collective::kAllReduce).value()->empty());
  config.low_latency_max = 1 << 20;
  Tuner often = tuner(2, config);
  EXPECT_EQ(often.eager(Collective::kAllReduce).value()->back().largest, size_t{1} << 20);
}

TEST_F(Tuned, OtherRankCountsScaleWhatIsKnownByTheModel) {
  Tuner four = tuner(4);
  const Candidate direct{Protocol::kDirect,
                         find_algorithm(Collective::kAllReduce, "direct", Reach::kDirect)};
  const Estimate known = four.estimator().estimate(direct, 1 << 20);
  EXPECT_EQ(known.source, Source::kExtrapolated);
  EXPECT_GT(known.microseconds, 3 + (1 << 20) * 1e-4);
  const Candidate ring{Protocol::kStaged,
                       find_algorithm(Collective::kAllGather, "ring", Reach::kStaged)};
  EXPECT_EQ(four.estimator().estimate(ring, 1 << 20).source, Source::kModel);
}

TEST_F(Tuned, EstimatesBetweenTwoSizesLieBetweenTheirTimes) {
  Tuner two = tuner(2);
  const Candidate direct{Protocol::kDirect,
                         find_algorithm(Collective::kAllReduce, "direct", Reach::kDirect)};
  double last = 0;
  for (size_t bytes = 8; bytes <= size_t{1} << 26; bytes *= 2) {
    const Estimate estimate = two.estimator().estimate(direct, bytes);
    EXPECT_EQ(estimate.source, bytes <= size_t{1} << 20 ? Source::kMeasured : Source::kExtrapolated)
        << bytes;
    EXPECT_GE(estimate.microseconds, last) << bytes;
    last = estimate.microseconds;
  }
}

TEST_F(Tuned, EstimatesSayWhetherTheyLieWithinOrBeyondWhatWasMeasured) {
  Profile profile{"machine", "", {}};
  for (const int ranks : {2, 8})
    for (const size_t bytes : {size_t{1} << 10, size_t{1} << (ranks == 2 ? 16 : 20)})
      profile.samples.push_back(
          sample(Protocol::kDirect, "direct", ranks, bytes, static_cast<double>(bytes * ranks)));
  const auto shared = std::make_shared<const Profile>(profile);
  const Candidate direct{Protocol::kDirect,
                         find_algorithm(Collective::kAllReduce, "direct", Reach::kDirect)};
  const auto source = [&](int ranks, size_t bytes) {
    return std::string(
        to_string(Estimator({ranks, false, 16}, shared).estimate(direct, bytes).source));
  };
  EXPECT_EQ(source(2, 8), "measured") << "small messages cost what the smallest does";
  EXPECT_EQ(source(2, 1 << 16), "measured");
  EXPECT_EQ(source(2, (1 << 16) + 4), "extrapolated");
  EXPECT_EQ(source(4, 1 << 16), "interpolated");
  EXPECT_EQ(source(4, 1 << 18), "extrapolated") << "beyond the sizes of the smaller rank count";
  EXPECT_EQ(source(16, 1 << 12), "extrapolated");
}

// Of all-reduces with two ranks.
Tuner tuned_by(std::vector<Sample> samples) {
  Site site;
  site.ranks = site.cores = 2;
  auto profile = std::make_shared<Profile>(Profile{"0123456789abcdef", "", std::move(samples)});
  return std::move(Tuner::create(site, {}, std::move(profile))).value();
}

Candidate staged(const char* name, size_t slot = 0) {
  return {Protocol::kStaged, find_algorithm(Collective::kAllReduce, name, Reach::kStaged), slot};
}

TEST(Disturbed, ASampleAboveThatOfALargerSizeCountsAsThatOne) {
  Tuner tuner = tuned_by({sample(Protocol::kStaged, "ring", 2, 1024, 5),
                          sample(Protocol::kStaged, "ring", 2, 4096, 900),
                          sample(Protocol::kStaged, "ring", 2, 16384, 20)});
  EXPECT_NEAR(tuner.estimator().estimate(staged("ring"), 4096).microseconds, 20, 1e-6);
  EXPECT_NEAR(tuner.estimator().estimate(staged("ring"), 1024).microseconds, 5, 1e-6);
}

TEST(Disturbed, EstimatesNeverFallWithSize) {
  Tuner tuner = tuned_by({sample(Protocol::kStaged, "ring", 2, 512, 2.1),
                          sample(Protocol::kStaged, "ring", 2, 2048, 2.0)});
  double before = 0;
  for (size_t bytes = 8; bytes <= size_t{1} << 36; bytes *= 2) {
    const double time = tuner.estimator().estimate(staged("ring"), bytes).microseconds;
    EXPECT_GE(time, before) << bytes;
    before = time;
  }
  EXPECT_GT(before, 1e6) << "64 GiB take more than a second on any machine";
}

TEST(Disturbed, AnImplausibleGainOfOtherSlicesIsNotCarriedOn) {
  std::vector<Sample> samples;
  for (const size_t bytes : {size_t{65536}, size_t{524288}, size_t{2097152}})
    samples.push_back(
        sample(Protocol::kStaged, "ring", 2, bytes, static_cast<double>(bytes) / 1e3));
  samples.push_back(sample(Protocol::kStaged, "ring", 2, 524288, 50));
  samples.back().slot_bytes = 8192;
  samples.push_back(sample(Protocol::kDirect, "direct", 2, 2097152, 1500));
  Tuner tuner = tuned_by(samples);
  const double rule = tuner.estimator().estimate(staged("ring"), 2097152).microseconds;
  EXPECT_GE(tuner.estimator().estimate(staged("ring", 8192), 2097152).microseconds, rule);
}

TEST(Disturbed, FarBeyondWhatWasMeasuredRulesDecide) {
  Tuner tuner = tuned_by({sample(Protocol::kLowLatency, "one-hop", 2, 2048, 1),
                          sample(Protocol::kStaged, "double-tree", 2, 2048, 2),
                          sample(Protocol::kDirect, "direct", 2, 2048, 9)});
  const auto chosen = [&](size_t bytes) {
    return describe(tuner.bulk({Collective::kAllReduce, bytes, Access::kMapped, true}).value());
  };
  EXPECT_EQ(chosen(4096), "staged double-tree");
  EXPECT_EQ(chosen(size_t{1} << 20), "direct direct");
}

TEST(LowLatencyAlone, LargeBlocksGoAsTheModelLikesThemBest) {
  Site site;
  site.ranks = site.cores = 4;
  Config config;
  config.nccl_protocols = "LL";
  Tuner tuner = std::move(Tuner::create(site, config, nullptr)).value();
  const auto chosen = [&](size_t bytes) {
    const auto eager = tuner.eager(Collective::kAllReduce, bytes);
    return eager.ok() && eager.value() != nullptr ? describe(eager.value()->candidate) : "bulk";
  };
  EXPECT_EQ(chosen(64), "low-latency one-hop");
  EXPECT_NE(chosen(size_t{64} << 20), "low-latency one-hop");
  EXPECT_NE(chosen(size_t{64} << 20), "bulk");
}

TEST(Model, EveryCandidateCostsMoreForMoreBytesAndMoreRanks) {
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const int most = collective == Collective::kSendRecv ? 2 : 8;
    for (const Candidate& candidate : candidates(collective, {most, false, 8})) {
      Estimator few({2, false, 8}, nullptr), many({most, false, 8}, nullptr);
      if (!candidate.algorithm->supports(2)) continue;
      const std::string name = describe(candidate);
      EXPECT_GT(few.estimate(candidate, 4).microseconds, 0) << name;
      EXPECT_GE(few.estimate(candidate, 1 << 20).microseconds,
                few.estimate(candidate, 4).microseconds)
          << name;
      EXPECT_GE(many.estimate(candidate, 4).microseconds,
                0.99 * few.estimate(candidate, 4).microseconds)
          << to_string(collective) << " " << name;
    }
  }
}

}  // namespace
}  // namespace tessera
