#include "tools/common/layout.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "plan/limits.h"
#include "topology/cpu_set.h"

namespace tessera::tools {
namespace {

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Empty: not of that form.
std::vector<int> of_product(std::string_view hosts, std::string_view ranks) {
  const std::optional<int> h = number(hosts), l = number(ranks);
  if (!h || !l || *h < 1 || *l < 1 || *h > kMaxRanks / *l) return {};
  std::vector<int> layout;
  for (int rank = 0; rank < *h * *l; ++rank) layout.push_back(rank / *l);
  return layout;
}

std::vector<int> of_list(std::string_view text) {
  std::vector<int> layout;
  for (size_t begin = 0; begin <= text.size() && layout.size() <= size_t{kMaxRanks};) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::optional<int> host = number(text.substr(begin, end - begin));
    if (!host) return {};
    layout.push_back(*host);
    begin = end + 1;
  }
  return layout;
}

}  // namespace

int usable_cores() { return std::max(topology::CpuSet::allowed().count(), 1); }

Result<std::vector<int>> layout_named(const std::string& text) {
  const std::string_view all = text;
  const size_t by = all.find('x');
  std::vector<int> layout = by == std::string_view::npos
                                ? of_list(all)
                                : of_product(all.substr(0, by), all.substr(by + 1));
  if (layout.size() == 1) layout.clear();  // a number of hosts, perhaps, and nothing of ranks
  if (layout.empty() || layout.size() > size_t{kMaxRanks}) {
    return Status::error(
        Code::kInvalidArgument,
        "\"{}\" is no layout of up to {} ranks: give the host of each rank, such as "
        "0,0,1,1, or hosts and ranks of each, such as 2x4",
        text, kMaxRanks);
  }
  return layout;
}

}  // namespace tessera::tools
