#include "topology/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/hash.h"

namespace tessera::topology {
namespace {

// Host, then nodes before links, then the kind.
using PartKey = std::tuple<int, int, int>;

struct Part {
  std::string name;
  int count = 0;
  Hash hash;
};

std::string plural(const char* noun, int host) {
  const char* ending = std::string(noun).ends_with("ch") ? "es" : "s";
  return host < 0 ? fmt::format("{}{}", noun, ending)
                  : fmt::format("{}{} of host {}", noun, ending, host);
}

void add_node(const Node& node, Hash& hash) {
  hash.text(node.name).text(node.label).number(node.numa);
  for (const double bandwidth : node.fan_out) hash.number(bandwidth);
}

}  // namespace

View view_of(const Graph& graph) {
  std::map<PartKey, Part> parts;
  for (const Node& node : graph.nodes) {
    Part& part = parts[{node.host, 0, static_cast<int>(node.kind)}];
    if (part.name.empty()) part.name = plural(to_string(node.kind), node.host);
    ++part.count;
    add_node(node, part.hash);
  }
  for (size_t i = 0; i < graph.links.size(); ++i) {
    const Link& link = graph.links[i];
    const Node &from = graph.nodes[link.from], &to = graph.nodes[link.to];
    Part& part = parts[{std::max(from.host, to.host), 1, static_cast<int>(link.kind)}];
    if (part.name.empty()) {
      part.name =
          fmt::format("{} links of host {}", to_string(link.kind), std::max(from.host, to.host));
    }
    // Both directions count as one
    if (link.reverse > static_cast<int>(i)) ++part.count;
    part.hash.text(from.name).text(to.name);
    part.hash.number(link.bandwidth).number(link.latency).number(link.count);
  }
  View view;
  Hash whole;
  for (auto& [key, part] : parts) {
    view.parts.push_back({part.name, part.count, part.hash.value()});
    whole.text(part.name);
    whole.number(part.hash.value());
  }
  view.fingerprint = whole.value();
  return view;
}

std::string view_difference(const View& a, const View& b) {
  if (a.fingerprint == b.fingerprint) return "";
  std::string text;
  const auto find = [](const View& view, const std::string& name) {
    return std::find_if(view.parts.begin(), view.parts.end(),
                        [&](const ViewPart& part) { return part.name == name; });
  };
  for (const ViewPart& part : a.parts) {
    const auto other = find(b, part.name);
    if (other == b.parts.end()) {
      text += fmt::format("{}: {} here, none there\n", part.name, part.count);
    } else if (other->count != part.count) {
      text += fmt::format("{}: {} here, {} there\n", part.name, part.count, other->count);
    } else if (other->fingerprint != part.fingerprint) {
      text += fmt::format("{}: {} here and there, but with other names or values\n", part.name,
                          part.count);
    }
  }
  for (const ViewPart& part : b.parts) {
    if (find(a, part.name) == a.parts.end()) {
      text += fmt::format("{}: none here, {} there\n", part.name, part.count);
    }
  }
  return text;
}

}  // namespace tessera::topology
