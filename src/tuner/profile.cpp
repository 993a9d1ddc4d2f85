#include "tuner/profile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "plan/json_tree.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr int kOldest = 1, kVersion = 2;
constexpr size_t kMostBytes = size_t{1} << 40, kLeastSlice = 64, kMostSlice = size_t{1} << 30;
constexpr double kMostMicroseconds = 1e12;

Status bad(const std::string& source, const std::string& where, const std::string& what) {
  return Status::error(Code::kInvalidUsage, "{}: {}: {}", source, where, what);
}

std::optional<Collective> collective_named(const std::string& name) {
  for (int c = 0; c < kCollectives; ++c) {
    if (name == to_string(static_cast<Collective>(c))) return static_cast<Collective>(c);
  }
  return std::nullopt;
}

bool known_algorithm(Collective collective, const std::string& name) {
  for (const Algorithm& algorithm : algorithms(collective)) {
    if (algorithm.name == name) return true;
  }
  return false;
}

Status only_fields(const json& object, const std::set<std::string>& allowed,
                   const std::string& source, const std::string& where) {
  if (!object.is_object()) return bad(source, where, "is no object");
  for (const auto& [key, value] : object.items()) {
    if (!allowed.contains(key)) return bad(source, where, fmt::format("unknown field \"{}\"", key));
  }
  for (const std::string& key : allowed) {
    if (!object.contains(key)) return bad(source, where, fmt::format("\"{}\" is missing", key));
  }
  return {};
}

// ["all-reduce", "staged", "ring", 2, 4096, 12.5, 8192]: one line a sample, so that people can read
// it. The last one, slices other than the rule's, is left out where there are none.
Result<Sample> parse_sample(const json& row, const std::string& source, const std::string& where) {
  if (!row.is_array() || row.size() < 6 || row.size() > 7 || !row[0].is_string() ||
      !row[1].is_string() || !row[2].is_string() || !row[3].is_number_integer() ||
      !row[4].is_number_unsigned() || !row[5].is_number() || !row.back().is_number()) {
    return bad(source, where,
               "is not [collective, protocol, algorithm, ranks, bytes, microseconds, and maybe "
               "bytes of slices]");
  }
  Sample sample;
  const auto collective = collective_named(row[0]);
  if (!collective) return bad(source, where, fmt::format("unknown collective {}", row[0].dump()));
  sample.collective = *collective;
  const auto protocol = protocol_named(row[1].get<std::string>());
  if (!protocol) return bad(source, where, fmt::format("unknown protocol {}", row[1].dump()));
  sample.protocol = *protocol;
  sample.algorithm = row[2];
  if (!known_algorithm(sample.collective, sample.algorithm))
    return bad(source, where, fmt::format("{} has no algorithm {}", row[0].dump(), row[2].dump()));
  // Compared before it is an int: that would cut it.
  if (row[3] < 1 || row[3] > 1 << 16) return bad(source, where, "ranks out of range");
  sample.ranks = row[3];
  sample.block_bytes = row[4];
  sample.microseconds = row[5];
  if (sample.block_bytes == 0 || !(sample.microseconds > 0))
    return bad(source, where, "bytes and microseconds must be above 0");
  if (sample.block_bytes > kMostBytes || sample.microseconds > kMostMicroseconds)
    return bad(source, where, "more bytes or microseconds than any machine takes");
  if (row.size() == 6) return sample;
  if (sample.protocol != Protocol::kStaged || !row[6].is_number_unsigned() ||
      row[6] < kLeastSlice || row[6] > kMostSlice)
    return bad(source, where,
               fmt::format("slices are of staged candidates, and of {} to {} bytes", kLeastSlice,
                           kMostSlice));
  sample.slot_bytes = row[6];
  return sample;
}

uint64_t hash_of(const std::string& text) { return Hash().bytes(text.data(), text.size()).value(); }

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name") || line.starts_with("CPU part"))
      return line.substr(colon + 2);
  }
  return "unknown processor";
}

int numa_nodes() {
  int nodes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && name.size() > 4 && std::isdigit(name[4]) != 0) ++nodes;
  }
  return std::max(nodes, 1);
}

}  // namespace

Result<Profile> parse_profile(std::string_view text, const std::string& source) {
  Result<json> parsed = parse_json(text, source);
  if (!parsed.ok()) return Status(Code::kInvalidUsage, parsed.status().message());
  const json& root = parsed.value();
  if (Status s = only_fields(root, {"tessera_profile", "machine", "about", "samples"}, source,
                             "the profile");
      !s.ok())
    return s;
  const json& version = root["tessera_profile"];
  if (!version.is_number_integer() || version < kOldest || version > kVersion) {
    return bad(source, "tessera_profile",
               fmt::format("version {}; this library reads versions {} to {}: make a new profile "
                           "with tessera-tune",
                           version.dump(), kOldest, kVersion));
  }
  if (!root["machine"].is_string() || !root["about"].is_string() || !root["samples"].is_array())
    return bad(source, "the profile", "machine and about must be texts, samples a list");
  Profile profile{root["machine"], root["about"], {}};
  std::set<std::tuple<int, int, std::string, int, size_t, size_t>> seen;
  for (size_t i = 0; i < root["samples"].size(); ++i) {
    const std::string where = fmt::format("samples[{}]", i);
    Result<Sample> sample = parse_sample(root["samples"][i], source, where);
    if (!sample.ok()) return sample.status();
    const Sample& s = sample.value();
    if (!seen.emplace(static_cast<int>(s.collective), static_cast<int>(s.protocol), s.algorithm,
                      s.ranks, s.block_bytes, s.slot_bytes)
             .second)
      return bad(source, where, "occurs twice");
    profile.samples.push_back(std::move(sample).value());
  }
  return profile;
}

