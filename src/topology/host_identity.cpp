#include "topology/host_identity.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <fstream>

namespace tessera::topology {
namespace {

// A number that no other process has but its children, which share its host.
std::string drawn_once() {
  static const std::string kDrawn = [] {
    uint64_t words[2] = {};
    if (::getrandom(words, sizeof(words), 0) != static_cast<ssize_t>(sizeof(words))) {
      // Never seen since Linux 3.17; time and address space layout are the next best.
      words[0] = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
      words[1] = reinterpret_cast<uint64_t>(&words);
    }
    return fmt::format("unknown-{:016x}{:016x}", words[0], words[1]);
  }();
  return kDrawn;
}

// Empty unless it has the form of a UUID that is not zero: a sandbox may have any text there.
std::string boot_id(const std::string& proc) {
  std::ifstream file(proc + "/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  constexpr size_t kLength = 36;
  if (text.size() != kLength) return {};
  const bool zero =
      std::all_of(text.begin(), text.end(), [](char c) { return c == '0' || c == '-'; });
  const bool digits = text.find_first_not_of("0123456789abcdefABCDEF-") == std::string::npos;
  return digits && !zero ? text : std::string();
}

// The calling thread's: it may have entered another than its process.
std::string namespace_of(const std::string& proc, const char* kind) {
  for (const char* self : {"thread-self", "self"}) {
    struct stat info {};
    if (::stat(fmt::format("{}/{}/ns/{}", proc, self, kind).c_str(), &info) == 0)
      return fmt::format("{}:{}", info.st_dev, info.st_ino);
  }
  return {};
}

std::string or_drawn(const std::string& text) { return text.empty() ? drawn_once() : text; }

}  // namespace

std::string host_token(const std::string& proc) {
  utsname names{};
  const bool named = ::uname(&names) == 0;
  return fmt::format("boot={};net={};name={}", or_drawn(boot_id(proc)),
                     or_drawn(namespace_of(proc, "net")), named ? names.nodename : "");
}

}  // namespace tessera::topology
