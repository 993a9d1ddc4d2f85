// What the other sources of this folder check at compile time, they check by compiling; here is the
// rest.
#include <gtest/gtest.h>

extern "C" int abi_initialisers_hold(void);

namespace {

TEST(Abi, TheInitialisersSetEveryFieldAsNcclDoes) { EXPECT_TRUE(abi_initialisers_hold()); }

}  // namespace
