// Handles that are NULL, stale or garbage never reach memory; every function says so.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "api/fake/fixture.h"

namespace tessera::fake {
namespace {

using ::testing::HasSubstr;

struct Use {
  const char* function;
  std::function<ncclResult_t(ncclComm_t)> call;
};

// Every function that takes a communicator and refuses NULL.
std::vector<Use> uses() {
  static float buffer[8];
  static int number;
  static ncclResult_t result;
  static ncclComm_t made;
  static ncclRedOp_t op;
  static ncclWindow_t window;
  static void* handle;
  return {
      {"ncclCommCount", [](ncclComm_t c) { return ncclCommCount(c, &number); }},
      {"ncclCommUserRank", [](ncclComm_t c) { return ncclCommUserRank(c, &number); }},
      {"ncclCommCuDevice", [](ncclComm_t c) { return ncclCommCuDevice(c, &number); }},
      {"ncclCommGetAsyncError", [](ncclComm_t c) { return ncclCommGetAsyncError(c, &result); }},
      {"ncclCommSplit", [](ncclComm_t c) { return ncclCommSplit(c, 0, 0, &made, nullptr); }},
      {"ncclCommShrink",
       [](ncclComm_t c) { return ncclCommShrink(c, &number, 1, &made, nullptr, 0); }},
      {"ncclCommRegister", [](ncclComm_t c) { return ncclCommRegister(c, buffer, 8, &handle); }},
      {"ncclCommDeregister", [](ncclComm_t c) { return ncclCommDeregister(c, nullptr); }},
      {"ncclCommWindowRegister",
       [](ncclComm_t c) { return ncclCommWindowRegister(c, buffer, 8, &window, 0); }},
      {"ncclCommWindowDeregister",
       [](ncclComm_t c) { return ncclCommWindowDeregister(c, nullptr); }},
      {"ncclRedOpCreatePreMulSum",
       [](ncclComm_t c) {
         return ncclRedOpCreatePreMulSum(&op, buffer, ncclFloat32, ncclScalarHostImmediate, c);
       }},
      {"ncclRedOpDestroy", [](ncclComm_t c) { return ncclRedOpDestroy(ncclMaxRedOp, c); }},
      {"ncclAllReduce",
       [](ncclComm_t c) {
         return ncclAllReduce(buffer, buffer, 1, ncclFloat32, ncclSum, c, nullptr);
       }},
      {"ncclSend", [](ncclComm_t c) { return ncclSend(buffer, 1, ncclFloat32, 0, c, nullptr); }},
  };
}

using Handles = ApiTest;

TEST_F(Handles, NullIsRefusedByNameOfTheFunction) {
  for (const Use& use : uses()) {
    EXPECT_EQ(use.call(nullptr), ncclInvalidArgument) << use.function;
    EXPECT_EQ(last_error(), std::string(use.function) + ": comm is NULL");
  }
}

TEST_F(Handles, AHandleIsStaleAfterDestroy) {
  const ncclComm_t comm = make_comm();
  forget(comm);
  ASSERT_EQ(ncclCommDestroy(comm), ncclSuccess);
  for (const Use& use : uses()) {
    EXPECT_EQ(use.call(comm), ncclInvalidArgument) << use.function;
    EXPECT_THAT(last_error(), HasSubstr("was destroyed or aborted")) << use.function;
  }
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(comm), ncclInvalidArgument);
  EXPECT_EQ(ncclCommFinalize(comm), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
}

TEST_F(Handles, AnOldHandleStaysStaleWhenItsSlotServesAnotherCommunicator) {
  const ncclComm_t old = make_comm();
  forget(old);
  ASSERT_EQ(ncclCommDestroy(old), ncclSuccess);
  const ncclComm_t next = make_comm();
  EXPECT_NE(old, next);
  EXPECT_EQ(all_reduce(old), ncclInvalidArgument);
  EXPECT_EQ(all_reduce(next), ncclSuccess);
}

TEST_F(Handles, GarbageIsRefusedWithoutBeingRead) {
  const uintptr_t good = reinterpret_cast<uintptr_t>(make_comm());
  const uintptr_t values[] = {1,
                              8,
                              0xdeadbeef,
                              ~uintptr_t{0},
                              good + 1,
                              good | 0xffff,
                              good ^ (1ull << 20),
                              good ^ (1ull << 60),
                              reinterpret_cast<uintptr_t>(buffer_)};
  for (const uintptr_t value : values)
    for (const Use& use : uses())
      EXPECT_EQ(use.call(reinterpret_cast<ncclComm_t>(value)), ncclInvalidArgument)
          << use.function << " " << std::hex << value;
}

TEST_F(Handles, EndingNullSucceeds) {
  EXPECT_EQ(ncclCommDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommFinalize(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommRevoke(nullptr, NCCL_REVOKE_DEFAULT), ncclSuccess);
}

TEST_F(Handles, OneThreadAtATimeIsInsideACommunicator) {
  const ncclComm_t comm = make_comm();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) EXPECT_EQ(all_reduce(comm), ncclSuccess);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(world().most_inside(), 1);
  EXPECT_EQ(world().executed().size(), 800u);
}

TEST_F(Handles, AbortFromAnotherThreadEndsACallInProgress) {
  const ncclComm_t comm = make_comm();
  forget(comm);
  world().close_gate();
  ncclResult_t result = ncclSuccess;
  std::thread caller([&] { result = all_reduce(comm); });
  world().await_at_gate(1);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  caller.join();
  EXPECT_EQ(result, ncclRemoteError);
  EXPECT_EQ(all_reduce(comm), ncclInvalidArgument);
}

TEST_F(Handles, TheStateCanBeAskedWhileACallIsInProgress) {
  const ncclComm_t comm = make_comm();
  world().close_gate();
  std::thread caller([&] { EXPECT_EQ(all_reduce(comm), ncclSuccess); });
  world().await_at_gate(1);
  ncclResult_t state = ncclInternalError;
  int count = 0;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
  EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
  EXPECT_EQ(count, 1);
  world().open_gate();
  caller.join();
}

// The exit status of `body` run in a forked child.
int in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(Handles, AForkedChildIsToldThatItsCommunicatorsAreTheParents) {
  const ncclComm_t comm = make_comm();
  tsrStream_t stream = nullptr;
  ASSERT_EQ(tsrStreamCreate(&stream), ncclSuccess);
  const auto refused = [&] {
    for (const Use& use : uses())
      if (use.call(comm) != ncclInvalidUsage ||
          last_error().find("before fork") == std::string::npos)
        return false;
    return ncclCommDestroy(comm) == ncclInvalidUsage &&
           tsrStreamSynchronize(stream) == ncclInvalidUsage;
  };
  EXPECT_EQ(in_child(refused), 0);
  EXPECT_EQ(all_reduce(comm), ncclSuccess) << "the parent goes on";
  EXPECT_EQ(tsrStreamDestroy(stream), ncclSuccess);
}

TEST_F(Handles, AForkedChildMakesItsOwnCommunicators) {
  make_comms(3);
  EXPECT_EQ(in_child([&] { return all_reduce(make_comm()) == ncclSuccess; }), 0);
}

TEST_F(Handles, AForkDuringACallLeavesTheChildUsable) {
  const ncclComm_t comm = make_comm();
  world().close_gate();
  std::thread caller([&] { EXPECT_EQ(all_reduce(comm), ncclSuccess); });
  world().await_at_gate(1);
  EXPECT_EQ(in_child([&] { return all_reduce(comm) == ncclInvalidUsage; }), 0);
  world().open_gate();
  caller.join();
}

}  // namespace
}  // namespace tessera::fake
