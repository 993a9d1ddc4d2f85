#include "sync/door.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "sync/counter.h"

namespace tessera {
namespace {

TEST(Door, IsClosedAtFirst) {
  Door door;
  EXPECT_FALSE(door.enter());
  EXPECT_TRUE(door.empty());
}

TEST(Door, KeepsWhoIsInsideAndLetsNobodyInOnceItIsClosed) {
  Door door;
  door.open();
  EXPECT_TRUE(door.enter());
  EXPECT_TRUE(door.enter());
  door.close();
  EXPECT_FALSE(door.enter());
  EXPECT_FALSE(door.empty());
  door.leave();
  EXPECT_FALSE(door.empty());
  door.leave();
  EXPECT_TRUE(door.empty());
  door.open();
  EXPECT_TRUE(door.enter());
}

TEST(Door, CannotBeOpenedOnceItIsBarred) {
  Door door;
  door.open();
  EXPECT_TRUE(door.enter());
  door.bar();
  door.open();
  EXPECT_FALSE(door.enter());
  EXPECT_FALSE(door.empty());
  door.leave();
  EXPECT_TRUE(door.empty());
}

TEST(Door, NobodyWritesOnceItIsClosedAndEmpty) {
  for (int round = 0; round < 10; ++round) {
    Door door;
    long memory[4] = {};  // of visitor 0, 1, ...: plain memory, which the door alone guards
    door.open();
    std::vector<std::thread> visitors;
    for (long& own : memory) {
      visitors.emplace_back([&door, &own] {
        while (door.enter()) {
          ++own;
          door.leave();
        }
      });
    }
    for (int i = 0; i < 10; ++i) yield();
    door.close();
    while (!door.empty()) yield();
    for (long& own : memory) own = -1;
    for (std::thread& visitor : visitors) visitor.join();
    for (const long own : memory) EXPECT_EQ(own, -1);
  }
}

}  // namespace
}  // namespace tessera
