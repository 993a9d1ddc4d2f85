// Attributes of the objects of hwloc documents.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "topology/hwloc_objects.h"

namespace tessera::topology::hwloc_document {
namespace {

constexpr uint64_t kUnknownIndex = UINT32_MAX;  // hwloc's "no OS index"

enum class Value { kText, kNumber, kSmall, kBusId, kPciType, kBridgePci, kBridgeType, kSpeed };

struct Rule {
  std::string_view name;
  Value value;
  uint64_t most = UINT64_MAX;
};

// All attributes that are copied as they are, when they fit. The order is hwloc's.
constexpr std::array<Rule, 17> kRules{{
    {"subtype", Value::kText},
    {"name", Value::kText},
    {"local_memory", Value::kNumber, INT64_MAX},
    {"cache_size", Value::kNumber, INT64_MAX},
    {"depth", Value::kNumber, 1000},
    {"cache_linesize", Value::kNumber, 1 << 20},
    {"cache_associativity", Value::kSmall, 1 << 20},
    {"cache_type", Value::kNumber, 2},
    {"kind", Value::kNumber, 10'000},
    {"subkind", Value::kNumber, UINT32_MAX},
    {"dont_merge", Value::kNumber, 1},
    {"bridge_type", Value::kBridgeType},
    {"bridge_pci", Value::kBridgePci},
    {"pci_busid", Value::kBusId},
    {"pci_type", Value::kPciType},
    {"pci_link_speed", Value::kSpeed},
    {"osdev_type", Value::kNumber, 5},
}};

bool fits(const Rule& rule, std::string_view text) {
  switch (rule.value) {
    case Value::kText:
      return true;
    case Value::kNumber:
      return parse_number(text, rule.most).has_value();
    case Value::kSmall:  // -1: fully associative
      return text == "-1" || parse_number(text, rule.most).has_value();
    case Value::kBusId:
      return is_pci_bus_id(text);
    case Value::kPciType:
      return is_pci_type(text);
    case Value::kBridgePci:
      return is_bridge_pci(text);
    case Value::kBridgeType:  // host or PCI above, always PCI below
      return text == "0-1" || text == "1-1";
    case Value::kSpeed:
      return parse_decimal(text).has_value();
  }
  return false;
}

// Without these hwloc takes uninitialised or zero values for real ones.
std::vector<const char*> required(std::string_view type, std::string_view bridge_type) {
  if (type == "PCIDev") return {"pci_busid", "pci_type"};
  if (type == "Bridge" && bridge_type == "0-1") return {"bridge_type", "bridge_pci"};
  if (type == "Bridge") return {"bridge_type", "bridge_pci", "pci_busid", "pci_type"};
  if (type == "OSDev") return {"osdev_type"};
  if (type.find("Cache") != std::string_view::npos) return {"depth"};
  return {};
}

}  // namespace

std::string_view type_of(pugi::xml_node object) { return object.attribute("type").value(); }

std::string name_of(pugi::xml_node object) {
  std::string name = printable(type_of(object));
  if (const auto index = object.attribute("os_index")) name += ' ' + printable(index.value());
  if (const auto bus = object.attribute("pci_busid")) name += ' ' + printable(bus.value());
  return name;
}

Status Objects::attributes(pugi::xml_node in, pugi::xml_node out) {
  const std::string type(type_of(in));
  if (const auto index = parse_number(in.attribute("os_index").value(), kUnknownIndex)) {
    out.append_attribute("os_index") = *index;
    by_os_.insert({type, *index});
  }
  auto gp = parse_number(in.attribute("gp_index").value(), kMostGp);
  if (gp && (*gp == 0 || !gp_.insert(*gp).second)) gp.reset();
  // hwloc would number the object itself, perhaps as one that comes later.
  if (!gp && schema_ == 2) gp = ++last_gp_;
  if (gp) {
    out.append_attribute("gp_index") = *gp;
    by_gp_.insert({type, *gp});
  }
  for (const Rule& rule : kRules) {
    const std::string name(rule.name);
    const pugi::xml_attribute attribute = in.attribute(name.c_str());
    if (!attribute) continue;
    const std::string text = printable(attribute.value());
    if (!fits(rule, text))
      return report_.error(in,
                           fmt::format("{}: {}=\"{}\" cannot be read", name_of(in), name, text));
    out.append_attribute(name.c_str()) = text.c_str();
  }
  for (const char* name : required(type, in.attribute("bridge_type").value()))
    if (!out.attribute(name))
      return report_.error(in, fmt::format("{} has no {}", name_of(in), name));
  return {};
}

}  // namespace tessera::topology::hwloc_document
