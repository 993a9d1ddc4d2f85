#include "transports/emulated/description.h"

#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/keyed_hash.h"
#include "topology/describe.h"
#include "topology/graph_of.h"
#include "topology/text.h"
#include "topology/xml_source.h"

namespace tessera::emulated {
namespace {

constexpr std::string_view kUniform = "uniform:";
constexpr int kMostHosts = 128;
constexpr double kMostSlower = 1e6;
constexpr double kMostRate = 1e5;      // 100 TB/s
constexpr double kLeastRate = 1e-6;    // 1 kB/s
constexpr double kMostLatency = 10e9;  // ns

struct Unit {
  std::string_view name;
  double factor;
};
// to bytes per nanosecond, and to nanoseconds; longer names first where one ends another
constexpr Unit kRates[] = {
    {"GB/s", 1}, {"MB/s", 1e-3}, {"kB/s", 1e-6}, {"Gb/s", 0.125}, {"B/s", 1e-9}};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}};

// One "key=value" of the text.
struct Item {
  std::string_view key, value;
  size_t at = 0;  // of the value
};

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Result<Description> parse() {
    std::string_view rest = text_;
    uniform_ = rest.starts_with(kUniform);
    if (uniform_) {
      rest.remove_prefix(kUniform.size());
    } else {
      const size_t end = std::min(rest.find(','), rest.size());
      result_.machine = std::string(rest.substr(0, end));
      rest.remove_prefix(end);
      if (result_.machine.empty()) return bad(0, "a file, or \"uniform:\"");
      if (rest.empty()) return result_;
      rest.remove_prefix(1);
    }
    for (;;) {
      const size_t end = std::min(rest.find(','), rest.size());
      if (Status status = item(rest.substr(0, end)); !status.ok()) return status;
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
    if (uniform_ && result_.rate == 0)
      return bad(text_.size(), "\"bandwidth=\", which uniform links need");
    return result_;
  }

 private:
  Status bad(size_t at, std::string_view allowed) const {
    return Status::error(
        Code::kInvalidUsage,
        "TESSERA_EMULATE=\"{}\" is not valid: at character {} (\"{}\") expected {}", text_, at + 1,
        text_.substr(std::min(at, text_.size())), allowed);
  }

  Status item(std::string_view text) {
    const auto at = static_cast<size_t>(text.data() - text_.data());
    const size_t equals = text.find('=');
    const Item item{text.substr(0, equals),
                    equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1),
                    at + std::min(equals, text.size() - 1) + 1};
    if (item.key == "slower") return number(item, 1, kMostSlower, result_.slower);
    if (uniform_) {
      if (item.key == "bandwidth")
        return quantity(item, kRates, kLeastRate, kMostRate, result_.rate);
      if (item.key == "latency") return latency(item);
      if (item.key == "fan_out") return fan_out(item);
      return bad(at, "bandwidth=, latency=, fan_out= or slower=");
    }
    if (item.key == "hosts") {
      double hosts = 1;
      Status status = number(item, 1, kMostHosts, hosts);
      result_.hosts = static_cast<int>(hosts);
      if (status.ok() && hosts != result_.hosts) status = bad(item.at, "a whole number");
      return status;
    }
    return bad(at, "hosts= or slower=");
  }

  Status number(const Item& item, double least, double most, double& value) const {
    const std::optional<double> read = topology::parse_real(item.value);
    if (!read || *read < least || *read > most)
      return bad(item.at, fmt::format("a number from {} to {}", least, most));
    value = *read;
    return {};
  }

  Status quantity(const Item& item, std::span<const Unit> units, double least, double most,
                  double& value) const {
    std::string names;
    for (const Unit& unit : units) {
      names += (names.empty() ? "" : ", ") + std::string(unit.name);
      if (!item.value.ends_with(unit.name)) continue;
      const std::string_view digits = item.value.substr(0, item.value.size() - unit.name.size());
      const std::optional<double> read = topology::parse_real(digits);
      if (!read || !(*read * unit.factor >= least && *read * unit.factor <= most)) break;
      value = *read * unit.factor;
      return {};
    }
    return bad(item.at, fmt::format("a number in a sensible range with a unit of {}", names));
  }

  Status latency(const Item& item) {
    double ns = 0;
    if (Status status = quantity(item, kTimes, 0, kMostLatency, ns); !status.ok()) return status;
    result_.latency = std::chrono::nanoseconds(std::llround(ns));
    return {};
  }

  Status fan_out(const Item& item) {
    std::string_view rest = item.value;
    result_.fan_out.clear();
    for (size_t at = item.at;;) {
      const size_t end = std::min(rest.find('/'), rest.size());
      double percent = 0;
      if (Status status = number({item.key, rest.substr(0, end), at}, 1, 100, percent);
          !status.ok())
        return status;
      result_.fan_out.push_back(percent / 100);
      if (end == rest.size()) return {};
      rest.remove_prefix(end + 1);
      at += end + 1;
    }
  }

  const std::string& text_;
  bool uniform_ = false;
  Description result_;
};

Status of_variable(const Status& status) {
  return Status(status.code(), "TESSERA_EMULATE: " + status.message() +
                                   "; it is a file, \"uniform:bandwidth=1GB/s,latency=5us\" or a "
                                   "synthetic machine of hwloc, \"pack:2 core:8 pu:1\"");
}

Result<Links> machine_links(const Description& description, int ranks) {
  const Result<topology::Described> described = topology::describe_machine(description.machine);
  if (!described.ok()) return described.status();
  topology::Graph graph = topology::graph_of(described->machine);
  if (description.hosts > 1) graph = topology::replicate(graph, description.hosts);
  const Result<std::vector<int>> nodes = topology::place_ranks(graph, ranks);
  if (!nodes.ok()) return nodes.status();
  if (Status status = topology::check_places(graph, nodes.value()); !status.ok()) return status;
  return links_on(graph, nodes.value());
}

}  // namespace

Result<Description> parse(const std::string& text) { return Parser(text).parse(); }

Result<Links> links_of(const std::string& text, int ranks) {
  const Result<Description> read = parse(text);
  if (!read.ok()) return read.status();
  const Description& description = read.value();
  Result<Links> links = description.machine.empty()
                            ? Result<Links>(uniform_links(ranks, description.rate,
                                                          description.latency, description.fan_out))
                            : machine_links(description, ranks);
  if (!links.ok()) return of_variable(links.status());
  return slowed(std::move(links).value(), description.slower);
}

std::string contents_digest(const std::string& text) {
  const Result<Description> read = parse(text);
  if (!read.ok()) return "none";
  const Result<std::string> file = read_file(read->machine, topology::kMostXmlBytes);
  return file.ok() ? fmt::format("digest {:016x}", short_hash(file.value())) : "none";
}

}  // namespace tessera::emulated
