#include "tools/common/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "command_line/print.h"

namespace tessera::tools {
namespace {

struct Alike {
  int more = 0, last_line = 0;
};

// "pci 0000:4f:00.0: what is wrong": what is wrong.
std::string without_device(const std::string& text) {
  const size_t end = text.find(": ");
  return end == std::string::npos ? text : text.substr(end);
}

}  // namespace

void print_warnings(const topology::Machine& machine) {
  std::map<std::string, Alike> alike;
  for (const topology::Warning& warning : machine.warnings) {
    const auto [at, first] = alike.try_emplace(without_device(warning.text));
    at->second.more += first ? 0 : 1;
    at->second.last_line = std::max(at->second.last_line, warning.line);
  }
  for (const topology::Warning& warning : machine.warnings) {
    const auto at = alike.find(without_device(warning.text));
    if (at == alike.end()) continue;  // printed with the first of its kind
    const Alike& others = at->second;
    command_line::print(stderr, "{}:{}: {}{}\n", machine.source, warning.line, warning.text,
                        others.more == 0 ? std::string()
                                         : fmt::format(" (and {} more alike, to line {})",
                                                       others.more, others.last_line));
    alike.erase(at);
  }
}

}  // namespace tessera::tools
