// Plans for several hosts carried out with numbers, for counts that do not divide: chunks differ in
// length and some are empty. A check that shares nothing with the verifier.
#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/support.h"
#include "algorithms/walk.h"
#include "plan/partition.h"
#include "plan/shape.h"

namespace tessera {
namespace {

constexpr size_t kUnit = 16;  // elements of a cache line of float32

using Numbers = std::vector<int64_t>;

int64_t element(int rank, int block, size_t i) {
  return 1 + rank * 1'000'003 + block * 10'007 + static_cast<int64_t>(i);
}

// One pass of a plan over blocks of `count` numbers.
class Machine {
 public:
  Machine(const Plan& plan, size_t count) : plan_(plan), count_(count) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const int blocks = input_blocks(plan.collective, plan.ranks, plan.root, rank);
      for (int chunk = 0; chunk < blocks * plan.chunks_per_block; ++chunk) {
        const ChunkRange range = part(chunk);
        Numbers& numbers = memory_[{rank, Buffer::kInput, chunk}];
        for (size_t i = 0; i < range.length; ++i)
          numbers.push_back(element(rank, chunk / plan.chunks_per_block, range.begin + i));
      }
    }
  }

  bool run() {
    return test::walk(plan_, [&](int, int, const Step& step) {
      for (int j = 0; step.op != Op::kSync && j < step.chunks; ++j) carry_out(step, j);
    });
  }

  // A block of a rank's output.
  Numbers output(int rank, int block) {
    Numbers whole;
    for (int c = 0; c < plan_.chunks_per_block; ++c) {
      const Numbers& chunk = memory_[{rank, Buffer::kOutput, block * plan_.chunks_per_block + c}];
      whole.insert(whole.end(), chunk.begin(), chunk.end());
    }
    return whole;
  }

  Numbers expected(int rank, int block) const {
    Numbers sum(count_);
    for (int from = 0; from < plan_.ranks; ++from) {
      const int source =
          required_input_block(plan_.collective, plan_.ranks, plan_.root, rank, block, from);
      for (size_t i = 0; source >= 0 && i < count_; ++i) sum[i] += element(from, source, i);
    }
    return sum;
  }

 private:
  ChunkRange part(int chunk) const {
    const int c = chunk % plan_.chunks_per_block;
    return chunk_range(count_, static_cast<uint32_t>(plan_.chunks_per_block),
                       static_cast<uint32_t>(c), kUnit);
  }

  void carry_out(const Step& step, int j) {
    Numbers sum(part(step.chunk + j).length);
    for (const Ref& src : step.srcs) {
      const Numbers& numbers = memory_[{src.rank, src.buffer, src.chunk + j}];
      ASSERT_EQ(numbers.size(), sum.size());
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += numbers[i];
    }
    for (const Ref& dst : step.dsts) memory_[{dst.rank, dst.buffer, dst.chunk + j}] = sum;
  }

  const Plan& plan_;
  size_t count_;
  std::map<std::tuple<int, Buffer, int>, Numbers> memory_;
};

class Ragged : public testing::TestWithParam<Algorithm> {};

TEST_P(Ragged, CountsThatDoNotDivideGiveTheRightNumbers) {
  test::for_each_shape(GetParam(), {2, 3, 5, 7, 10}, [](const AlgorithmParams& params) {
    const Plan plan = GetParam().build(params);
    for (const size_t count : {1, 17, 100, 1001}) {
      Machine machine(plan, count);
      ASSERT_TRUE(machine.run()) << test::label(GetParam(), params);
      for (int rank = 0; rank < plan.ranks; ++rank) {
        const int blocks = output_blocks(plan.collective, plan.ranks, plan.root, rank);
        for (int block = 0; block < blocks; ++block) {
          EXPECT_EQ(machine.output(rank, block), machine.expected(rank, block))
              << test::label(GetParam(), params) << ", count " << count << ", rank " << rank;
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Registry, Ragged,
                         testing::ValuesIn(test::all_algorithms([](const Algorithm& a) {
                           return a.reach == Reach::kStaged &&
                                  a.collective != Collective::kBarrier &&
                                  a.collective != Collective::kSendRecv;
                         })),
                         [](const auto& info) { return test::test_name(info.param); });

}  // namespace
}  // namespace tessera
