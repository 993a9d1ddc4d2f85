#include "base/config.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/file.h"

namespace tessera {
namespace {

constexpr int64_t kMaxTimeoutMs = 1'000'000'000;  // eleven days; keeps every poll() time in an int
constexpr int64_t kMaxSpin = 1'000'000'000;
constexpr int64_t kMaxBytes = int64_t{1} << 20;
constexpr int64_t kMaxChannels = 64;
constexpr int64_t kMaxSockets = 64;        // of two ranks
constexpr int64_t kMaxSocketThreads = 16;  // as NCCL has it
constexpr int64_t kMaxPairs = 8;           // queue pairs of two ranks over one port
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

using Values = std::map<std::string, std::string>;

struct Setting {
  const char* name;
  bool shared;  // must be equal on all ranks
  Status (*set)(Config&, const char* name, const std::string& text);
  std::string (*get)(const Config&);
};

Status bad_value(const char* name, const std::string& text, std::string_view allowed) {
  return Status::error(Code::kInvalidUsage, "{}=\"{}\" is not valid: allowed is {}", name, text,
                       allowed);
}

// Decimal, or hexadecimal after 0x; the whole text must be the number.
std::optional<int64_t> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  if (text.empty() || text.front() == '-') return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return negative ? -value : value;
}

template <auto member, int64_t low, int64_t high>
Status set_integer(Config& config, const char* name, const std::string& text) {
  const std::optional<int64_t> value = parse_integer(text);
  if (!value || *value < low || *value > high) {
    return bad_value(name, text, fmt::format("a whole number from {} to {}", low, high));
  }
  config.*member = static_cast<std::remove_reference_t<decltype(config.*member)>>(*value);
  return {};
}

template <auto member>
Status set_size(Config& config, const char* name, const std::string& text) {
  const std::optional<int64_t> value = parse_integer(text);
  if (!value || *value < -1 || *value > kMaxBytes) {
    return bad_value(name, text,
                     fmt::format("a number of bytes up to {}, or -1 to let the library choose; "
                                 "no unit",
                                 kMaxBytes));
  }
  config.*member = *value;
  return {};
}

// As NCCL does: -2 means unset, more than 64 means 64, less than `least` means `least`.
template <auto member, int64_t least>
Status set_channels(Config& config, const char* name, const std::string& text) {
  const std::optional<int64_t> value = parse_integer(text);
  if (!value)
    return bad_value(name, text,
                     fmt::format("a whole number; {} to {} have a meaning", least, kMaxChannels));
  config.*member = *value == -2 ? -1 : static_cast<int>(std::clamp(*value, least, kMaxChannels));
  return {};
}

template <auto member>
Status set_flag(Config& config, const char* name, const std::string& text) {
  if (text != "0" && text != "1") return bad_value(name, text, "0 or 1");
  config.*member = text == "1";
  return {};
}

template <auto member>
Status set_text(Config& config, const char*, const std::string& text) {
  config.*member = text;
  return {};
}

Status set_timeout(Config& config, const char* name, const std::string& text) {
  const std::optional<int64_t> value = parse_integer(text);
  if (!value || *value < 1 || *value > kMaxTimeoutMs) {
    return bad_value(name, text, fmt::format("milliseconds from 1 to {}", kMaxTimeoutMs));
  }
  config.timeout = std::chrono::milliseconds(*value);
  return {};
}

Status set_slice(Config& config, const char* name, const std::string& text) {
  if (parse_integer(text) == 0) return bad_value(name, text, "-1, or at least one byte");
  return set_size<&Config::slice_bytes>(config, name, text);
}

Status set_socket_family(Config& config, const char* name, const std::string& text) {
  if (text != "AF_INET" && text != "AF_INET6") return bad_value(name, text, "AF_INET or AF_INET6");
  config.socket_family = text;
  return {};
}

// Names, each perhaps with ":port"; a port that is no number would silently mean all.
Status set_hca(Config& config, const char* name, const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = rest.substr(0, comma);
    const size_t colon = entry.find(':');
    if (colon != std::string_view::npos && parse_integer(entry.substr(colon + 1)).value_or(0) < 1) {
      return bad_value(name, text,
                       "device names separated by commas, each perhaps with :port, after ^ (all "
                       "but these), = (whole names) or both");
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  config.ib_hca = text;
  return {};
}

Status set_debug(Config& config, const char* name, const std::string& text) {
  static constexpr std::pair<std::string_view, log::Level> kLevels[] = {
      {"NONE", log::Level::kNone}, {"VERSION", log::Level::kVersion}, {"WARN", log::Level::kWarn},
      {"INFO", log::Level::kInfo}, {"ABORT", log::Level::kInfo},      {"TRACE", log::Level::kTrace},
  };
  std::string upper = text;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const auto& [word, level] : kLevels) {
    if (word != upper) continue;
    config.debug = level;
    return {};
  }
  return bad_value(name, text, "NONE, VERSION, WARN, INFO, ABORT or TRACE");
}

template <auto member>
std::string number_of(const Config& config) {
  return fmt::format("{}", static_cast<int64_t>(config.*member));
}

template <auto member>
std::string text_of(const Config& config) {
  return config.*member;
}

std::string timeout_of(const Config& config) { return fmt::format("{}", config.timeout.count()); }

std::string debug_of(const Config& config) {
  static constexpr const char* kNames[] = {"NONE", "VERSION", "WARN", "INFO", "TRACE"};
  return kNames[static_cast<int>(config.debug)];
}

constexpr Setting kSettings[] = {
    {"TESSERA_TIMEOUT_MS", false, set_timeout, timeout_of},
    {"TESSERA_ALGO", true, set_text<&Config::algorithm>, text_of<&Config::algorithm>},
    {"NCCL_ALGO", true, set_text<&Config::nccl_algorithms>, text_of<&Config::nccl_algorithms>},
    {"NCCL_PROTO", true, set_text<&Config::nccl_protocols>, text_of<&Config::nccl_protocols>},
    {"TESSERA_PROFILE", false, set_text<&Config::profile>, text_of<&Config::profile>},
    {"NCCL_TUNER_PLUGIN", false, set_text<&Config::tuner_plugin>, text_of<&Config::tuner_plugin>},
    {"NCCL_NET_PLUGIN", false, set_text<&Config::net_plugin>, text_of<&Config::net_plugin>},
    {"NCCL_NET", true, set_text<&Config::net>, text_of<&Config::net>},
    {"NCCL_TOPO_FILE", false, set_text<&Config::topology_file>, text_of<&Config::topology_file>},
    {"NCCL_TOPO_DUMP_FILE", false, set_text<&Config::topology_dump>,
     text_of<&Config::topology_dump>},
    {"NCCL_TOPO_DUMP_FILE_RANK", false, set_integer<&Config::topology_dump_rank, 0, kMaxInt>,
     number_of<&Config::topology_dump_rank>},
    {"NCCL_GRAPH_FILE", false, set_text<&Config::graph_file>, text_of<&Config::graph_file>},
    {"NCCL_GRAPH_DUMP_FILE", false, set_text<&Config::graph_dump>, text_of<&Config::graph_dump>},
    {"NCCL_GRAPH_DUMP_FILE_RANK", false, set_integer<&Config::graph_dump_rank, 0, kMaxInt>,
     number_of<&Config::graph_dump_rank>},
    {"NCCL_MIN_NCHANNELS", false, set_channels<&Config::min_channels, 0>,
     number_of<&Config::min_channels>},
    {"NCCL_MAX_NCHANNELS", false, set_channels<&Config::max_channels, 1>,
     number_of<&Config::max_channels>},
    {"NCCL_MIN_CTAS", false, set_channels<&Config::min_ctas, 1>, number_of<&Config::min_ctas>},
    {"NCCL_MAX_CTAS", false, set_channels<&Config::max_ctas, 1>, number_of<&Config::max_ctas>},
    {"TESSERA_LL_MAX", true, set_size<&Config::low_latency_max>,
     number_of<&Config::low_latency_max>},
    {"TESSERA_SLICE_BYTES", true, set_slice, number_of<&Config::slice_bytes>},
    {"TESSERA_SINGLE_COPY", true, set_flag<&Config::single_copy>, number_of<&Config::single_copy>},
    {"TESSERA_SHARE_MEMORY", true, set_flag<&Config::share_memory>,
     number_of<&Config::share_memory>},
    {"TESSERA_SPIN", false, set_integer<&Config::spin, -1, kMaxSpin>, number_of<&Config::spin>},
    {"TESSERA_EMULATE", true, set_text<&Config::emulate>, text_of<&Config::emulate>},
    {"NCCL_COMM_BLOCKING", false, set_integer<&Config::blocking, 0, 1>,
     number_of<&Config::blocking>},
    {"NCCL_SOCKET_IFNAME", false, set_text<&Config::socket_ifname>,
     text_of<&Config::socket_ifname>},
    {"NCCL_SOCKET_FAMILY", false, set_socket_family, text_of<&Config::socket_family>},
    {"NCCL_SOCKET_NTHREADS", false, set_integer<&Config::socket_threads, 1, kMaxSocketThreads>,
     number_of<&Config::socket_threads>},
    {"NCCL_NSOCKS_PERTHREAD", false, set_integer<&Config::sockets_per_thread, 1, kMaxSockets>,
     number_of<&Config::sockets_per_thread>},
    {"NCCL_IB_DISABLE", false, set_flag<&Config::ib_disabled>, number_of<&Config::ib_disabled>},
    {"NCCL_IB_HCA", false, set_hca, text_of<&Config::ib_hca>},
    {"NCCL_IB_GID_INDEX", false, set_integer<&Config::ib_gid_index, -1, 255>,
     number_of<&Config::ib_gid_index>},
    {"NCCL_IB_TIMEOUT", false, set_integer<&Config::ib_timeout, 0, 31>,
     number_of<&Config::ib_timeout>},
    {"NCCL_IB_RETRY_CNT", false, set_integer<&Config::ib_retries, 0, 7>,
     number_of<&Config::ib_retries>},
    {"NCCL_IB_TC", false, set_integer<&Config::ib_traffic_class, 0, 255>,
     number_of<&Config::ib_traffic_class>},
    {"NCCL_IB_SL", false, set_integer<&Config::ib_service_level, 0, 15>,
     number_of<&Config::ib_service_level>},
    {"NCCL_IB_QPS_PER_CONNECTION", false,
     set_integer<&Config::ib_pairs_per_connection, 1, kMaxPairs>,
     number_of<&Config::ib_pairs_per_connection>},
    {"NCCL_COMM_ID", false, set_text<&Config::comm_id>, text_of<&Config::comm_id>},
    {"NCCL_HOSTID", false, set_text<&Config::host_id>, text_of<&Config::host_id>},
    {"NCCL_DEBUG", false, set_debug, debug_of},
    {"NCCL_DEBUG_FILE", false, set_text<&Config::debug_file>, text_of<&Config::debug_file>},
};

// Adds the lines of a file; what is set already stays. `required`: the user named this file.
Status add_settings(const std::string& path, bool required, Values& values) {
  constexpr size_t kMostBytes = 1 << 20;
  if (!required && ::access(path.c_str(), F_OK) != 0) return {};
  const Result<std::string> text = read_file(path, kMostBytes);
  if (!text.ok()) {
    return Status::error(Code::kInvalidUsage, "{}{}", required ? "NCCL_CONF_FILE=" : "",
                         text.status().message());
  }
  std::istringstream file(text.value());
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Status::error(Code::kInvalidUsage, "{} line {}: \"{}\" is not VAR=VALUE", path, number,
                           line);
    }
    values.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return {};
}

