#include "base/interface_filter.h"

#include <algorithm>

namespace tessera {

InterfaceFilter::InterfaceFilter(std::string_view text) {
  exclude_ = text.starts_with('^');
  if (exclude_) text.remove_prefix(1);
  exact_ = text.starts_with('=');
  if (exact_) text.remove_prefix(1);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) names_.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

bool InterfaceFilter::matches(std::string_view interface) const {
  return std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
    return exact_ ? interface == name : interface.starts_with(name);
  });
}

bool InterfaceFilter::passes(std::string_view interface) const {
  return names_.empty() || matches(interface) != exclude_;
}

bool InterfaceFilter::names(std::string_view interface) const {
  return !exclude_ && matches(interface);
}

}  // namespace tessera
