// Memory between two pages that nobody may touch, and the choice of instruction sets under test.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "device/host/simd.h"
//
#include <hwy/highway.h>

namespace tessera::testing {

// Reads and writes beyond either end fault.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t capacity) {
    page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    size_ = (capacity + page_ - 1) / page_ * page_;
    void* const base = ::mmap(nullptr, size_ + 2 * page_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(base, MAP_FAILED);
    base_ = static_cast<uint8_t*>(base);
    EXPECT_EQ(::mprotect(base_, page_, PROT_NONE), 0);
    EXPECT_EQ(::mprotect(base_ + page_ + size_, page_, PROT_NONE), 0);
  }
  ~GuardedBuffer() { ::munmap(base_, size_ + 2 * page_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  uint8_t* begin() const { return base_ + page_; }
  uint8_t* end() const { return begin() + size_; }

  // Four places for `bytes`: at the first byte, one further, at the last byte, one before.
  static constexpr int kPlaces = 4;
  uint8_t* place(int which, size_t bytes) const {
    switch (which % kPlaces) {
      case 0:
        return begin();
      case 1:
        return begin() + 1;
      case 2:
        return end() - bytes;
      default:
        return end() - bytes - 1;
    }
  }

 private:
  uint8_t* base_ = nullptr;
  size_t page_ = 0;
  size_t size_ = 0;
};

// Fills the neighbourhood of a range, and tells whether it is as it was.
class Canary {
 public:
  Canary(const GuardedBuffer& buffer, uint8_t* range, size_t bytes)
      : before_(std::max(buffer.begin(), range - kWidth)),
        range_(range),
        range_end_(range + bytes),
        after_(std::min(buffer.end(), range_end_ + kWidth)) {
    std::memset(before_, kFill, static_cast<size_t>(after_ - before_));
  }
  bool intact() const {
    for (const uint8_t* p = before_; p != after_; ++p)
      if ((p < range_ || p >= range_end_) && *p != kFill) return false;
    return true;
  }

 private:
  static constexpr ptrdiff_t kWidth = 128;
  static constexpr uint8_t kFill = 0xA5;
  uint8_t* before_;
  uint8_t* range_;
  uint8_t* range_end_;
  uint8_t* after_;
};

// The instruction sets that kernels exist for and this machine has; the portable form is always
// one.
inline std::vector<int64_t> instruction_sets() {
  std::vector<int64_t> sets = {HWY_STATIC_TARGET};
  for (const int64_t target : {HWY_AVX2, HWY_AVX3})
    if ((hwy::SupportedTargets() & HWY_TARGETS & target) != 0) sets.push_back(target);
  return sets;
}

// Makes dispatch choose one of them while in scope.
class WithInstructionSet {
 public:
  explicit WithInstructionSet(int64_t target) { hwy::GetChosenTarget().Update(target); }
  ~WithInstructionSet() { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }
  WithInstructionSet(const WithInstructionSet&) = delete;
  WithInstructionSet& operator=(const WithInstructionSet&) = delete;
};

}  // namespace tessera::testing
