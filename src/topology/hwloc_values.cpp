#include "topology/hwloc_values.h"

#include <charconv>
#include <cmath>

namespace tessera::topology {
namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Takes fitting characters off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool hex(size_t least, size_t most) {
    size_t n = 0;
    while (n < rest_.size() && is_hex(rest_[n])) ++n;
    if (n < least || n > most) return false;
    rest_.remove_prefix(n);
    return true;
  }
  bool literal(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace

std::optional<uint64_t> parse_number(std::string_view text, uint64_t most) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value > most) return std::nullopt;
  return value;
}

// Not by hwloc_bitmap_sscanf(), which aborts on some texts.
std::optional<Bitmap> parse_bitmap(std::string_view text) {
  constexpr std::string_view kInfinite = "0xf...f";
  constexpr size_t kMostWords = CpuSet::kMost / 32;
  const bool infinite = text.starts_with(kInfinite);
  if (infinite) text.remove_prefix(kInfinite.size());
  if (infinite && !text.empty() && text.front() != ',') return std::nullopt;
  if (infinite && !text.empty()) text.remove_prefix(1);

  std::vector<uint32_t> words;  // most significant first
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (word.starts_with("0x")) word.remove_prefix(2);
    uint32_t value = 0;  // of an empty word
    const char* end = word.data() + word.size();
    if (!word.empty()) {
      const auto [stop, error] = std::from_chars(word.data(), end, value, 16);
      if (error != std::errc() || stop != end || word.size() > 8) return std::nullopt;
    }
    words.push_back(value);
    if (words.size() > kMostWords) return std::nullopt;
  }
  Bitmap bits;
  unsigned first = 0;
  for (auto word = words.rbegin(); word != words.rend(); ++word, first += 32)
    for (unsigned bit = 0; bit < 32; ++bit)
      if (((*word >> bit) & 1) != 0) hwloc_bitmap_set(bits.get(), first + bit);
  constexpr int kNoEnd = -1;
  if (infinite && hwloc_bitmap_set_range(bits.get(), first, kNoEnd) != 0) throw std::bad_alloc();
  return bits;
}

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  if (value < 0 || value > 1e9) return std::nullopt;
  return value;
}

bool is_pci_bus_id(std::string_view text) {
  Scanner s(text);
  return s.hex(1, 8) && s.literal(":") && s.hex(1, 2) && s.literal(":") && s.hex(1, 2) &&
         s.literal(".") && s.hex(1, 1) && s.done();
}

bool is_pci_type(std::string_view text) {
  Scanner s(text);
  return s.hex(1, 4) && s.literal(" [") && s.hex(1, 4) && s.literal(":") && s.hex(1, 4) &&
         s.literal("] [") && s.hex(1, 4) && s.literal(":") && s.hex(1, 4) && s.literal("] ") &&
         s.hex(1, 2) && s.done();
}

bool is_bridge_pci(std::string_view text) {
  Scanner s(text);
  return s.hex(1, 8) && s.literal(":[") && s.hex(1, 2) && s.literal("-") && s.hex(1, 2) &&
         s.literal("]") && s.done();
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return out;
}

}  // namespace tessera::topology
