// Every kernel, on every instruction set of this machine, against the reference, between guard
// pages.
#include "device/host/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "device/fixtures.h"
#include "device/guarded.h"
#include "device/reference.h"

namespace tessera {
namespace {

using testing::Canary;
using testing::GuardedBuffer;

constexpr int kMaxSources = 10;
constexpr int kMaxDsts = 3;
constexpr size_t kCounts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 255, 1000, 1025};
constexpr size_t kMaxCount = 1025;

struct Buffers {
  std::vector<std::unique_ptr<GuardedBuffer>> srcs, dsts;
  Buffers() {
    for (int j = 0; j < kMaxSources; ++j)
      srcs.push_back(std::make_unique<GuardedBuffer>(kMaxCount * 8 + 1));
    for (int d = 0; d < kMaxDsts; ++d)
      dsts.push_back(std::make_unique<GuardedBuffer>(kMaxCount * 8 + 1));
  }
};

class EveryType : public ::testing::TestWithParam<DataType> {
 protected:
  // The expected elements of a reduction of the first `sources` inputs.
  std::vector<uint64_t> expected(ReduceOp op, int sources, size_t count) const {
    std::vector<uint64_t> result(count);
    std::vector<uint64_t> column(static_cast<size_t>(sources));
    for (size_t i = 0; i < count; ++i) {
      for (int j = 0; j < sources; ++j)
        column[j] = reference::load(type, inputs[j].data() + i * size_of(type));
      result[i] = reference::reduce(type, op, column);
    }
    return result;
  }

  // One call with operands at places that differ; dst 0 is source `in_place` unless that is
  // negative.
  void check(ReduceOp op, int sources, int dsts, int place, int in_place,
             const std::vector<uint64_t>& want) {
    const size_t bytes = want.size() * size_of(type);
    std::vector<const void*> srcs;
    for (int j = 0; j < sources; ++j) {
      uint8_t* const p = buffers.srcs[j]->place(place + j, bytes);
      if (bytes != 0) std::memcpy(p, inputs[j].data(), bytes);
      srcs.push_back(p);
    }
    std::vector<void*> outputs;
    std::vector<Canary> canaries;
    for (int d = 0; d < dsts; ++d) {
      uint8_t* p = buffers.dsts[d]->place(place + 3 * d, bytes);
      if (d == 0 && in_place >= 0) {
        p = static_cast<uint8_t*>(const_cast<void*>(srcs[in_place]));
      } else {
        canaries.emplace_back(*buffers.dsts[d], p, bytes);
      }
      outputs.push_back(p);
    }
    host::reduce_kernel(type,
                        op)({outputs.data(), dsts, srcs.data(), sources, nullptr, want.size(), 1});
    for (const Canary& canary : canaries) ASSERT_TRUE(canary.intact());
    for (int d = 0; d < dsts; ++d)
      ASSERT_TRUE(equal(static_cast<const uint8_t*>(outputs[d]), want, op, sources, place));
  }

  ::testing::AssertionResult equal(const uint8_t* got, const std::vector<uint64_t>& want,
                                   ReduceOp op, int sources, int place) const {
    for (size_t i = 0; i < want.size(); ++i) {
      const uint64_t raw = reference::load(type, got + i * size_of(type));
      if (reference::same(type, raw, want[i])) continue;
      return ::testing::AssertionFailure()
             << to_string(type) << " " << to_string(op) << " of " << sources << " sources, place "
             << place << ", element " << i << " of " << want.size() << ": "
             << testing::describe(type, raw) << ", expected " << testing::describe(type, want[i]);
    }
    return ::testing::AssertionSuccess();
  }

  void SetUp() override {
    std::mt19937_64 random(17);
    for (int j = 0; j < kMaxSources; ++j)
      inputs.push_back(testing::random_elements(type, kMaxCount, random));
  }

