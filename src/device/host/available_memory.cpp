#include "device/host/available_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace tessera::host {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The number that is all a file says; nothing for "max" and for absent files.
std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// The number after `key` in lines "key number ...".
std::optional<uint64_t> read_field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

uint64_t system_available(const std::string& proc) {
  const std::string path = proc + "/meminfo";
  const std::optional<uint64_t> available = read_field(path, "MemAvailable:");
  if (!available) return kUnlimited;
  return (*available + read_field(path, "SwapFree:").value_or(0)) * 1024;
}

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* prefix;  // of the fields of memory.stat that count the group's whole subtree
};
constexpr GroupFiles kVersion2 = {"/memory.max", "/memory.current", ""};
constexpr GroupFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"};

uint64_t group_available(const std::string& folder, const GroupFiles& files) {
  const std::optional<uint64_t> limit = read_number(folder + files.limit);
  const std::optional<uint64_t> usage = read_number(folder + files.usage);
  if (!limit || !usage) return kUnlimited;
  // The page cache of files counts as usage but gives way.
  const std::string prefix = files.prefix;
  const std::string stat = folder + "/memory.stat";
  const uint64_t cache = read_field(stat, prefix + "inactive_file").value_or(0) +
                         read_field(stat, prefix + "active_file").value_or(0);
  const uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

// The least over the group and all that enclose it, as far as they are visible below `root`.
uint64_t hierarchy_available(const std::string& root, std::string group, const GroupFiles& files) {
  uint64_t least = group_available(root, files);
  while (!group.empty() && group != "/") {
    least = std::min(least, group_available(root + group, files));
    group.resize(group.rfind('/'));
  }
  return least;
}

}  // namespace

uint64_t available_memory(const std::string& proc, const std::string& cgroups) {
  uint64_t least = system_available(proc);
  std::ifstream file(proc + "/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // hierarchy:controllers:/group
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (group.empty() || group[0] != '/') continue;
    if (controllers == ",,") {
      least = std::min(least, hierarchy_available(cgroups, group, kVersion2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, hierarchy_available(cgroups + "/memory", group, kVersion1));
    }
  }
  return least;
}

}  // namespace tessera::host
