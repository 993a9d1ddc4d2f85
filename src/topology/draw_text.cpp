#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topology/draw.h"

namespace tessera::topology {
namespace {

// Names and labels come from files: whatever would move the cursor is left out.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) out += c;
  }
  return out;
}

using Ranks = std::map<int, std::vector<int>>;

std::string title(const Graph& graph, int id, const Ranks& ranks) {
  const Node& node = graph.nodes[id];
  std::string text = plain(node.name);
  if (!node.label.empty()) text += fmt::format(" ({})", plain(node.label));
  const auto at = ranks.find(id);
  if (at == ranks.end()) return text;
  text += at->second.size() == 1 ? "  rank" : "  ranks";
  for (const int rank : at->second) text += fmt::format(" {}", rank);
  return text;
}

// Links of the tree that a host's devices hang in; the others are listed below it.
bool in_tree(LinkKind kind) {
  return kind == LinkKind::kPcie || kind == LinkKind::kLocal || kind == LinkKind::kCache ||
         kind == LinkKind::kMemory;
}

void branch(const Graph& graph, int id, int depth, const Ranks& ranks, std::set<int>& seen,
            std::string& out) {
  for (const int link_id : graph.out[id]) {
    const Link& link = graph.links[link_id];
    if (!in_tree(link.kind) || !seen.insert(link.to).second) continue;
    out += fmt::format("{:{}}|- {}  {} {:g} GB/s\n", "", 2 * depth, title(graph, link.to, ranks),
                       to_string(link.kind), link.bandwidth);
    branch(graph, link.to, depth + 1, ranks, seen, out);
  }
}

void host_text(const Graph& graph, int host, const Ranks& ranks, std::string& out) {
  out += fmt::format("host {}\n", host);
  const std::vector<int> cpus = graph.of_kind(NodeKind::kCpu, host);
  std::set<int> seen(cpus.begin(), cpus.end());
  for (const int cpu : cpus) {
    out += fmt::format("  {}\n", title(graph, cpu, ranks));
    branch(graph, cpu, 2, ranks, seen, out);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].host != host || !seen.insert(static_cast<int>(i)).second) continue;
    out += fmt::format("  {}\n", title(graph, static_cast<int>(i), ranks));
    branch(graph, static_cast<int>(i), 2, ranks, seen, out);
  }
  for (size_t i = 0; i < graph.links.size(); ++i) {
    const Link& link = graph.links[i];
    const Node &from = graph.nodes[link.from], &to = graph.nodes[link.to];
    if (from.host != host || link.reverse < static_cast<int>(i) || in_tree(link.kind) ||
        link.kind == LinkKind::kNetwork) {
      continue;
    }
    out += fmt::format("  {} -- {}  {} {:g} GB/s", plain(from.name), plain(to.name),
                       to_string(link.kind), link.bandwidth);
    if (link.count > 1) out += fmt::format(", {} links", link.count);
    out += "\n";
  }
}

void cell(const std::string& text, std::string& out) { out += fmt::format("{:>11}", text); }

std::string path_text(const Graph& graph, const Path& path) {
  if (!path.found) return "none";
  if (path.links.empty()) return "LOC";
  return fmt::format("{} {:.4g}", class_name(graph, path), path.bandwidth);
}

void matrices(const Graph& graph, const Layout& layout, int most, std::string& out) {
  Paths paths(graph);
  const int all = static_cast<int>(layout.nodes.size()), n = std::min(all, most);
  out += "paths between ranks: class and GB/s\n";
  cell("", out);
  for (int to = 0; to < n; ++to) cell(fmt::format("{}", to), out);
  out += "\n";
  for (int from = 0; from < n; ++from) {
    cell(fmt::format("rank {}", from), out);
    for (int to = 0; to < n; ++to) {
      cell(path_text(graph, paths.between(layout.nodes[from], layout.nodes[to])), out);
    }
    out += "\n";
  }
  if (n < all) out += fmt::format("  and {} more ranks\n", all - n);
  out += "ranks and cards, nearest first; * is the one it uses\n";
  const std::vector<int> some(layout.nodes.begin(), layout.nodes.begin() + n);
  int rank = -1;
  for (const NicDistance& each : nic_distances(graph, some)) {
    if (each.rank != rank) {
      if (rank >= 0) out += "\n";
      rank = each.rank;
      out += fmt::format("  rank {}:", rank);
    }
    out += fmt::format(" {}{} {} ", each.nic == layout.nic[rank] ? "*" : "",
                       plain(graph.nodes[each.nic].name), path_text(graph, each.path));
  }
  out += rank < 0 ? "  no card is known\n" : "\n";
}

void channels(const Layout& layout, std::string& out) {
  out += fmt::format("{} rings, {:.4g} GB/s\n", layout.rings.size(), layout.ring_bandwidth);
  for (size_t i = 0; i < layout.rings.size(); ++i) {
    out += fmt::format("  ring {} ({:.4g} GB/s):", i, layout.rings[i].bandwidth);
    for (const int rank : layout.rings[i].order) out += fmt::format(" {}", rank);
    out += "\n";
  }
  out += fmt::format("{} trees, {:.4g} GB/s\n", layout.trees.size(), layout.tree_bandwidth);
  for (size_t i = 0; i < layout.trees.size(); ++i) {
    const Tree& tree = layout.trees[i];
    out += fmt::format("  tree {} ({:.4g} GB/s): root {};", i, tree.bandwidth, tree.root);
    for (size_t rank = 0; rank < tree.parent.size(); ++rank) {
      if (tree.parent[rank] >= 0) out += fmt::format(" {}>{}", rank, tree.parent[rank]);
    }
    out += "\n";
  }
}

}  // namespace

std::string assumptions(const Graph& graph) {
  std::string out;
  for (const std::string& note : graph.notes) out += fmt::format("assumed: {}\n", plain(note));
  return out;
}

std::string to_text(const Graph& graph, const Layout* layout, const TextOptions& options) {
  std::string out;
  Ranks ranks;
  if (layout != nullptr) {
    for (size_t i = 0; i < layout->nodes.size(); ++i) {
      ranks[layout->nodes[i]].push_back(static_cast<int>(i));
    }
  }
  if (options.machine) {
    const int hosts = std::min(graph.hosts, options.most_hosts);
    for (int host = 0; host < hosts; ++host) host_text(graph, host, ranks, out);
    if (hosts < graph.hosts) out += fmt::format("and {} more hosts\n", graph.hosts - hosts);
    out += assumptions(graph);
  }
  if (layout == nullptr) return out;
  if (options.paths) matrices(graph, *layout, options.most_ranks, out);
  if (options.layout) {
    channels(*layout, out);
    for (const std::string& note : layout->notes) out += fmt::format("note: {}\n", plain(note));
  }
  return out;
}

}  // namespace tessera::topology