std::string to_json(const Profile& profile) {
  std::string text = fmt::format(
      "{{\n  \"tessera_profile\": {},\n  \"machine\": {},\n  \"about\": {},\n  \"samples\": [",
      kVersion, json(profile.machine).dump(), json(profile.about).dump());
  const char* separator = "\n";
  for (const Sample& sample : profile.samples) {
    text +=
        fmt::format("{}    [\"{}\", \"{}\", \"{}\", {}, {}, {:.4g}{}]", separator,
                    to_string(sample.collective), to_string(sample.protocol), sample.algorithm,
                    sample.ranks, sample.block_bytes, sample.microseconds,
                    sample.slot_bytes > 0 ? fmt::format(", {}", sample.slot_bytes) : std::string());
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

Result<Profile> load_profile(const std::string& path) {
  constexpr size_t kMostBytes = 64 << 20;
  const Result<std::string> text = read_file(path, kMostBytes);
  if (!text.ok()) return Status::error(Code::kInvalidUsage, "profile {}", text.status().message());
  return parse_profile(text.value(), "profile " + path);
}

namespace {

namespace fs = std::filesystem;

// What links lead to, the last of which may be missing: that is replaced, not the link.
fs::path behind_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel has it
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const fs::path next = fs::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / next;  // or just the next, if it is absolute
  }
  return path;
}

// A new file beside the target, in a folder that is made if it is missing.
Result<std::pair<Fd, std::string>> partial_file(const std::string& path, const fs::path& target) {
  std::error_code error;
  const auto kind = fs::status(target, error).type();
  if (kind != fs::file_type::not_found && kind != fs::file_type::regular)
    return Status::error(Code::kInvalidArgument, "profile {}: is no regular file", path);
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  if (error) return Status::error(Code::kSystem, "profile {}: {}", path, error.message());
  constexpr int kMode = 0666;
  std::string partial = fmt::format("{}.{}", target.string(), getpid());
  Fd fd(open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
  if (!fd.valid())
    return Status::error(Code::kSystem, "profile {}: {}: {}", path, partial, std::strerror(errno));
  return std::pair(std::move(fd), std::move(partial));
}

// Closed afterwards, which may be when a full disk shows.
bool write_all(Fd fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return false;
    done += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
  return close(fd.release()) == 0;
}

}  // namespace

Status can_save_profile(const std::string& path) {
  const Result<std::pair<Fd, std::string>> made = partial_file(path, behind_links(path));
  if (made.ok()) unlink(made.value().second.c_str());
  return made.status();
}

Status save_profile(const Profile& profile, const std::string& path) {
  const fs::path target = behind_links(path);
  Result<std::pair<Fd, std::string>> made = partial_file(path, target);
  if (!made.ok()) return made.status();
  const std::string& partial = made.value().second;
  Status status;
  if (!write_all(std::move(made.value().first), to_json(profile)) ||
      rename(partial.c_str(), target.c_str()) != 0) {
    status = Status::error(Code::kSystem, "profile {}: cannot be written: {}", path,
                           std::strerror(errno));
    unlink(partial.c_str());
  }
  return status;
}

std::string machine_in_words() {
  return fmt::format("{}, {} cores, {} NUMA node{}, second-level cache {} KiB, third {} KiB",
                     cpu_model(), sysconf(_SC_NPROCESSORS_CONF), numa_nodes(),
                     numa_nodes() == 1 ? "" : "s", sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024,
                     sysconf(_SC_LEVEL3_CACHE_SIZE) / 1024);
}

// Asked for more than once by every communicator, and the machine stays what it is.
std::string machine_fingerprint() {
  static const std::string fingerprint = fmt::format("{:016x}", hash_of(machine_in_words()));
  return fingerprint;
}

std::string profile_path(const std::string& cache_home) {
  if (cache_home.empty()) return {};
  return fmt::format("{}/tessera/{}.json", cache_home, machine_fingerprint());
}

// Of the times as they are compared, not as they are printed.
std::string digest(const Profile* profile) {
  if (profile == nullptr) return "none";
  Hash hash;
  hash.text(to_json(*profile));
  for (const Sample& sample : profile->samples)
    hash.bytes(&sample.microseconds, sizeof sample.microseconds);
  return fmt::format("{:016x}", hash.value());
}

Result<std::shared_ptr<const Profile>> find_profile(const Config& config) {
  std::shared_ptr<const Profile> none;
  if (config.profile == "none") return none;
  std::string path = config.profile;
  if (path.empty()) {
    path = profile_path(config.cache_home);
    if (path.empty() || access(path.c_str(), F_OK) != 0) return none;
  }
  Result<Profile> profile = load_profile(path);
  if (!profile.ok()) return profile.status();
  if (profile->machine != machine_fingerprint())
    log::warn(-1, "profile {} was measured on another machine ({}): its times may mislead", path,
              profile->about);
  return std::make_shared<const Profile>(std::move(profile).value());
}

}  // namespace tessera
