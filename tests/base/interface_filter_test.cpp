#include "base/interface_filter.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(InterfaceFilter, WithoutATextEveryInterfacePassesAndNoneIsNamed) {
  const InterfaceFilter filter("");
  EXPECT_TRUE(filter.passes("lo"));
  EXPECT_FALSE(filter.names("lo"));
}

TEST(InterfaceFilter, NamesArePrefixesUnlessTheyMustBeWhole) {
  EXPECT_TRUE(InterfaceFilter("ib,eth").passes("eth12"));
  EXPECT_FALSE(InterfaceFilter("ib,eth").passes("lo"));
  EXPECT_TRUE(InterfaceFilter("=eth1").names("eth1"));
  EXPECT_FALSE(InterfaceFilter("=eth1").passes("eth12"));
}

TEST(InterfaceFilter, ACaretExcludes) {
  const InterfaceFilter filter("^docker,lo");
  EXPECT_FALSE(filter.passes("docker0"));
  EXPECT_TRUE(filter.passes("eth0"));
  EXPECT_FALSE(filter.names("eth0"));
  EXPECT_TRUE(InterfaceFilter("^=eth1").passes("eth12"));
  EXPECT_FALSE(InterfaceFilter("^=eth1").passes("eth1"));
}

}  // namespace
}  // namespace tessera
