// Taking correct plans apart, and looking at what the verifier says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/verifier.h"

namespace tessera::testing {

inline Step& step(Plan& plan, int rank, int number, int lane = 0) {
  return plan.programs[static_cast<size_t>(rank)]
      .lanes[static_cast<size_t>(lane)]
      .steps[static_cast<size_t>(number)];
}

inline void expect_fault(const Plan& plan, Code code, const std::string& text) {
  const Result<VerifiedPlan> result = verify(plan);
  ASSERT_FALSE(result.ok()) << "accepted; expected: " << text;
  EXPECT_STREQ(to_string(result.status().code()), to_string(code)) << result.status().message();
  EXPECT_THAT(result.status().message(), ::testing::HasSubstr(text));
}

}  // namespace tessera::testing
