// What tests of several hosts have in common.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "comm/ranks.h"
#include "multihost/support/job.h"
#include "multihost/support/traffic.h"

namespace tessera::multihost {

// Skips where this machine does not let a test have networks of its own.
class MultihostTest : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string obstacle = NetworkNamespace::obstacle();
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  }
};

// "rank 2", or one of "ranks 1, 2".
inline bool names_rank(const std::string& text, int rank) {
  return std::regex_search(text,
                           std::regex("\\branks? ([0-9]+, )*" + std::to_string(rank) + "\\b"));
}

inline void expect_all_well(Job& job, std::chrono::seconds at_most) {
  const std::vector<Ending> endings = job.endings(at_most);
  for (size_t rank = 0; rank < endings.size(); ++rank) {
    EXPECT_FALSE(endings[rank].hung) << "rank " << rank;
    EXPECT_FALSE(endings[rank].killed) << "rank " << rank;
    EXPECT_EQ(endings[rank].text, "") << "rank " << rank;
  }
}

}  // namespace tessera::multihost