Result<Values> read_sources() {
  Values values;
  for (const Setting& setting : kSettings) {
    if (const char* text = std::getenv(setting.name)) values.emplace(setting.name, text);
  }
  const char* named = std::getenv("NCCL_CONF_FILE");
  const char* home = std::getenv("HOME");
  Status status;
  if (named != nullptr && *named != '\0') {
    status = add_settings(named, true, values);
  } else if (home != nullptr) {
    status = add_settings(std::string(home) + "/.nccl.conf", false, values);
  }
  if (status.ok()) status = add_settings("/etc/nccl.conf", false, values);
  if (!status.ok()) return status;
  return values;
}

}  // namespace

Result<Config> Config::from_environment() {
  Result<Values> values = read_sources();
  if (!values.ok()) return values.status();
  Config config;
  for (const Setting& setting : kSettings) {
    const auto found = values->find(setting.name);
    if (found == values->end() || found->second.empty()) continue;
    if (Status status = setting.set(config, setting.name, found->second); !status.ok()) {
      return status;
    }
  }
  if (config.sockets_per_peer() > kMaxSockets) {
    return Status::error(Code::kInvalidUsage,
                         "NCCL_SOCKET_NTHREADS={} times NCCL_NSOCKS_PERTHREAD={} is {} sockets "
                         "between two ranks; at most {} are allowed",
                         config.socket_threads, config.sockets_per_thread,
                         config.sockets_per_peer(), kMaxSockets);
  }
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    config.cache_home = cache;
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    config.cache_home = std::string(home) + "/.cache";
  }
  return config;
}

