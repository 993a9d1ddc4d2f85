#include "device/host/memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "device/host/available_memory.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

uint8_t* allocate(size_t bytes) {
  Result<void*> result = host::memory_allocate(bytes);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? static_cast<uint8_t*>(result.value()) : nullptr;
}

TEST(Memory, IsZeroedAlignedAndLargeEnough) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{4097}, size_t{5} << 20}) {
    uint8_t* const p = allocate(bytes);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 4096, 0u);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(p[i], 0);
    std::memset(p, 0xFF, bytes);
    EXPECT_TRUE(host::memory_free(p).ok());
  }
}

TEST(Memory, IsSharedWithWhoeverMapsItsDescriptor) {
  uint8_t* const p = allocate(10000);
  const host::Allocation allocation = host::memory_find(p, 10000);
  ASSERT_GE(allocation.bytes, 10000u);
  void* const other =
      ::mmap(nullptr, allocation.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, allocation.fd, 0);
  ASSERT_NE(other, MAP_FAILED);
  p[9999] = 42;
  EXPECT_EQ(static_cast<uint8_t*>(other)[9999], 42);
  static_cast<uint8_t*>(other)[1] = 7;
  EXPECT_EQ(p[1], 7);
  ::munmap(other, allocation.bytes);
  EXPECT_TRUE(host::memory_free(p).ok());
}

TEST(Memory, HasEveryPageBeforeItIsTouched) {
  constexpr size_t kBytes = size_t{8} << 20;
  uint8_t* const p = allocate(kBytes);
  struct stat info {};
  ASSERT_EQ(::fstat(host::memory_find(p, 1).fd, &info), 0);
  EXPECT_GE(static_cast<size_t>(info.st_blocks) * 512, kBytes);
  EXPECT_TRUE(host::memory_free(p).ok());
}

TEST(Memory, DescriptorsDoNotLeakIntoPrograms) {
  uint8_t* const p = allocate(1);
  EXPECT_NE(::fcntl(host::memory_find(p, 1).fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_TRUE(host::memory_free(p).ok());
}

TEST(Memory, IsFoundByAnyRangeInsideAndByNoOther) {
  uint8_t* const p = allocate(8192);
  uint8_t* const q = allocate(8192);
  for (uint8_t* base : {p, q}) {
    EXPECT_EQ(host::memory_find(base, 8192).base, base);
    EXPECT_EQ(host::memory_find(base + 8191, 1).base, base);
    EXPECT_EQ(host::memory_find(base + 100, 8092).base, base);
    EXPECT_EQ(host::memory_find(base + 100, 8093).base, nullptr);
    EXPECT_EQ(host::memory_find(base, std::numeric_limits<size_t>::max()).base, nullptr);
    EXPECT_NE(host::memory_find(base - 1, 2).base, base);
  }
  int on_stack = 0;
  EXPECT_EQ(host::memory_find(&on_stack, sizeof(on_stack)).base, nullptr);
  EXPECT_EQ(host::memory_find(nullptr, 1).base, nullptr);
  EXPECT_TRUE(host::memory_free(p).ok());
  EXPECT_EQ(host::memory_find(p, 1).base, nullptr);
  EXPECT_TRUE(host::memory_free(q).ok());
}

TEST(Memory, IdsAreNeverReused) {
  std::set<uint64_t> ids;
  for (int i = 0; i < 20; ++i) {
    uint8_t* const p = allocate(4096);
    EXPECT_TRUE(ids.insert(host::memory_find(p, 1).id).second);
    EXPECT_TRUE(host::memory_free(p).ok());
  }
}

TEST(Memory, FreeingTwiceIsAnError) {
  uint8_t* const p = allocate(4096);
  EXPECT_TRUE(host::memory_free(p).ok());
  const Status status = host::memory_free(p);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("freed twice"));
}

TEST(Memory, FreeingAnotherAddressIsAnErrorThatNamesTheRightOne) {
  uint8_t* const p = allocate(4096);
  const Status inside = host::memory_free(p + 8);
  EXPECT_EQ(inside.code(), Code::kInvalidArgument);
  EXPECT_THAT(inside.message(), HasSubstr(fmt::format("{}", fmt::ptr(p))));
  EXPECT_EQ(host::memory_find(p, 4096).base, p) << "a refused free must not free";
  int wild = 0;
  EXPECT_EQ(host::memory_free(&wild).code(), Code::kInvalidArgument);
  EXPECT_EQ(host::memory_free(nullptr).code(), Code::kInvalidArgument);
  EXPECT_TRUE(host::memory_free(p).ok());
}

TEST(Memory, NothingIsAllocatedForZeroBytes) {
  EXPECT_EQ(host::memory_allocate(0).status().code(), Code::kInvalidArgument);
}

TEST(Memory, AShortageNamesWhatIsNeededAndWhatThereIs) {
  for (const size_t bytes : {size_t{1} << 50, std::numeric_limits<size_t>::max()}) {
    const Result<void*> result = host::memory_allocate(bytes);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Code::kSystem);
    EXPECT_THAT(result.status().message(), HasSubstr(fmt::format("allocate {} bytes", bytes)));
    EXPECT_THAT(result.status().message(), HasSubstr("bytes are available"));
  }
}

