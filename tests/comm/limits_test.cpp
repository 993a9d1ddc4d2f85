// What a rank is told when its process may have no more descriptors or memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "comm/processes.h"
#include "comm/ranks.h"
#include "device/host/memory.h"
#include "transports/shm/segment.h"

namespace tessera::test {
namespace {

void lower(__rlimit_resource what, rlim_t limit) {
  rlimit now{};
  getrlimit(what, &now);
  now.rlim_cur = limit;
  if (setrlimit(what, &now) != 0) _exit(2);
}

// Lets this process have so many more descriptors than it has; returns its limit. Gaps between those
// that it has inherited are filled first.
int leave_descriptors(int more) {
  int highest = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    highest = std::max(highest, std::stoi(entry.path().filename()));
  int filler = 0;
  while (filler < highest) filler = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (filler > highest) close(filler);
  lower(RLIMIT_NOFILE, static_cast<rlim_t>(highest + 1 + more));
  return highest + 1 + more;
}

// "" if the text says what ran out, the limit and what to do.
std::string judge(const Status& status, int limit) {
  const std::string& text = status.message();
  for (const std::string& words :
       {std::string("Too many open files"), "may have " + std::to_string(limit) + " descriptors",
        std::string("ulimit -n")}) {
    if (text.find(words) == std::string::npos) return "no \"" + words + "\" in: " + text;
  }
  return status.code() == Code::kSystem ? std::string() : "wrong code: " + text;
}

TEST(Limits, WhereverDescriptorsRunOutWhileACommunicatorIsFormedTheTextSaysSo) {
  const CommOptions options = quick_options();
  bool enough = false;
  int refusals = 0;
  for (int more = 0; !enough && more < 40; ++more) {
    const std::vector<Ending> endings =
        run_children(1, options.config, [&](int rank, const UniqueId& id) -> std::string {
          const int limit = leave_descriptors(more);
          const Status status = Communicator::create(id, 1, rank, options).status();
          return status.ok() ? "enough" : judge(status, limit);
        });
    enough = endings[0].text == "enough";
    refusals += endings[0].exit_code == 0 ? 1 : 0;
    EXPECT_TRUE(enough || endings[0].exit_code == 0) << more << ": " << endings[0].text;
  }
  EXPECT_TRUE(enough);
  EXPECT_GE(refusals, 3);  // the mailbox, the way to the root, the segment
}

TEST(Limits, WhoCannotMakeAUniqueIdIsToldWhy) {
  const std::vector<Ending> endings = run_children(1, {}, [](int, const UniqueId&) {
    const int limit = leave_descriptors(0);
    return judge(create_unique_id({}).status(), limit);
  });
  EXPECT_EQ(endings[0].text, "");
}

TEST(Limits, WhoCannotAllocateSharedMemoryIsToldWhy) {
  const std::vector<Ending> endings = run_children(1, {}, [](int, const UniqueId&) {
    const int limit = leave_descriptors(0);
    return judge(host::memory_allocate(4096).status(), limit);
  });
  EXPECT_EQ(endings[0].text, "");
}

#ifndef __SANITIZE_ADDRESS__  // which needs terabytes of addresses
TEST(Limits, WhoHasNoAddressesLeftForTheSegmentIsToldTheLimit) {
  const std::vector<Ending> endings = run_children(1, {}, [](int, const UniqueId&) -> std::string {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const size_t mebibytes = (pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) >> 20) + 64;
    lower(RLIMIT_AS, mebibytes << 20);
    Result<Fd> segment = shm::create(size_t{1} << 30);
    if (!segment.ok()) return segment.status().message();
    const Status status = shm::attach(std::move(segment).value()).status();
    const std::string wanted = std::to_string(mebibytes) + " MiB of addresses (RLIMIT_AS)";
    return status.message().find(wanted) != std::string::npos ? std::string() : status.message();
  });
  EXPECT_EQ(endings[0].text, "");
}
#endif

}  // namespace
}  // namespace tessera::test
