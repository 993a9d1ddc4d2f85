// A set of processor numbers.
//
// Thread safety: a value type. Text form: as Linux and NCCL files have it, hexadecimal words of 32
// bits, most significant first, separated by commas; a word may have fewer than 8 digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::topology {

class CpuSet {
 public:
  static constexpr int kMost =
      1 << 16;  // larger numbers are refused by parse() and ignored by add()

  // Empty when the text is no mask.
  static std::optional<CpuSet> parse(const std::string& mask);
  // The processors that the calling thread may use, as the kernel says.
  static CpuSet allowed();

  void add(int processor);
  bool has(int processor) const;
  int count() const;
  bool empty() const { return count() == 0; }
  std::vector<int> list() const;

  CpuSet operator&(const CpuSet& other) const;
  CpuSet operator|(const CpuSet& other) const;
  bool contains(const CpuSet& other) const;
  bool operator==(const CpuSet& other) const;

  std::string mask() const;    // "ffffffff,0000000f"
  std::string ranges() const;  // "0-3,8"

 private:
  std::vector<uint64_t> words_;  // no trailing zero words
};

}  // namespace tessera::topology
