// What a profile makes the tuner choose where the rules would choose something else.
#include <gtest/gtest.h>

#include "tuner/tuner.h"

namespace tessera {
namespace {

// Four ranks on two cores: one-hop, the rule's, takes 3 us, another algorithm `other` us.
Candidate chosen_where_another_takes(double other) {
  Profile profile{"machine", "", {}};
  for (const size_t bytes : {8, 1024}) {
    for (const Protocol protocol : {Protocol::kLowLatency, Protocol::kStaged}) {
      const double slower = protocol == Protocol::kStaged ? 10 : 0;
      const auto add = [&](const char* algorithm, double microseconds) {
        profile.samples.push_back(
            {Collective::kReduceScatter, protocol, algorithm, 4, bytes, microseconds + slower, 0});
      };
      add("one-hop", 3.0);
      add("recursive-halving", other);
    }
  }
  Tuner tuner = Tuner::create({4, true, 2}, {}, std::make_shared<const Profile>(profile)).value();
  return tuner.chosen({Collective::kReduceScatter, 128, Access::kMapped, false}).value();
}

TEST(ChoiceByProfile, LeavesTheRulesForWhatIsClearlyFaster) {
  EXPECT_EQ(chosen_where_another_takes(2.0).algorithm->name, "recursive-halving");
}

TEST(ChoiceByProfile, KeepsToTheRulesWhereTheDifferenceMayBeChance) {
  EXPECT_EQ(chosen_where_another_takes(2.95).algorithm->name, "one-hop");
}

}  // namespace
}  // namespace tessera
