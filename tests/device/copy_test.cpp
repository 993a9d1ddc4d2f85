#include "device/host/copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "device/guarded.h"

namespace tessera {
namespace {

using testing::Canary;
using testing::GuardedBuffer;

constexpr size_t kLarge = (size_t{2} << 20) + 4097;  // streams

std::vector<uint8_t> random_bytes(size_t bytes) {
  std::mt19937_64 random(3);
  std::vector<uint8_t> result(bytes);
  for (uint8_t& byte : result) byte = static_cast<uint8_t>(random());
  return result;
}

using CopyFn = void (*)(void*, const void*, size_t);
class Copies : public ::testing::TestWithParam<CopyFn> {};

TEST_P(Copies, MoveExactlyTheBytesAskedForAtAnyPlace) {
  const std::vector<uint8_t> input = random_bytes(kLarge);
  const GuardedBuffer from(kLarge + 1);
  const GuardedBuffer to(kLarge + 1);
  for (const int64_t set : testing::instruction_sets()) {
    const testing::WithInstructionSet chosen(set);
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{7}, size_t{64}, size_t{4099}, kLarge}) {
      for (int place = 0; place < GuardedBuffer::kPlaces * GuardedBuffer::kPlaces; ++place) {
        uint8_t* const src = from.place(place, bytes);
        uint8_t* const dst = to.place(place / GuardedBuffer::kPlaces, bytes);
        std::memcpy(src, input.data(), bytes);
        const Canary around(to, dst, bytes);
        GetParam()(dst, src, bytes);
        ASSERT_EQ(std::memcmp(dst, input.data(), bytes), 0) << bytes << " bytes, place " << place;
        ASSERT_TRUE(around.intact()) << bytes << " bytes, place " << place;
      }
    }
  }
}

TEST_P(Copies, LeaveDataAloneThatIsInPlaceAlready) {
  const std::vector<uint8_t> input = random_bytes(kLarge);
  std::vector<uint8_t> data = input;
  GetParam()(data.data(), data.data(), data.size());
  EXPECT_EQ(data, input);
}

INSTANTIATE_TEST_SUITE_P(Copy, Copies, ::testing::Values(host::copy, host::copy_past_caches),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "cached" : "past_caches");
                         });

}  // namespace
}  // namespace tessera