  const DataType type = GetParam();
  std::vector<std::vector<uint8_t>> inputs;
  Buffers buffers;
};

TEST_P(EveryType, AgreesWithTheReferenceForAnyShapeAndTouchesNothingElse) {
  for (const ReduceOp op : testing::kOps) {
    for (int sources = 1; sources <= kMaxSources; ++sources) {
      for (const size_t count : kCounts) {
        const std::vector<uint64_t> want = expected(op, sources, count);
        for (const int64_t set : testing::instruction_sets()) {
          const testing::WithInstructionSet chosen(set);
          for (int dsts = 1; dsts <= kMaxDsts; ++dsts)
            for (int place = 0; place < GuardedBuffer::kPlaces; ++place)
              ASSERT_NO_FATAL_FAILURE(check(op, sources, dsts, place, -1, want))
                  << hwy::TargetName(set);
        }
      }
    }
  }
}

TEST_P(EveryType, MayOverwriteAnyOfItsSources) {
  for (const ReduceOp op : testing::kOps) {
    for (const int sources : {1, 2, 3, 5}) {
      for (const size_t count : {size_t{1}, size_t{31}, size_t{1025}}) {
        const std::vector<uint64_t> want = expected(op, sources, count);
        for (const int64_t set : testing::instruction_sets()) {
          const testing::WithInstructionSet chosen(set);
          for (int in_place = 0; in_place < sources; ++in_place)
            for (int place = 0; place < GuardedBuffer::kPlaces; ++place)
              ASSERT_NO_FATAL_FAILURE(check(op, sources, 2, place, in_place, want))
                  << hwy::TargetName(set);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reduce, EveryType, ::testing::ValuesIn(testing::all_types()),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(Reduce, EachInstructionSetHasItsOwnKernel) {
  std::set<host::ReduceFn> kernels;
  const std::vector<int64_t> sets = testing::instruction_sets();
  for (const int64_t set : sets) {
    const testing::WithInstructionSet chosen(set);
    kernels.insert(host::reduce_kernel(DataType::kFloat32, ReduceOp::kSum));
  }
  EXPECT_EQ(kernels.size(), sets.size());
}

TEST(Reduce, OperationsThatAreNotKernelsHaveNone) {
  for (const DataType type : testing::all_types()) {
    EXPECT_EQ(host::reduce_kernel(type, ReduceOp::kAvg), nullptr);
    EXPECT_EQ(host::reduce_kernel(type, ReduceOp::kPreMulSum), nullptr);
  }
}

// Large outputs take another path: stores past the caches, from the first aligned element on.
TEST(Reduce, LargeOutputsAreRightAtEveryAlignmentOfTheirStart) {
  constexpr size_t kCount = (size_t{1} << 20) / 4 + 77;
  const size_t bytes = kCount * 4;
  std::vector<int32_t> a(kCount);
  std::vector<int32_t> b(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<int32_t>(i * 2654435761u);
    b[i] = static_cast<int32_t>(i ^ 0x5555);
  }
  const void* srcs[] = {a.data(), b.data()};
  const GuardedBuffer first(bytes + 256);
  const GuardedBuffer second(bytes + 256);
  for (const int64_t set : testing::instruction_sets()) {
    const testing::WithInstructionSet chosen(set);
    for (const size_t offset : {0, 1, 4, 8, 20, 60, 64, 100}) {
      uint8_t* const p = first.end() - bytes - offset;
      uint8_t* const q = second.begin() + (reinterpret_cast<uintptr_t>(p) % 64);
      void* dsts[] = {p, q};
      const Canary around_p(first, p, bytes);
      const Canary around_q(second, q, bytes);
      host::reduce_kernel(DataType::kInt32, ReduceOp::kSum)({dsts, 2, srcs, 2, nullptr, kCount, 1});
      ASSERT_TRUE(around_p.intact() && around_q.intact()) << "offset " << offset;
      for (size_t i = 0; i < kCount; ++i) {
        const auto want = static_cast<uint32_t>(a[i]) + static_cast<uint32_t>(b[i]);
        ASSERT_EQ(reference::load(DataType::kInt32, p + i * 4), want) << "element " << i;
      }
      ASSERT_EQ(std::memcmp(p, q, bytes), 0) << "offset " << offset;
    }
  }
}

TEST(Reduce, LargeOutputsOfEveryTypeEqualThoseOfSmallCalls) {
  std::mt19937_64 random(5);
  for (const DataType type : testing::all_types()) {
    const size_t bytes = (size_t{1} << 20) + 8 * 13;
    std::vector<std::vector<uint8_t>> sources;
    for (int j = 0; j < 3; ++j) {
      const std::vector<uint8_t> pattern = testing::random_elements(type, 4099, random);
      sources.emplace_back(bytes);
      for (size_t i = 0; i < bytes; ++i) sources.back()[i] = pattern[i % pattern.size()];
    }
    const std::vector<uint8_t> large = testing::run(type, ReduceOp::kSum, sources);
    std::vector<uint8_t> pieces(bytes);
    const host::ReduceFn kernel = host::reduce_kernel(type, ReduceOp::kSum);
    for (size_t begin = 0; begin < bytes; begin += 65536) {
      const size_t size = std::min<size_t>(65536, bytes - begin);
      const void* srcs[] = {&sources[0][begin], &sources[1][begin], &sources[2][begin]};
      void* dst = &pieces[begin];
      kernel({&dst, 1, srcs, 3, nullptr, size / size_of(type), 1});
    }
    EXPECT_EQ(large, pieces) << to_string(type);
  }
}

}  // namespace
}  // namespace tessera
