#include "simulator/cost.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "plan/json_tree.h"

namespace tessera::simulator {
namespace {

using nlohmann::json;

enum class Kind : uint8_t { kTime, kBandwidth, kLimit };  // kLimit: a bandwidth, or 0: none

struct Field {
  const char* name;
  double RankCost::*value;
  Kind kind;
};

// Beyond these no machine is meant, and sums of times would lose what they are made of.
constexpr double kMostMicroseconds = 1e9, kLeastGbs = 1e-6, kMostGbs = 1e6;

constexpr Field kFields[] = {
    {"launch_us", &RankCost::launch_us, Kind::kTime},
    {"step_us", &RankCost::step_us, Kind::kTime},
    {"signal_us", &RankCost::signal_us, Kind::kTime},
    {"copy_gbs", &RankCost::copy_gbs, Kind::kBandwidth},
    {"reduce_gbs", &RankCost::reduce_gbs, Kind::kBandwidth},
    {"lane_gbs", &RankCost::lane_gbs, Kind::kLimit},
    {"switch_us", &RankCost::switch_us, Kind::kTime},
    {"tile_us", &RankCost::tile_us, Kind::kTime},
};
constexpr const char* kOverlapped = "overlapped";

Status fault(const std::string& place, const std::string& what) {
  return Status::error(Code::kInvalidArgument, "cost file: {} {}", place, what);
}

json saved(const RankCost& cost) {
  json tree = json::object();
  for (const Field& field : kFields) tree[field.name] = cost.*field.value;
  tree[kOverlapped] = cost.overlapped;
  return tree;
}

Status load_field(const std::string& place, const std::string& name, const json& value,
                  RankCost& cost) {
  if (name == kOverlapped) {
    if (!value.is_boolean()) return fault(place, "is not true or false");
    cost.overlapped = value.get<bool>();
    return {};
  }
  for (const Field& field : kFields) {
    if (name != field.name) continue;
    if (!value.is_number()) return fault(place, "is not a number");
    cost.*field.value = value.get<double>();
    return {};
  }
  return fault(place, "is no field of a cost file");
}

Status load_rank(const std::string& place, const json& tree, RankCost& cost) {
  if (!tree.is_object()) return fault(place, "is not an object");
  for (const auto& [name, value] : tree.items()) {
    if (Status status = load_field(place + "." + name, name, value, cost); !status.ok())
      return status;
  }
  return {};
}

std::string fault_of(const std::string& place, const RankCost& cost) {
  for (const Field& field : kFields) {
    const double value = cost.*field.value;
    const bool time = field.kind == Kind::kTime;
    if (field.kind == Kind::kLimit && value == 0) continue;
    const double least = time ? 0 : kLeastGbs, most = time ? kMostMicroseconds : kMostGbs;
    if (!(value >= least && value <= most))
      return fmt::format("{}.{} is {}, not {} to {} {}", place, field.name, value, least, most,
                         time ? "microseconds" : "GB/s");
  }
  return "";
}

}  // namespace

std::string save_cost(const Cost& cost) {
  const json tree = {{"format", "tessera-cost"},
                     {"version", 1},
                     {"host", saved(cost.host)},
                     {"gpu", saved(cost.gpu)}};
  return tree.dump(2) + "\n";
}

Result<Cost> load_cost(std::string_view text) {
  const Result<json> tree = parse_json(text, "cost file");
  if (!tree.ok()) return Status(Code::kInvalidArgument, tree.status().message());
  const json& root = tree.value();
  if (!root.is_object()) return fault("the text", "is not an object");
  if (!root.contains("format") || root["format"] != "tessera-cost")
    return fault("format", "is not \"tessera-cost\"");
  if (!root.contains("version") || root["version"] != 1) return fault("version", "is not 1");
  Cost cost;
  for (const auto& [name, value] : root.items()) {
    if (name == "format" || name == "version") continue;
    if (name != "host" && name != "gpu") return fault(name, "is no field of a cost file");
    Status status = load_rank(name, value, name == "host" ? cost.host : cost.gpu);
    if (!status.ok()) return status;
  }
  if (const std::string text_of_fault = fault_of(cost); !text_of_fault.empty())
    return Status(Code::kInvalidArgument, "cost file: " + text_of_fault);
  return cost;
}

std::string fault_of(const Cost& cost) {
  const std::string host = fault_of("host", cost.host);
  return host.empty() ? fault_of("gpu", cost.gpu) : host;
}

}  // namespace tessera::simulator
