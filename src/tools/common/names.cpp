#include "tools/common/names.h"

#include <cctype>

namespace tessera::tools {
namespace {

std::string key(const std::string& name) {
  std::string result;
  for (const unsigned char c : name) {
    if (std::isalnum(c) != 0) result += static_cast<char>(std::tolower(c));
  }
  return result;
}

}  // namespace

std::optional<Collective> collective_named(const std::string& name) {
  for (int c = 0; c < kCollectives; ++c) {
    if (key(name) == key(to_string(static_cast<Collective>(c)))) return static_cast<Collective>(c);
  }
  return std::nullopt;
}

}  // namespace tessera::tools
