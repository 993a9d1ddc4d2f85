#include "base/of_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <mutex>
#include <thread>

namespace tessera {
namespace {

struct Shared {
  std::mutex mutex;
  int value = 1;
};

Shared& shared() { return of_process<Shared, &Shared::mutex>(); }

TEST(OfProcess, IsOneObject) { EXPECT_EQ(&shared(), &shared()); }

TEST(OfProcess, AChildFindsALockFreeThatAnotherThreadHeld) {
  shared().value = 7;
  std::latch held(1), go_on(1);
  std::thread holder([&] {
    const std::lock_guard lock(shared().mutex);
    held.count_down();
    go_on.wait();
  });
  held.wait();
  const pid_t child = fork();
  if (child == 0) _exit(shared().mutex.try_lock() && shared().value == 7 ? 0 : 1);
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_FALSE(shared().mutex.try_lock());  // here it is held still
  go_on.count_down();
  holder.join();
}

}  // namespace
}  // namespace tessera
