// The value of NCCL_SOCKET_IFNAME: prefixes of interface names, separated by commas; ^ in front
// excludes instead, = (after it) wants whole names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class InterfaceFilter {
 public:
  // Empty text: every interface passes.
  explicit InterfaceFilter(std::string_view text);

  bool passes(std::string_view interface) const;
  // The text asks for `interface`; it is not merely not excluded.
  bool names(std::string_view interface) const;

 private:
  bool matches(std::string_view interface) const;

  std::vector<std::string> names_;
  bool exclude_ = false;
  bool exact_ = false;
};

}  // namespace tessera
