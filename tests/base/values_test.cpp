// Deadline, Fd, Status and the tables of types.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/types.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Deadline, InThePastItHasPassedAndLeavesNothing) {
  const Deadline deadline = Deadline::after(-1s);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.left(), 0ns);
  EXPECT_EQ(deadline.left_ms(), 0);
}

TEST(Deadline, InTheFutureItHasNotPassed) {
  const Deadline deadline = Deadline::after(1h);
  EXPECT_FALSE(deadline.passed());
  EXPECT_GT(deadline.left(), 59min);
  EXPECT_LE(deadline.left_ms(), 3'600'000);
}

TEST(Fd, ClosesOnce) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(raw, 0);
  {
    Fd first(raw);
    Fd second(std::move(first));
    EXPECT_FALSE(first.valid());
    EXPECT_EQ(second.get(), raw);
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(Fd, AssignmentClosesWhatWasHeldAndReleaseDoesNot) {
  const int a = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int b = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  Fd fd(a);
  fd = Fd(b);
  EXPECT_FALSE(is_open(a));
  EXPECT_EQ(fd.release(), b);
  EXPECT_TRUE(is_open(b));
  ::close(b);
}

TEST(Status, AnErrorKeepsCodeAndText) {
  const Status status = Status::error(Code::kRemote, "rank {} is gone", 3);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_EQ(status.message(), "rank 3 is gone");
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().message(), "");
}

TEST(Result, HoldsAValueOrTheReason) {
  const Result<int> good(7);
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 7);
  EXPECT_TRUE(good.status().ok());
  const Result<int> bad(Status(Code::kSystem, "no"));
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "no");
}

TEST(Types, SizesAndNamesFollowTheEnumeration) {
  EXPECT_EQ(size_of(DataType::kInt8), 1u);
  EXPECT_EQ(size_of(DataType::kFloat16), 2u);
  EXPECT_EQ(size_of(DataType::kFloat64), 8u);
  EXPECT_EQ(size_of(DataType::kFloat8E5M2), 1u);
  EXPECT_STREQ(to_string(DataType::kBfloat16), "bfloat16");
  EXPECT_STREQ(to_string(ReduceOp::kPreMulSum), "premulsum");
  EXPECT_STREQ(to_string(Collective::kBarrier), "barrier");
}

}  // namespace
}  // namespace tessera
