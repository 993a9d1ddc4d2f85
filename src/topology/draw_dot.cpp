#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "topology/draw.h"

namespace tessera::topology {
namespace {

constexpr size_t kMostRingsDrawn = 8;

const char* colour_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink:
      return "#76b900";
    case LinkKind::kXgmi:
      return "#ed1c24";
    case LinkKind::kC2c:
      return "#00a0a0";
    case LinkKind::kCache:
      return "#9aa7b0";
    case LinkKind::kMemory:
      return "#607080";
    case LinkKind::kPcie:
      return "#3060c0";
    case LinkKind::kSmp:
      return "#303030";
    case LinkKind::kNetwork:
      return "#c07000";
    case LinkKind::kLocal:
      return "#b0b0b0";
  }
  return "#000000";
}

const char* shape_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::kGpu:
      return "box, style=filled, fillcolor=\"#dff0c0\"";
    case NodeKind::kCpu:
      return "box, style=filled, fillcolor=\"#d8e0ff\"";
    case NodeKind::kNvSwitch:
      return "hexagon";
    case NodeKind::kPciSwitch:
      return "diamond";
    case NodeKind::kNic:
      return "house";
    case NodeKind::kFabric:
      return "ellipse";
    default:
      return "oval";
  }
}

// Within a quoted string of dot
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += c;
    }
  }
  return out;
}

void node_line(const Graph& graph, int id, const std::map<int, std::vector<int>>& ranks,
               const std::string& indent, std::string& out) {
  const Node& node = graph.nodes[id];
  std::string label = quoted(node.name);
  if (!node.label.empty()) label += "\\n" + quoted(node.label);
  const auto at = ranks.find(id);
  if (at != ranks.end()) {
    label += at->second.size() == 1 ? "\\nrank" : "\\nranks";
    for (const int rank : at->second) label += fmt::format(" {}", rank);
  }
  out += fmt::format("{}n{} [label=\"{}\", shape={}];\n", indent, id, label, shape_of(node.kind));
}

void host_cluster(const Graph& graph, int host, const std::map<int, std::vector<int>>& ranks,
                  std::string& out) {
  std::map<int64_t, std::vector<int>> by_numa;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].host == host) by_numa[graph.nodes[i].numa].push_back(static_cast<int>(i));
  }
  out += fmt::format("  subgraph cluster_h{} {{\n    label=\"host {}\";\n", host, host);
  for (const auto& [numa, nodes] : by_numa) {
    const bool known = numa >= 0;
    const char* indent = known ? "      " : "    ";
    if (known) {
      out += fmt::format("    subgraph cluster_h{}_n{} {{\n      label=\"NUMA node {}\";\n", host,
                         numa, numa);
    }
    for (const int node : nodes) node_line(graph, node, ranks, indent, out);
    if (known) out += "    }\n";
  }
  out += "  }\n";
}

void link_lines(const Graph& graph, std::string& out) {
  for (size_t i = 0; i < graph.links.size(); ++i) {
    const Link& link = graph.links[i];
    if (link.reverse < static_cast<int>(i)) continue;
    std::string label = fmt::format("{:g}", link.bandwidth);
    if (link.count > 1) label += fmt::format(" ({}x)", link.count);
    out += fmt::format("  n{} -> n{} [dir=none, color=\"{}\", label=\"{}\", tooltip=\"{}\"];\n",
                       link.from, link.to, colour_of(link.kind), label, to_string(link.kind));
  }
}

void ring_lines(const Layout& layout, std::string& out) {
  constexpr std::array<const char*, kMostRingsDrawn> kColours = {
      "#e41a1c", "#377eb8", "#4daf4a", "#984ea3", "#ff7f00", "#a65628", "#f781bf", "#666666"};
  for (size_t i = 0; i < std::min(layout.rings.size(), kMostRingsDrawn); ++i) {
    for (const Hop& hop : layout.rings[i].hops) {
      out += fmt::format(
          "  n{} -> n{} [color=\"{}\", penwidth=2, constraint=false, tooltip=\"ring {}\"];\n",
          layout.nodes[hop.from], layout.nodes[hop.to], kColours[i], i);
    }
  }
}

}  // namespace

std::string to_dot(const Graph& graph, const Layout* layout) {
  std::map<int, std::vector<int>> ranks;
  if (layout != nullptr) {
    for (size_t i = 0; i < layout->nodes.size(); ++i) {
      ranks[layout->nodes[i]].push_back(static_cast<int>(i));
    }
  }
  std::string out =
      "digraph topology {\n  // GB/s per direction; colours tell kinds of links; thick arrows are "
      "rings\n  graph [compound=true, fontname=\"sans-serif\"];\n  node [fontname=\"sans-serif\", "
      "fontsize=10];\n  edge [fontname=\"sans-serif\", fontsize=8];\n";
  for (int host = 0; host < graph.hosts; ++host) host_cluster(graph, host, ranks, out);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].host < 0) node_line(graph, static_cast<int>(i), ranks, "  ", out);
  }
  link_lines(graph, out);
  if (layout != nullptr) ring_lines(*layout, out);
  return out + "}\n";
}

}  // namespace tessera::topology
