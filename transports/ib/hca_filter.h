// The value of NCCL_IB_HCA: prefixes of device names, each with a port number after a colon if only
// that port is meant, separated by commas; ^ in front excludes instead, = (after it) wants whole
// names.
//
// Thread safety: a value type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::ib {

class HcaFilter {
 public:
  // Empty text: every port passes.
  explicit HcaFilter(std::string_view text);

  bool passes(std::string_view device, int port) const;

 private:
  struct Entry {
    std::string name;
    int port;  // 0: any
  };
  bool matches(const Entry& entry, std::string_view device, int port) const;

  std::vector<Entry> entries_;
  bool exclude_ = false;
  bool exact_ = false;
};

}  // namespace tessera::ib
