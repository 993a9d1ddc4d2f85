#include "comm/fd_mailbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <thread>

#include "bootstrap/rendezvous.h"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using Secret = std::array<uint8_t, 16>;

constexpr Secret kSecret = {1, 2, 3};

Deadline already() { return Deadline::after(std::chrono::seconds(-1)); }

std::unique_ptr<FdMailbox> new_mailbox(int rank, const Secret& secret = kSecret) {
  auto mailbox = FdMailbox::create();
  EXPECT_TRUE(mailbox.ok()) << mailbox.status().message();
  mailbox.value()->set_secret(secret, rank);
  return std::move(mailbox).value();
}

// A file that knows its number.
Fd numbered_file(uint64_t number) {
  Fd fd(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(fd.get(), &number, sizeof number, 0), static_cast<ssize_t>(sizeof number));
  return fd;
}

uint64_t number_in(const Fd& fd) {
  uint64_t number = 0;
  EXPECT_EQ(::pread(fd.get(), &number, sizeof number, 0), static_cast<ssize_t>(sizeof number));
  return number;
}

void expect_received(FdMailbox& mailbox, int from, uint64_t tag, uint64_t number) {
  const Result<Fd> fd = mailbox.receive(from, tag, soon());
  ASSERT_TRUE(fd.ok()) << fd.status().message();
  EXPECT_EQ(number_in(fd.value()), number);
}

