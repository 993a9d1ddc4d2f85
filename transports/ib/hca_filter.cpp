#include "transports/ib/hca_filter.h"

#include <algorithm>
#include <charconv>

namespace tessera::ib {

HcaFilter::HcaFilter(std::string_view text) {
  exclude_ = text.starts_with('^');
  if (exclude_) text.remove_prefix(1);
  exact_ = text.starts_with('=');
  if (exact_) text.remove_prefix(1);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    const size_t colon = std::min(entry.find(':'), entry.size());
    int port = 0;
    if (colon < entry.size())
      std::from_chars(entry.data() + colon + 1, entry.data() + entry.size(), port);
    if (colon > 0) entries_.push_back({std::string(entry.substr(0, colon)), port});
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

bool HcaFilter::matches(const Entry& entry, std::string_view device, int port) const {
  const bool named = exact_ ? device == entry.name : device.starts_with(entry.name);
  return named && (entry.port == 0 || entry.port == port);
}

bool HcaFilter::passes(std::string_view device, int port) const {
  if (entries_.empty()) return true;
  const bool found = std::any_of(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return matches(entry, device, port); });
  return found != exclude_;
}

}  // namespace tessera::ib
