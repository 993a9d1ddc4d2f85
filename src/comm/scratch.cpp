#include "comm/scratch.h"

#include <algorithm>
#include <iterator>

namespace tessera {

std::optional<size_t> Scratch::borrow(size_t bytes) {
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [offset, room] = *gap;
    if (room < bytes) continue;
    gaps_.erase(gap);
    if (room > bytes) gaps_.emplace(offset + bytes, room - bytes);
    return offset;
  }
  // The lowest gap may be a part of what is needed.
  const bool lowest = !gaps_.empty() && gaps_.begin()->first == top_;
  const size_t more = bytes - (lowest ? gaps_.begin()->second : 0);
  if (more > top_ - std::max(bottom_, std::min(floor_, top_))) return {};
  if (lowest) gaps_.erase(gaps_.begin());
  top_ -= more;
  return top_;
}

void Scratch::release(size_t offset, size_t bytes) {
  auto next = gaps_.lower_bound(offset);
  if (next != gaps_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  gaps_.emplace(offset, bytes);
}

}  // namespace tessera
