#include "tools/common/names.h"

#include <cctype>
#include <vector>

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

Result<Collective> collective_named(const std::string& name, std::span<const Collective> allowed) {
  std::vector<Collective> all(allowed.begin(), allowed.end());
  for (int c = 0; c < kCollectives && allowed.empty(); ++c)
    all.push_back(static_cast<Collective>(c));
  std::string names;
  for (const Collective collective : all) {
    if (key(name) == key(to_string(collective))) return collective;
    names += (names.empty() ? "" : ", ") + std::string(to_string(collective));
  }
  return Status::error(Code::kInvalidArgument, "no collective{} is called \"{}\"; there are {}",
                       allowed.empty() ? "" : " here", name, names);
}

}  // namespace tessera::tools
