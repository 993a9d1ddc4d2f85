#include "base/nap.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <chrono>

namespace tessera {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(Nap, EndsBeforeWhatIsDue) {
  const Alarm alarm;
  EXPECT_EQ(alarm.nap(nanoseconds(0)), nanoseconds(0));
  EXPECT_EQ(alarm.nap(Alarm::kLeastEarly), nanoseconds(0));
  EXPECT_LT(alarm.nap(milliseconds(2)), milliseconds(2) - Alarm::kLeastEarly);
  EXPECT_GE(alarm.nap(milliseconds(2)), milliseconds(2) - Alarm::kMostEarly);
  EXPECT_GT(alarm.nap(nanoseconds::max()), milliseconds(1'000'000));
}

TEST(Nap, LearnsHowLateSleepsEnd) {
  Alarm alarm;
  const auto early = [&alarm] { return milliseconds(2) - alarm.nap(milliseconds(2)); };
  alarm.slept(microseconds(100), microseconds(120));
  EXPECT_EQ(early(), microseconds(30)) << "one late sleep is enough";
  for (int i = 0; i < 100; ++i) alarm.slept(microseconds(100), microseconds(104));
  EXPECT_LT(early(), microseconds(7));
  EXPECT_GE(early(), microseconds(6));
  alarm.slept(microseconds(100), microseconds(50));
  EXPECT_LT(early(), microseconds(7)) << "a sleep that was ended tells nothing";
  alarm.slept(microseconds(100), milliseconds(9));
  EXPECT_EQ(early(), Alarm::kMostEarly);
}

TEST(Nap, TheThreadGetsItsTimersBack) {
  const int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  {
    const SharpTimer sharp;
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1);
  }
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), before);
}

}  // namespace
}  // namespace tessera
