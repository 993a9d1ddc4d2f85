#include "topology/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace tessera::topology {
namespace {

template <class T, class... Format>
std::optional<T> whole(std::string_view text, Format... format) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, format...);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool has_hex_prefix(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

}  // namespace

std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  return whole<int64_t>(stripped(text), 10);
}

std::optional<uint64_t> parse_hex(std::string_view text) { return whole<uint64_t>(text, 16); }

std::optional<uint64_t> parse_unsigned(std::string_view text) {
  text = stripped(text);
  return has_hex_prefix(text) ? parse_hex(text.substr(2)) : whole<uint64_t>(text, 10);
}

std::optional<double> parse_real(std::string_view text) {
  const std::optional<double> value = whole<double>(stripped(text), std::chars_format::general);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> parse_link_speed(std::string_view text) {
  text = stripped(text);
  const size_t unit = text.find("GT/s");
  if (unit == std::string_view::npos) return std::nullopt;
  const std::optional<double> speed = parse_real(text.substr(0, unit));
  // Beyond 1000 GT/s it is no speed of a lane, and bandwidths computed from it would be absurd.
  return speed && *speed > 0 && *speed <= 1000 ? speed : std::nullopt;
}

bool usual_link_speed(std::string_view text) {
  text = stripped(text);
  const size_t unit = text.find(" GT/s");
  if (unit == std::string_view::npos) return false;
  const std::string_view tail = text.substr(unit + 5);
  return tail.empty() || tail == " PCIe";
}

std::optional<uint32_t> parse_pci_class(std::string_view text) {
  text = stripped(text);
  if (has_hex_prefix(text)) text.remove_prefix(2);
  const std::optional<uint64_t> value = parse_hex(text);
  if (!value || *value > 0xffffff) return std::nullopt;
  return static_cast<uint32_t>(text.size() == 4 ? *value << 8 : *value);
}

std::string shown(std::string_view text) {
  constexpr size_t kMost = 40;
  std::string out = "\"";
  for (const char c : text.substr(0, kMost))
    out += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  out += text.size() > kMost ? fmt::format("...\" ({} characters)", text.size()) : "\"";
  return out;
}

}  // namespace tessera::topology
