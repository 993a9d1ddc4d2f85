// What small messages cost once everything is set up: no heap allocation and no system call.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <nccl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

#include "comm/processes.h"
#include "comm/ranks.h"

namespace {

// Allocations made by this thread, counted by the replaced operators below.
thread_local uint64_t allocations = 0;

void* counted_allocation(size_t bytes, size_t alignment) {
  ++allocations;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  return counted_allocation(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted_allocation(bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace tessera::test {
namespace {

// From now on any system call but write and exit kills the process.
bool forbid_system_calls() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

Call small_all_reduce(float* data) {
  Call call;
  call.collective = Collective::kAllReduce;
  call.send = call.recv = data;
  call.count = 2;
  return call;
}

TEST(SteadyState, SmallMessagesMakeNoHeapAllocation) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    float data[2] = {0, 0};
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(run(comm, small_all_reduce(data)).ok());
    const uint64_t before = allocations;
    Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) status = run(comm, small_all_reduce(data));
    EXPECT_EQ(allocations, before);
    EXPECT_TRUE(status.ok()) << status.message();
  });
}

TEST(SteadyState, SmallSendsAndReceivesMakeNoHeapAllocation) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    float data[2] = {0, 0}, other[2] = {0, 0};
    Work works[2];
    for (const bool receives : {false, true}) {
      Call& call = works[receives].call;
      works[receives].comm = &comm;
      call.collective = Collective::kSendRecv;
      call.root = 1 - comm.rank();
      call.receives = receives;
      call.send = receives ? nullptr : data;
      call.recv = receives ? other : nullptr;
      call.count = 2;
    }
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(execute(works).ok());
    const uint64_t before = allocations;
    Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) status = execute(works);
    EXPECT_EQ(allocations, before);
    EXPECT_TRUE(status.ok()) << status.message();
  });
}

TEST(SteadyState, AGroupOfTheInterfaceMakesNoHeapAllocation) {
  const std::string id = [] {
    ncclUniqueId made;
    EXPECT_EQ(ncclGetUniqueId(&made), ncclSuccess);
    return std::string(made.internal, sizeof made.internal);
  }();
  const auto rank = [&](int number) {
    ncclUniqueId unique;
    id.copy(unique.internal, sizeof unique.internal);
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 2, unique, number), ncclSuccess);
    float data[2] = {0, 0}, other[2] = {0, 0};
    const auto exchange = [&] {
      ncclGroupStart();
      ncclSend(data, 2, ncclFloat, 1 - number, comm, nullptr);
      ncclRecv(other, 2, ncclFloat, 1 - number, comm, nullptr);
      return ncclGroupEnd();
    };
    for (int i = 0; i < 10; ++i) ASSERT_EQ(exchange(), ncclSuccess);
    const uint64_t before = allocations;
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < 1000 && result == ncclSuccess; ++i) result = exchange();
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(result, ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  };
  std::thread second([&] { rank(1); });
  rank(0);
  second.join();
}

TEST(SteadyState, SmallMessagesMakeNoSystemCall) {
  CommOptions options = quick_options();
  // never tired of waiting: what is measured is the path, not the patience
  options.config.spin = 2'000'000'000;
  const std::vector<Ending> endings = run_processes(2, options, [](Communicator& comm) {
    float data[2] = {0, 0};
    for (int i = 0; i < 10; ++i) {
      if (!run(comm, small_all_reduce(data)).ok()) return std::string("warm-up failed");
    }
    if (!forbid_system_calls()) return std::string("seccomp is not available");
    for (int i = 0; i < 300; ++i) {
      if (!run(comm, small_all_reduce(data)).ok()) _exit(3);
    }
    _exit(0);  // not through destructors: they do make system calls
    return std::string();
  });
  for (const Ending& ending : endings) {
    EXPECT_FALSE(ending.killed) << "a system call was made";
    EXPECT_EQ(ending.exit_code, 0) << ending.text;
  }
}

// Bytes of this process that are in memory.
size_t resident() {
  long pages = 0, in_memory = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &in_memory) != 2) in_memory = 0;
  if (file != nullptr) std::fclose(file);
  return static_cast<size_t>(in_memory) * 4096;
}

TEST(SteadyState, ACommunicatorOfEightRanksKeepsUnderEightMebibytesResidentPerRank) {
  const std::vector<Ending> endings = run_processes(8, quick_options(), [](Communicator& comm) {
    constexpr size_t kLargest = 1 << 18;
    std::vector<float> in(kLargest * 8, 1.0F), out(kLargest * 8, 0.0F);
    const size_t before = resident();
    Result<std::unique_ptr<Communicator>> fresh = comm.split(0, comm.rank(), comm.options());
    if (!fresh.ok()) return fresh.status().message();
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
          Collective::kAllToAll, Collective::kBroadcast, Collective::kReduce}) {
      for (size_t count = 1; count <= kLargest; count *= 8) {
        Call call;
        call.collective = collective;
        call.send = in.data();
        call.recv = out.data();
        call.count = count;
        call.root = has_root(collective) ? 0 : -1;
        if (Status s = run(*fresh.value(), call); !s.ok()) return s.message();
      }
    }
    const size_t grown = resident() - before;
    return grown < size_t{8} << 20 ? std::string() : std::to_string(grown) + " bytes";
  });
  for (const Ending& ending : endings) EXPECT_EQ(ending.exit_code, 0) << ending.text;
}

TEST(SteadyState, MoreThanTwoToThe31ElementsAreReduced) {
  constexpr size_t kCount = (size_t{1} << 31) + 1001;
  run_ranks(2, quick_options(60'000), [](Communicator& comm) {
    std::vector<int8_t> data(kCount, static_cast<int8_t>(comm.rank() + 1));
    data.back() = static_cast<int8_t>(10 * (comm.rank() + 1));
    Call call;
    call.collective = Collective::kAllReduce;
    call.send = call.recv = data.data();
    call.count = kCount;
    call.type = DataType::kInt8;
    const Status status = run(comm, call);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(data.front(), 3);
    EXPECT_EQ(data[kCount / 2], 3);
    EXPECT_EQ(data[kCount - 2], 3);
    EXPECT_EQ(data.back(), 30);
  });
}

}  // namespace
}  // namespace tessera::test
