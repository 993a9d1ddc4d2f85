#include "sync/message_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "sync/link_clock.h"

namespace tessera {
namespace {

struct Message {
  uint64_t number = 0, twice = 0;
};
using Ring = MessageRing<Message, 4>;

TEST(MessageRing, HandsOverInOrderAndTellsWhenItWasFull) {
  const auto ring = std::make_unique<Ring>();
  EXPECT_EQ(ring->front(), nullptr);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(ring->push({i, 2 * i}));
  EXPECT_FALSE(ring->push({4, 8}));
  ASSERT_NE(ring->front(), nullptr);
  EXPECT_EQ(ring->front()->number, 0u);
  EXPECT_TRUE(ring->pop());
  EXPECT_FALSE(ring->pop());
  EXPECT_TRUE(ring->push({4, 8}));
  for (uint64_t i = 2; i <= 4; ++i) {
    ASSERT_NE(ring->front(), nullptr);
    EXPECT_EQ(ring->front()->number, i);
    ring->pop();
  }
  EXPECT_EQ(ring->front(), nullptr);
}

TEST(MessageRing, MessagesAreWholeBetweenThreads) {
  const auto ring = std::make_unique<Ring>();
  constexpr uint64_t kMessages = 100'000;
  std::thread producer([&] {
    for (uint64_t i = 0; i < kMessages;) {
      if (ring->push({i, 2 * i})) {
        ++i;
      } else {
        yield();
      }
    }
  });
  for (uint64_t i = 0; i < kMessages;) {
    const Message* message = ring->front();
    if (message == nullptr) {
      yield();
      continue;
    }
    EXPECT_EQ(message->number, i);
    EXPECT_EQ(message->twice, 2 * i);
    ring->pop();
    ++i;
  }
  producer.join();
}

TEST(LinkClock, KeepsTimeAndUsers) {
  LinkClock clock;
  EXPECT_EQ(clock.now().until, 0u);
  const uint64_t years = uint64_t{1} << 56;
  clock.advance([&](Reservation) { return Reservation{years, LinkClock::kMostUsers}; });
  EXPECT_EQ(clock.now().until, years);
  EXPECT_EQ(clock.now().users, LinkClock::kMostUsers);
}

TEST(LinkClock, NoUseIsLostBetweenThreads) {
  LinkClock clock;
  const auto use = [&] {
    for (int i = 0; i < 50'000; ++i)
      clock.advance([](Reservation r) { return Reservation{r.until + 3, r.users}; });
  };
  std::thread other(use);
  use();
  other.join();
  EXPECT_EQ(clock.now().until, 300'000u);
}

}  // namespace
}  // namespace tessera
