// What every call checks, also when nothing would move; and how the calls reach the communicator.
#include <cmath>
#include <cstring>
#include <limits>

#include "api/fake/fixture.h"

namespace tessera::fake {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Arguments = ApiTest;

constexpr auto kFloat = ncclFloat32;

TEST_F(Arguments, UnknownTypesAndOperationsAreRefusedAlsoForACountOfZero) {
  const ncclComm_t comm = make_comm();
  for (const size_t count : {size_t{0}, size_t{4}}) {
    for (const int type : {-1, int{ncclNumTypes}, 99})
      EXPECT_EQ(ncclAllReduce(buffer_, buffer_, count, static_cast<ncclDataType_t>(type), ncclSum,
                              comm, nullptr),
                ncclInvalidArgument);
    for (const int op : {int{ncclNumOps}, 99, int{ncclMaxRedOp}})
      EXPECT_EQ(ncclAllReduce(buffer_, buffer_, count, kFloat, static_cast<ncclRedOp_t>(op), comm,
                              nullptr),
                ncclInvalidArgument);
  }
  EXPECT_THAT(world().executed(), IsEmpty());
}

TEST_F(Arguments, RootsAndPeersOutOfRangeAreNamed) {
  const ncclComm_t comm = make_comms(3)[1];
  for (const int root : {-1, 3}) {
    EXPECT_EQ(ncclBroadcast(buffer_, buffer_, 0, kFloat, root, comm, nullptr), ncclInvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr("ncclBroadcast on communicator rank 1: root " +
                                        std::to_string(root) + " is out of range"));
    EXPECT_EQ(ncclSend(buffer_, 0, kFloat, root, comm, nullptr), ncclInvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr("peer " + std::to_string(root)));
    EXPECT_EQ(ncclGather(buffer_, buffer_, 0, kFloat, root, comm, nullptr), ncclInvalidArgument);
  }
}

TEST_F(Arguments, NullBuffersAreRefusedWhereTheyAreUsed) {
  const auto comms = make_comms(2);
  EXPECT_EQ(ncclAllReduce(nullptr, buffer_, 1, kFloat, ncclSum, comms[0], nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(buffer_, nullptr, 1, kFloat, ncclSum, comms[0], nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(ncclReduce(buffer_, nullptr, 1, kFloat, ncclSum, 0, comms[0], nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(ncclSend(nullptr, 1, kFloat, 1, comms[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclScatter(nullptr, buffer_, 1, kFloat, 0, comms[0], nullptr), ncclInvalidArgument);
  EXPECT_THAT(world().executed(), IsEmpty());
  EXPECT_EQ(ncclReduce(buffer_, nullptr, 1, kFloat, ncclSum, 0, comms[1], nullptr), ncclSuccess);
  EXPECT_EQ(ncclBroadcast(nullptr, buffer_, 1, kFloat, 0, comms[1], nullptr), ncclSuccess);
  EXPECT_EQ(ncclScatter(nullptr, buffer_, 1, kFloat, 0, comms[1], nullptr), ncclSuccess);
  EXPECT_EQ(ncclGather(buffer_, nullptr, 1, kFloat, 0, comms[1], nullptr), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(4));
}

TEST_F(Arguments, ACountWhoseBytesOverflowIsRefused) {
  const ncclComm_t comm = make_comms(4)[0];
  const size_t most = std::numeric_limits<size_t>::max();
  for (const size_t count : {most, most / 4, most / 16 + 1}) {
    EXPECT_EQ(ncclAllGather(buffer_, buffer_, count, kFloat, comm, nullptr), ncclInvalidArgument);
    EXPECT_THAT(last_error(), HasSubstr("address space"));
  }
}

TEST_F(Arguments, ACountOfZeroSucceedsWithoutReachingThePeers) {
  const ncclComm_t comm = make_comms(2)[0];
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, kFloat, ncclSum, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAlltoAll(nullptr, nullptr, 0, kFloat, comm, nullptr), ncclSuccess);
  EXPECT_THAT(world().executed(), IsEmpty());
}

TEST_F(Arguments, ASendOfZeroElementsStillMeetsItsReceive) {
  const ncclComm_t comm = make_comms(2)[0];
  EXPECT_EQ(ncclSend(nullptr, 0, kFloat, 1, comm, nullptr), ncclSuccess);
  EXPECT_THAT(world().executed(), SizeIs(1));
}

TEST_F(Arguments, EveryCollectiveReachesTheCommunicatorAsItWasCalled) {
  const ncclComm_t comm = make_comms(2)[0];
  float* const in = buffer_;
  float* const out = buffer_ + 32;
  EXPECT_EQ(ncclReduce(in, out, 3, ncclInt32, ncclMax, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclReduceScatter(in, out, 4, ncclBfloat16, ncclAvg, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclBcast(in, 5, ncclUint8, 1, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAllGather(in, out, 6, ncclFloat64, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAlltoAll(in, out, 7, ncclInt64, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclGather(in, out, 8, ncclFloat8e4m3, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclScatter(in, out, 9, ncclFloat16, 1, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclRecv(out, 10, kFloat, 1, comm, nullptr), ncclSuccess);
  std::vector<std::string> texts;
  for (const Record& record : world().executed())
    texts.insert(texts.end(), record.begin(), record.end());
  EXPECT_THAT(texts, ::testing::ElementsAre(
                         "r0 reduce 3 int32 max root 0", "r0 reduce-scatter 4 bfloat16 avg",
                         "r0 broadcast 5 uint8 root 1", "r0 all-gather 6 float64",
                         HasSubstr(" 7 int64"), HasSubstr(" 8 float8"),
                         "r0 scatter 9 float16 root 1", HasSubstr(" 10 float32 from 1")));
  const std::vector<Call> calls = world().calls();
  EXPECT_EQ(calls[0].send, in);
  EXPECT_EQ(calls[0].recv, out);
  EXPECT_EQ(calls[2].send, nullptr) << "not root: the buffer receives only";
  EXPECT_EQ(calls[2].recv, in);
}

TEST_F(Arguments, AFailureBelowBecomesItsNcclCode) {
  const ncclComm_t comm = make_comm();
  const std::pair<Code, ncclResult_t> table[] = {{Code::kInvalidArgument, ncclInvalidArgument},
                                                 {Code::kInvalidUsage, ncclInvalidUsage},
                                                 {Code::kSystem, ncclSystemError},
                                                 {Code::kInternal, ncclInternalError},
                                                 {Code::kRemote, ncclRemoteError},
                                                 {Code::kTimeout, ncclRemoteError},
                                                 {Code::kPlanRace, ncclInternalError}};
  for (const auto& [code, result] : table) {
    const std::string text = std::string("because of ") + to_string(code);
    world().fail_execute(Status(code, text));
    EXPECT_EQ(all_reduce(comm), result) << text;
    EXPECT_EQ(last_error(), text);
  }
}

TEST_F(Arguments, ErrorStringsBeginWithTheWordsToolsLookFor) {
  const char* const begins[] = {"no error",
                                "unhandled cuda error",
                                "unhandled system error",
                                "internal error",
                                "invalid argument",
                                "invalid usage",
                                "remote process exited",
                                "NCCL operation in progress",
                                "timeout",
                                "unknown result code"};
  for (int code = 0; code < 10; ++code)
    EXPECT_THAT(ncclGetErrorString(static_cast<ncclResult_t>(code)),
                ::testing::StartsWith(begins[code]));
}

TEST_F(Arguments, TheVersionIsThatOfTheHeader) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 22809);
  EXPECT_EQ(ncclGetVersion(nullptr), ncclInvalidArgument);
}

using ReductionOperations = ApiTest;

ncclRedOp_t scaled(ncclComm_t comm, float* factor, ncclScalarResidence_t residence) {
  ncclRedOp_t op = ncclSum;
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, factor, kFloat, residence, comm), ncclSuccess);
  EXPECT_GE(op, ncclNumOps);
  return op;
}

float factor_of(const Call& call) {
  float factor = NAN;
  std::memcpy(&factor, &call.scalar, sizeof(factor));
  return factor;
}

TEST_F(ReductionOperations, AnImmediateFactorIsReadWhenTheOperationIsCreated) {
  const ncclComm_t comm = make_comm();
  float factor = 2.5f;
  const ncclRedOp_t op = scaled(comm, &factor, ncclScalarHostImmediate);
  factor = 9;
  EXPECT_EQ(ncclAllReduce(buffer_, buffer_, 1, kFloat, op, comm, nullptr), ncclSuccess);
  EXPECT_EQ(world().calls().at(0).op, ReduceOp::kPreMulSum);
  EXPECT_EQ(factor_of(world().calls()[0]), 2.5f);
}

TEST_F(ReductionOperations, AFactorInMemoryIsReadByEachCall) {
  const ncclComm_t comm = make_comm();
  float factor = 2.5f;
  const ncclRedOp_t op = scaled(comm, &factor, ncclScalarDevice);
  for (const float value : {3.f, 4.f}) {
    factor = value;
    EXPECT_EQ(ncclAllReduce(buffer_, buffer_, 1, kFloat, op, comm, nullptr), ncclSuccess);
    EXPECT_EQ(factor_of(world().calls().back()), value);
  }
}

TEST_F(ReductionOperations, AnOperationMayBeDestroyedBeforeItsGroupEnds) {
  const ncclComm_t comm = make_comm();
  float factor = 2.5f;
  const ncclRedOp_t op = scaled(comm, &factor, ncclScalarHostImmediate);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(buffer_, buffer_, 1, kFloat, op, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclRedOpDestroy(op, comm), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(factor_of(world().calls().at(0)), 2.5f);
}

TEST_F(ReductionOperations, AnOperationBelongsToItsCommunicatorAndItsType) {
  const auto comms = make_comms(2);
  float factor = 2.5f;
  const ncclRedOp_t op = scaled(comms[0], &factor, ncclScalarHostImmediate);
  EXPECT_EQ(ncclAllReduce(buffer_, buffer_, 1, kFloat, op, comms[1], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(buffer_, buffer_, 1, ncclInt32, op, comms[0], nullptr),
            ncclInvalidArgument);
  EXPECT_THAT(last_error(), HasSubstr("has a factor of type float32, but the data are int32"));
  EXPECT_EQ(ncclRedOpDestroy(op, comms[1]), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(op, comms[0]), ncclSuccess);
  EXPECT_EQ(ncclRedOpDestroy(op, comms[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(ncclSum, comms[0]), ncclInvalidArgument);
}

using Memory = ApiTest;

TEST_F(Memory, MemAllocAndMemFree) {
  void* memory = nullptr;
  EXPECT_EQ(ncclMemAlloc(&memory, 100), ncclSuccess);
  EXPECT_NE(memory, nullptr);
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess);
  EXPECT_EQ(ncclMemAlloc(nullptr, 100), ncclInvalidArgument);
  EXPECT_EQ(ncclMemAlloc(&memory, 0), ncclSuccess);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(ncclMemAlloc(&memory, size_t{1} << 50), ncclSystemError);
}

TEST_F(Memory, WindowsAreCheckedAndReachTheCommunicator) {
  const ncclComm_t comm = make_comm();
  auto* page = reinterpret_cast<char*>(uintptr_t{4096} * 1000);
  ncclWindow_t window = nullptr;
  EXPECT_EQ(ncclCommWindowRegister(comm, page + 8, 64, &window, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommWindowRegister(comm, page, 0, &window, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommWindowRegister(comm, page, 64, &window, 8), ncclInvalidArgument);
  EXPECT_EQ(ncclCommWindowRegister(comm, page, 64, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommWindowRegister(comm, page, 64, &window, NCCL_WIN_COLL_SYMMETRIC), ncclSuccess);
  EXPECT_EQ(ncclCommWindowDeregister(make_comm(), window), ncclInvalidArgument);
  EXPECT_EQ(ncclCommWindowDeregister(comm, window), ncclSuccess);
  EXPECT_EQ(ncclCommWindowDeregister(comm, window), ncclInvalidArgument);
  EXPECT_THAT(world().events(), ::testing::ElementsAre("r0 window 64", "r0 no window 77"));
}

TEST_F(Memory, BuffersAreRegisteredOnceAndDeregisteredOnce) {
  const ncclComm_t comm = make_comm();
  void* handle = nullptr;
  EXPECT_EQ(ncclCommRegister(comm, nullptr, 8, &handle), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(comm, buffer_, 8, &handle), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(comm, handle), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(comm, handle), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDeregister(comm, nullptr), ncclSuccess);
}

}  // namespace
}  // namespace tessera::fake
