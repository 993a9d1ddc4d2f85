// Ranks as processes on two to four hosts, which talk over TCP: every collective, the types and
// operations, groups, split and shrink.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/checks.h"
#include "multihost/support/fixture.h"

namespace tessera::multihost {
namespace {

using test::quick_options;

struct Layout {
  const char* name;
  std::vector<int> host_of;
  Family family = Family::kIpv4;
  int rails = 1;
};

class Layouts : public MultihostTest, public testing::WithParamInterface<Layout> {
 protected:
  void expect_well(const Job::Body& body) {
    const Layout& layout = GetParam();
    const int hosts = 1 + *std::max_element(layout.host_of.begin(), layout.host_of.end());
    const Network network(hosts, layout.rails, layout.family);
    Job job(network, layout.host_of, quick_options(), body);
    expect_all_well(job, std::chrono::seconds(60));
  }
};

TEST_P(Layouts, EveryCollectiveGivesTheRightResultAtEverySizeAndInPlace) {
  expect_well([](Communicator& comm, Board&) {
    for (const Collective collective : test::kData)
      test::check_sizes(comm, collective, {0, 1, 13, 1023, 20'011, 300'003});
    return describe(comm.finalize());
  });
}

// Small whole numbers, so that the result is exact in every type and order.
template <class T>
void check_reduction(Communicator& comm, DataType type, ReduceOp op, size_t count) {
  const auto input = [](int rank, size_t i) { return T((static_cast<size_t>(rank) + i) % 3 + 1); };
  std::vector<T> in(count), out(count);
  for (size_t i = 0; i < count; ++i) in[i] = input(comm.rank(), i);
  Call call;
  call.collective = Collective::kAllReduce;
  call.send = in.data();
  call.recv = out.data();
  call.count = count;
  call.type = type;
  call.op = op;
  const Status status = test::run(comm, call);
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < count; ++i) {
    T right = input(0, i);
    for (int rank = 1; rank < comm.size(); ++rank) {
      const T next = input(rank, i);
      right = op == ReduceOp::kSum    ? T(right + next)
              : op == ReduceOp::kProd ? T(right * next)
              : op == ReduceOp::kMax  ? std::max(right, next)
                                      : std::min(right, next);
    }
    ASSERT_EQ(out[i], right) << to_string(type) << ' ' << to_string(op) << " element " << i;
  }
}

TEST_P(Layouts, EveryOperationIsRightInSeveralTypes) {
  expect_well([](Communicator& comm, Board&) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
      for (const size_t count : {size_t{1}, size_t{777}, size_t{100'001}}) {
        check_reduction<int8_t>(comm, DataType::kInt8, op, count);
        check_reduction<uint64_t>(comm, DataType::kUint64, op, count);
        check_reduction<float>(comm, DataType::kFloat32, op, count);
        check_reduction<double>(comm, DataType::kFloat64, op, count);
      }
    }
    return std::string();
  });
}

// Each rank sends to the next and receives from the one before, while a collective runs.
std::string group(Communicator& comm, size_t count) {
  const int next = (comm.rank() + 1) % comm.size();
  const int before = (comm.rank() + comm.size() - 1) % comm.size();
  std::vector<int32_t> out(count), in(count), sum(2, 1), total(2);
  for (size_t i = 0; i < count; ++i) out[i] = test::value(comm.rank(), next, i);
  Call send, receive, reduce;
  send.collective = receive.collective = Collective::kSendRecv;
  send.type = receive.type = reduce.type = DataType::kInt32;
  send.count = receive.count = count;
  send.root = next;
  send.send = out.data();
  receive.root = before;
  receive.recv = in.data();
  receive.receives = true;
  reduce.collective = Collective::kAllReduce;
  reduce.send = sum.data();
  reduce.recv = total.data();
  reduce.count = total.size();
  const std::vector<Work> works = {{&comm, send}, {&comm, reduce}, {&comm, receive}};
  if (const Status status = execute(works); !status.ok()) return describe(status);
  for (size_t i = 0; i < count; ++i)
    if (in[i] != test::value(before, comm.rank(), i)) return "received something else";
  return total == std::vector<int32_t>(2, comm.size()) ? "" : "wrong sum";
}

TEST_P(Layouts, AGroupOfSendsReceivesAndACollectiveCompletes) {
  expect_well([](Communicator& comm, Board&) {
    std::string wrong;
    for (const size_t count : {1, 1000, 70'001, 1'000'003})
      if (wrong.empty()) wrong = group(comm, count);
    return wrong;
  });
}

TEST_P(Layouts, ChildrenOfSplitAndShrinkConnectAnew) {
  expect_well([](Communicator& comm, Board&) {
    Result<std::unique_ptr<Communicator>> half =
        comm.split(comm.rank() % 2, -comm.rank(), comm.options());
    if (!half.ok()) return "split: " + describe(half.status());
    test::check_sizes(*half.value(), Collective::kAllReduce, {1, 50'000});
    if (comm.rank() == 1) return std::string();
    const std::vector<int> excluded = {1};
    Result<std::unique_ptr<Communicator>> rest = comm.shrink(excluded, comm.options());
    if (!rest.ok()) return "shrink: " + describe(rest.status());
    test::check_sizes(*rest.value(), Collective::kAllGather, {1, 50'000});
    return std::string();
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, Layouts,
                         testing::Values(Layout{"TwoOfOneRank", {0, 1}},
                                         Layout{"TwoOfThreeRanks", {0, 0, 0, 1, 1, 1}},
                                         Layout{"TwoUneven", {0, 1, 1}},
                                         Layout{"ThreeUneven", {2, 0, 1, 2, 1, 2}},
                                         Layout{"FourOfOneRank", {0, 1, 2, 3}},
                                         Layout{"TwoOverIpv6", {0, 1, 0, 1}, Family::kIpv6},
                                         Layout{"TwoOverTwoRails", {0, 0, 1, 1}, Family::kIpv4, 2}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tessera::multihost