TEST(Memory, MayBeAllocatedFoundAndFreedByManyThreadsAtOnce) {
  std::vector<int> failures(4, 0);
  std::vector<std::thread> threads;
  for (int& mine : failures) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 50; ++i) {
        const Result<void*> p = host::memory_allocate(4096);
        if (!p.ok() || host::memory_find(p.value(), 4096).base != p.value() ||
            !host::memory_free(p.value()).ok())
          ++mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(failures, ::testing::Each(0));
}

// A made-up /proc and /sys/fs/cgroup.
class Available : public ::testing::Test {
 protected:
  Available() {
    char name[] = "/tmp/tessera-available-XXXXXX";
    root = ::mkdtemp(name);
    write("proc/meminfo",
          "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable: 4000 kB\nSwapFree: 96 kB\n");
  }
  ~Available() override { std::filesystem::remove_all(root); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  uint64_t available() const {
    return host::available_memory((root / "proc").string(), (root / "cgroup").string());
  }
  std::filesystem::path root;
};

TEST_F(Available, IsFreeMemoryAndSwapWhereNoGroupLimits) {
  EXPECT_EQ(available(), 4096u * 1024);
  write("proc/self/cgroup", "0::/a/b\n");
  write("cgroup/a/b/memory.max", "max\n");
  write("cgroup/a/b/memory.current", "123\n");
  EXPECT_EQ(available(), 4096u * 1024);
}

TEST_F(Available, IsWhatTheTightestEnclosingGroupLeaves) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("cgroup/a/b/memory.max", "3000000\n");
  write("cgroup/a/b/memory.current", "1000\n");
  write("cgroup/a/memory.max", "2000000\n");
  write("cgroup/a/memory.current", "1500000\n");
  EXPECT_EQ(available(), 500000u);
  write("cgroup/a/memory.stat", "anon 5\ninactive_file 100000\nactive_file 20000\n");
  EXPECT_EQ(available(), 620000u) << "page cache gives way";
}

TEST_F(Available, UnderstandsGroupsOfVersion1) {
  write("proc/self/cgroup", "7:cpu:/x\n4:memory:/x\n0::/\n");
  write("cgroup/memory/x/memory.limit_in_bytes", "1000000\n");
  write("cgroup/memory/x/memory.usage_in_bytes", "1200000\n");
  EXPECT_EQ(available(), 0u);
  write("cgroup/memory/x/memory.stat", "total_inactive_file 300000\n");
  EXPECT_EQ(available(), 100000u);
}

TEST_F(Available, IsUnlimitedWhereNothingCanBeRead) {
  std::filesystem::remove_all(root / "proc");
  EXPECT_EQ(available(), std::numeric_limits<uint64_t>::max());
}

}  // namespace
}  // namespace tessera
