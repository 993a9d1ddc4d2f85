#include "topology/cpu_set.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "topology/text.h"

namespace tessera::topology {
namespace {

constexpr int kBits = 64;

void trim(std::vector<uint64_t>& words) {
  while (!words.empty() && words.back() == 0) words.pop_back();
}

}  // namespace

std::optional<CpuSet> CpuSet::parse(const std::string& mask) {
  const std::string_view text = stripped(mask);
  if (text.empty()) return std::nullopt;
  CpuSet set;
  int bit = 0;
  // From the last word, which holds the lowest processors.
  for (size_t end = text.size();;) {
    const size_t comma = end == 0 ? std::string_view::npos : text.rfind(',', end - 1);
    const size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
    const std::string_view digits = text.substr(begin, end - begin);
    const std::optional<uint64_t> word =
        digits.size() <= 8 ? parse_hex(digits) : std::optional<uint64_t>();
    if (!word) return std::nullopt;
    for (uint64_t rest = *word; rest != 0; rest &= rest - 1) {
      const int processor = bit + std::countr_zero(rest);
      if (processor >= kMost) return std::nullopt;
      set.add(processor);
    }
    if (begin == 0) return set;
    end = comma;
    bit = std::min(bit + 32, kMost);  // leading words of zeros, however many, change nothing
  }
}

CpuSet CpuSet::allowed() {
  CpuSet set;
  // The kernel refuses masks shorter than its own, whose length it does not tell.
  for (int most = 1024; most <= kMost; most *= 2) {
    const size_t bytes = CPU_ALLOC_SIZE(most);
    std::vector<unsigned long> words(bytes / sizeof(unsigned long));
    auto* mask = reinterpret_cast<cpu_set_t*>(words.data());
    if (sched_getaffinity(0, bytes, mask) == 0) {
      for (int i = 0; i < most; ++i)
        if (CPU_ISSET_S(i, bytes, mask)) set.add(i);
      return set;
    }
    if (errno != EINVAL) return set;
  }
  return set;
}

void CpuSet::add(int processor) {
  if (processor < 0 || processor >= kMost) return;
  const auto word = static_cast<size_t>(processor / kBits);
  if (word >= words_.size()) words_.resize(word + 1);
  words_[word] |= uint64_t{1} << (processor % kBits);
}

bool CpuSet::has(int processor) const {
  if (processor < 0) return false;
  const auto word = static_cast<size_t>(processor / kBits);
  return word < words_.size() && ((words_[word] >> (processor % kBits)) & 1) != 0;
}

int CpuSet::count() const {
  int count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

std::vector<int> CpuSet::list() const {
  std::vector<int> processors;
  for (size_t i = 0; i < words_.size(); ++i)
    for (uint64_t rest = words_[i]; rest != 0; rest &= rest - 1)
      processors.push_back(static_cast<int>(i) * kBits + std::countr_zero(rest));
  return processors;
}

CpuSet CpuSet::operator&(const CpuSet& other) const {
  CpuSet both;
  both.words_.resize(std::min(words_.size(), other.words_.size()));
  for (size_t i = 0; i < both.words_.size(); ++i) both.words_[i] = words_[i] & other.words_[i];
  trim(both.words_);
  return both;
}

CpuSet CpuSet::operator|(const CpuSet& other) const {
  CpuSet either = words_.size() < other.words_.size() ? other : *this;
  const CpuSet& shorter = words_.size() < other.words_.size() ? *this : other;
  for (size_t i = 0; i < shorter.words_.size(); ++i) either.words_[i] |= shorter.words_[i];
  return either;
}

bool CpuSet::contains(const CpuSet& other) const { return (*this & other) == other; }

bool CpuSet::operator==(const CpuSet& other) const { return words_ == other.words_; }

std::string CpuSet::mask() const {
  std::string text;
  for (size_t i = words_.size() * 2; i-- > 0;) {
    const auto word = static_cast<uint32_t>(words_[i / 2] >> (i % 2 * 32));
    if (text.empty() && word == 0 && i > 0) continue;
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",", word);
  }
  return text.empty() ? "00000000" : text;
}

std::string CpuSet::ranges() const {
  std::string text;
  const std::vector<int> processors = list();
  for (size_t i = 0; i < processors.size();) {
    size_t last = i;
    while (last + 1 < processors.size() && processors[last + 1] == processors[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text += std::to_string(processors[i]);
    if (last > i) text += fmt::format("-{}", processors[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace tessera::topology