Config::Texts Config::shared_settings() const {
  Texts shared;
  for (const Setting& setting : kSettings) {
    if (setting.shared) shared.emplace_back(setting.name, setting.get(*this));
  }
  shared.emplace_back("NCCL_TUNER_PLUGIN (in use)", plugin_in_use);
  shared.emplace_back("NCCL_NET_PLUGIN (in use)", net_plugin_in_use);
  shared.emplace_back("NCCL_GRAPH_FILE (contents)", graph_digest);
  shared.emplace_back("TESSERA_EMULATE (contents)", emulation_digest);
  return shared;
}

Config::Texts Config::host_settings() const {
  return {{"TESSERA_PROFILE (contents)", profile_digest},
          {"NCCL_TOPO_FILE (contents)", topology_digest}};
}

int Config::sockets_per_peer() const {
  return std::max(socket_threads, 1) * std::max(sockets_per_thread, 1);
}

void Config::log_changes(int rank) const {
  const Config defaults;
  for (const Setting& setting : kSettings) {
    const std::string value = setting.get(*this);
    if (value == setting.get(defaults)) continue;
    log::info(rank, "{} set to {} (default \"{}\")", setting.name, value, setting.get(defaults));
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name = std::string_view(*variable).substr(0, strcspn(*variable, "="));
    const auto is_it = [&](const Setting& setting) { return setting.name == name; };
    if (std::any_of(std::begin(kSettings), std::end(kSettings), is_it)) continue;
    if (name.starts_with("TESSERA_")) log::info(rank, "{}: there is no such setting", name);
    if (name.starts_with("NCCL_"))
      log::info(rank, "{}: has no meaning to this library, or is misspelt", name);
  }
  const int least = std::max(min_channels, min_ctas);
  if (least > 1)
    log::info(rank, "{}={} has no effect: a host rank drives one channel, in the thread that calls",
              min_ctas == least ? "NCCL_MIN_CTAS" : "NCCL_MIN_NCHANNELS", least);
}

bool in_environment(const char* name) { return std::getenv(name) != nullptr; }

}  // namespace tessera