TEST(FdMailbox, TheReceivedDescriptorIsTheSameFileAndClosesOnExec) {
  const auto a = new_mailbox(0);
  const auto b = new_mailbox(1);
  const Fd file = numbered_file(77);
  ASSERT_TRUE(a->send(b->name(), file.get(), 5, soon()).ok());
  const Result<Fd> fd = b->receive(0, 5, soon());
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(number_in(fd.value()), 77u);
  EXPECT_NE(fd.value().get(), file.get());
  EXPECT_EQ(::fcntl(fd.value().get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(FdMailbox, MessagesAreKeptUntilTheyAreAskedFor) {
  const auto a = new_mailbox(0);
  const auto b = new_mailbox(1);
  const auto c = new_mailbox(2);
  ASSERT_TRUE(a->send(c->name(), numbered_file(1).get(), 10, soon()).ok());
  ASSERT_TRUE(b->send(c->name(), numbered_file(2).get(), 10, soon()).ok());
  ASSERT_TRUE(a->send(c->name(), numbered_file(3).get(), 11, soon()).ok());
  ASSERT_TRUE(a->send(c->name(), numbered_file(4).get(), 10, soon()).ok());
  expect_received(*c, 0, 11, 3);
  expect_received(*c, 1, 10, 2);
  expect_received(*c, 0, 10, 1);  // equal ones in the order they were sent
  expect_received(*c, 0, 10, 4);
}

TEST(FdMailbox, ARankMaySendToItselfMoreThanItsQueueHolds) {
  const auto a = new_mailbox(0);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(a->send(a->name(), numbered_file(i).get(), i, soon()).ok());
  }
  for (uint64_t i = 0; i < 100; ++i) expect_received(*a, 0, i, i);
}

TEST(FdMailbox, AnAllToAllOfManyRanksEnds) {
  constexpr int kRanks = 64;
  std::vector<std::unique_ptr<FdMailbox>> boxes;
  for (int rank = 0; rank < kRanks; ++rank) boxes.push_back(new_mailbox(rank));
  const auto number = [](int from, int to) { return static_cast<uint64_t>(from * 1000 + to); };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      FdMailbox& own = *boxes[static_cast<size_t>(rank)];
      for (int to = 0; to < kRanks; ++to) {
        const Fd file = numbered_file(number(rank, to));
        const Status status =
            own.send(boxes[static_cast<size_t>(to)]->name(), file.get(), 1, soon());
        EXPECT_TRUE(status.ok()) << status.message();
      }
      for (int from = 0; from < kRanks; ++from) {
        expect_received(own, from, 1, number(from, rank));
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST(FdMailbox, AFullQueueIsWaitedForOnlyUntilTheDeadline) {
  const auto a = new_mailbox(0);
  const auto b = new_mailbox(1);
  const Fd file = numbered_file(1);
  Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) {
    status = a->send(b->name(), file.get(), 1, already());
  }
  EXPECT_EQ(status.code(), Code::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr(b->name()));
}

TEST(FdMailbox, AMessageWithAWrongSecretIsDroppedAndItsDescriptorClosed) {
  const auto stranger = new_mailbox(0, Secret{9});
  const auto a = new_mailbox(0);
  const auto b = new_mailbox(1);
  const size_t before = open_descriptors();
  ASSERT_TRUE(stranger->send(b->name(), numbered_file(666).get(), 5, soon()).ok());
  ASSERT_TRUE(a->send(b->name(), numbered_file(7).get(), 5, soon()).ok());
  expect_received(*b, 0, 5, 7);
  const Result<Fd> none = b->receive(0, 5, already());
  EXPECT_EQ(none.status().code(), Code::kTimeout);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(FdMailbox, JunkDatagramsAreDropped) {
  const auto a = new_mailbox(0);
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path + 1, a->name().data(), a->name().size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + a->name().size());
  for (const size_t size : {0u, 1u, 40u, 4000u}) {
    const std::string junk(size, 'j');
    ASSERT_EQ(
        ::sendto(socket.get(), junk.data(), size, 0, reinterpret_cast<const sockaddr*>(&to), bytes),
        static_cast<ssize_t>(size));
  }
  ASSERT_TRUE(a->send(a->name(), numbered_file(3).get(), 1, soon()).ok());
  expect_received(*a, 0, 1, 3);
}

TEST(FdMailbox, ReceivingNothingEndsAtTheDeadlineWithRankAndTag) {
  const auto a = new_mailbox(4);
  const Result<Fd> fd = a->receive(9, 0x2a, Deadline::after(std::chrono::milliseconds(1)));
  EXPECT_EQ(fd.status().code(), Code::kTimeout);
  EXPECT_THAT(fd.status().message(), HasSubstr("rank 4"));
  EXPECT_THAT(fd.status().message(), HasSubstr("from rank 9 (tag 0x2a)"));
}

TEST(FdMailbox, SendingToARankThatIsGoneSaysSo) {
  const auto a = new_mailbox(0);
  auto b = new_mailbox(1);
  const std::string name = b->name();
  b.reset();
  const Status status = a->send(name, numbered_file(1).get(), 1, soon());
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_THAT(status.message(), HasSubstr(name));
}

TEST(FdMailbox, ABadDescriptorIsAnErrorOfTheSender) {
  const auto a = new_mailbox(0);
  EXPECT_EQ(a->send(a->name(), -1, 1, soon()).code(), Code::kSystem);
}

TEST(FdMailbox, RunningOutOfDescriptorsNamesTheLimit) {
  const auto a = new_mailbox(0);
  ASSERT_TRUE(a->send(a->name(), numbered_file(1).get(), 1, soon()).ok());
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit none = {0, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<Fd> fd = a->receive(0, 1, soon());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(fd.status().code(), Code::kSystem);
  EXPECT_THAT(fd.status().message(), HasSubstr("Too many open files: "));
}

TEST(FdMailbox, WhatWasNeverFetchedIsClosedWithTheMailbox) {
  const size_t before = open_descriptors();
  {
    const auto a = new_mailbox(0);
    const auto b = new_mailbox(1);
    for (uint64_t i = 0; i < 8; ++i) {
      ASSERT_TRUE(a->send(b->name(), numbered_file(i).get(), i, soon()).ok());
    }
    expect_received(*b, 0, 7, 7);  // keeps the other seven
    ASSERT_TRUE(a->send(b->name(), numbered_file(8).get(), 8, soon()).ok());
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(FdMailbox, NamesAreDifferentAndFitIntoAMember) {
  const auto a = new_mailbox(0);
  const auto b = new_mailbox(0);
  EXPECT_NE(a->name(), b->name());
  EXPECT_LT(a->name().size(), sizeof Member{}.socket_name);
}

}  // namespace
}  // namespace tessera::testing
