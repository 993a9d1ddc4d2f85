// What the user forces by environment variables.
#include "tuner/wishes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using ::testing::HasSubstr;

Candidate candidate(Protocol protocol, Collective collective, const char* name) {
  const Reach reach = protocol == Protocol::kLowLatency || protocol == Protocol::kStaged
                          ? Reach::kStaged
                          : Reach::kDirect;
  const Algorithm* algorithm = find_algorithm(collective, name, reach);
  EXPECT_NE(algorithm, nullptr) << name;
  return {protocol, algorithm};
}

Wishes wishes(const char* algorithms, const char* protocols) {
  Config config;
  config.nccl_algorithms = algorithms;
  config.nccl_protocols = protocols;
  Result<Wishes> parsed = Wishes::parse(config);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() ? std::move(parsed).value() : Wishes();
}

std::string refusal(const char* algorithms, const char* protocols) {
  Config config;
  config.nccl_algorithms = algorithms;
  config.nccl_protocols = protocols;
  const Result<Wishes> parsed = Wishes::parse(config);
  EXPECT_EQ(parsed.status().code(), Code::kInvalidUsage) << algorithms << " " << protocols;
  return parsed.status().message();
}

const Candidate kRing = candidate(Protocol::kStaged, Collective::kAllReduce, "ring");
const Candidate kTree = candidate(Protocol::kStaged, Collective::kAllReduce, "double-tree");
const Candidate kDirect = candidate(Protocol::kDirect, Collective::kAllReduce, "direct");
const Candidate kEager = candidate(Protocol::kLowLatency, Collective::kAllReduce, "one-hop");

TEST(Wishes, NothingForcedAllowsEverything) {
  const Wishes none = wishes("", "");
  for (const Candidate& c : {kRing, kTree, kDirect, kEager}) EXPECT_TRUE(none.allows(c));
  EXPECT_FALSE(none.any());
}

TEST(Wishes, AListOfAlgorithmsAllowsThoseInAnyCaseAndNoOthers) {
  const Wishes w = wishes("Ring", "");
  EXPECT_TRUE(w.allows(kRing));
  EXPECT_FALSE(w.allows(kTree));
  EXPECT_FALSE(w.allows(kDirect));
  EXPECT_TRUE(wishes("TREE, ring", "").allows(kTree));
}

TEST(Wishes, ACaretExcludes) {
  const Wishes w = wishes("^ring", "");
  EXPECT_FALSE(w.allows(kRing));
  EXPECT_TRUE(w.allows(kTree));
  EXPECT_TRUE(w.allows(kDirect));
}

TEST(Wishes, AnEntryForAFunctionReplacesTheGeneralOneForItAlone) {
  const Wishes w = wishes("ring;allreduce:tree", "");
  EXPECT_TRUE(w.allows(kTree));
  EXPECT_FALSE(w.allows(kRing));
  EXPECT_TRUE(w.allows(candidate(Protocol::kStaged, Collective::kAllGather, "ring")));
  EXPECT_TRUE(w.strict(Collective::kAllReduce));
  EXPECT_FALSE(w.strict(Collective::kAllGather));
}

TEST(Wishes, ProtocolsSelectLowLatencyOrTheRest) {
  EXPECT_TRUE(wishes("", "LL").allows(kEager));
  EXPECT_FALSE(wishes("", "LL").allows(kDirect));
  EXPECT_FALSE(wishes("", "simple").allows(kEager));
  EXPECT_TRUE(wishes("", "Simple").allows(kRing));
  EXPECT_TRUE(wishes("", "^LL128").allows(kEager));
  EXPECT_FALSE(wishes("", "^LL").allows(kEager));
}

TEST(Wishes, WhatCannotBeIsAnErrorThatSaysWhy) {
  EXPECT_THAT(refusal("nvls", ""), HasSubstr("hardware"));
  EXPECT_THAT(refusal("wheel", ""), HasSubstr("\"wheel\" is no algorithm"));
  EXPECT_THAT(refusal("ring;tree", ""), HasSubstr("entry 2 names no function"));
  EXPECT_THAT(refusal("allreduc:ring", ""), HasSubstr("no function is called \"allreduc\""));
  EXPECT_THAT(refusal("", "LL256"), HasSubstr("\"ll256\" is no protocol"));
  EXPECT_THAT(refusal("", "^LL,Simple"), HasSubstr("leaves no protocol"));
}

TEST(Wishes, AnAbsentAlgorithmBesideOneThatCanRunIsPassedOver) {
  EXPECT_TRUE(wishes("nvls,ring", "").allows(kRing));
  EXPECT_TRUE(wishes("^nvls", "").allows(kRing));
}

}  // namespace
}  // namespace tessera
