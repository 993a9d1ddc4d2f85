// The cache of registrations, over a device that only keeps count.
#include "transports/ib/registrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/log.h"

namespace tessera::ib {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBlock = Registrations::kBlock;

std::set<ibv_mr*> registered;
size_t largest = ~size_t{0};  // more is refused by the kernel

ibv_mr* register_memory(ibv_pd*, void* at, size_t bytes, int) {
  if (bytes > largest) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* made = new ibv_mr{};
  made->addr = at;
  made->length = bytes;
  registered.insert(made);
  return made;
}

int deregister_memory(ibv_mr* memory) {
  EXPECT_EQ(registered.erase(memory), 1U);
  delete memory;
  return 0;
}

class RegistrationCache : public testing::Test {
 protected:
  RegistrationCache() {
    verbs_.reg_mr = register_memory;
    verbs_.dereg_mr = deregister_memory;
    largest = ~size_t{0};
  }
  ~RegistrationCache() override { EXPECT_TRUE(registered.empty()); }

  std::byte* at(size_t offset) { return reinterpret_cast<std::byte*>(64 * kBlock) + offset; }

  Verbs verbs_{};
  const std::vector<ibv_pd*> two_devices_ = {nullptr, nullptr};
};

TEST_F(RegistrationCache, MemoryOfTheCommunicatorIsRegisteredOnceInWholeBlocksOnEveryDevice) {
  Registrations cache(verbs_, two_devices_, 0);
  Registration* first = cache.acquire(at(10), 100, Life::kCommunicator);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->begin, at(0));
  EXPECT_EQ(first->bytes, kBlock);
  EXPECT_EQ(registered.size(), 2U);
  cache.release(first);
  EXPECT_EQ(cache.acquire(at(kBlock - 1), 1, Life::kCommunicator), first);
  EXPECT_NE(cache.acquire(at(kBlock - 1), 2, Life::kCommunicator), first);
  EXPECT_EQ(cache.counts().made, 2U);
  EXPECT_EQ(cache.counts().found, 1U);
}

TEST_F(RegistrationCache, WhatIsNotAllMemoryIsRegisteredExactly) {
  largest = 100;
  Registrations cache(verbs_, two_devices_, 0);
  Registration* exact = cache.acquire(at(10), 100, Life::kCommunicator);
  ASSERT_NE(exact, nullptr);
  EXPECT_EQ(exact->begin, at(10));
  EXPECT_EQ(exact->bytes, 100U);
}

TEST_F(RegistrationCache, MemoryOfUsersGoesWithTheCallThatUsedIt) {
  Registrations cache(verbs_, two_devices_, 0);
  Registration* used = cache.acquire(at(3), 5000, Life::kCall);
  EXPECT_EQ(used->bytes, 5000U);
  EXPECT_EQ(cache.acquire(at(100), 50, Life::kCall), used);
  cache.release(used);
  cache.end_call();
  EXPECT_EQ(registered.size(), 2U);  // still used once
  // What is registered now is not what was: the memory may have been freed meanwhile.
  Registration* next = cache.acquire(at(3), 5000, Life::kCall);
  EXPECT_NE(next, used);
  cache.release(used);
  EXPECT_EQ(registered.size(), 2U);
  cache.release(next);
  EXPECT_EQ(registered.size(), 2U);  // kept for the rest of the call
  cache.end_call();
  EXPECT_TRUE(registered.empty());
  EXPECT_EQ(cache.counts().bytes, 0U);
}

TEST_F(RegistrationCache, TheEndOfACallLeavesTheCommunicatorsMemoryRegistered) {
  Registrations cache(verbs_, two_devices_, 0);
  cache.release(cache.acquire(at(0), 1, Life::kCommunicator));
  cache.end_call();
  EXPECT_EQ(registered.size(), 2U);
}

TEST_F(RegistrationCache, MessageBuffersGoWhenTheyAreReleased) {
  Registrations cache(verbs_, two_devices_, 0);
  Registration* buffers = cache.acquire(at(7), 100, Life::kMessages);
  cache.end_call();
  EXPECT_EQ(registered.size(), 2U);
  cache.release(buffers);
  EXPECT_TRUE(registered.empty());
}

TEST_F(RegistrationCache, AtTheLimitWhatIsUnusedMakesRoomAndWhatIsUsedIsARefusal) {
  Registrations cache(verbs_, two_devices_, 0, 2 * kBlock);
  Registration* used = cache.acquire(at(0), 1, Life::kCommunicator);
  cache.release(cache.acquire(at(2 * kBlock), 1, Life::kCommunicator));
  EXPECT_NE(cache.acquire(at(4 * kBlock), 1, Life::kCommunicator), nullptr);
  EXPECT_EQ(cache.counts().bytes, 2 * kBlock);
  EXPECT_EQ(cache.acquire(at(8 * kBlock), kBlock, Life::kCall), nullptr);
  EXPECT_THAT(log::last_warning(), HasSubstr("cannot be registered"));
  EXPECT_EQ(cache.counts().refused, 1U);
  EXPECT_TRUE(used->covers(at(5), 5));
}

TEST_F(RegistrationCache, MoreThanFourGibibytesAreRefused) {
  Registrations cache(verbs_, two_devices_, 0);
  EXPECT_NE(cache.acquire(at(0), size_t{3} << 30, Life::kCall), nullptr);
  EXPECT_EQ(cache.acquire(at(size_t{8} << 30), size_t{2} << 30, Life::kCall), nullptr);
  EXPECT_EQ(cache.acquire(at(size_t{8} << 30), size_t{5} << 30, Life::kCall), nullptr);
  EXPECT_NE(cache.acquire(at(size_t{8} << 30), size_t{1} << 30, Life::kCall), nullptr);
}

TEST_F(RegistrationCache, ARefusalOfTheKernelIsARefusal) {
  largest = 10;
  Registrations cache(verbs_, two_devices_, 0);
  EXPECT_EQ(cache.acquire(at(0), 11, Life::kCall), nullptr);
  EXPECT_THAT(log::last_warning(), HasSubstr("ulimit -l"));
}

}  // namespace
}  // namespace tessera::ib
