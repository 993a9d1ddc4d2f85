// What becomes of the files of real machines, in a few lines each, as golden/NAME.txt keeps it:
// a change of reading, graph, paths or search shows here as a difference that one can judge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <tuple>

#include "topology/graph_of.h"
#include "topology/hwloc_read.h"
#include "topology/nccl_xml.h"
#include "topology/search.h"
#include "topology/searched.h"
#include "topology/support/files.h"

namespace tessera::topology {
namespace {

namespace fs = std::filesystem;
using testing::read_text;
using testing::shared_folder;

constexpr const char* kRewrite = "TESSERA_GOLDEN";  // set to "write"

fs::path golden_of(const fs::path& file) {
  return fs::path(TESSERA_SOURCE_DIR "/tests/topology/golden") /
         file.stem().replace_extension(".txt");
}

std::vector<fs::path> files() {
  std::vector<fs::path> all;
  if (shared_folder().empty()) return all;
  for (const fs::directory_entry& entry : fs::directory_iterator(shared_folder()))
    if (entry.path().extension() == ".xml") all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int> ranks_of(const Graph& graph) {
  std::vector<int> nodes = stated_ranks(graph);
  for (const NodeKind kind : {NodeKind::kGpu, NodeKind::kCore, NodeKind::kCpu})
    if (nodes.empty()) nodes = graph.of_kind(kind);
  return nodes;
}

// "nodes: 2 cpu, 8 gpu"
std::string nodes_line(const Graph& graph) {
  std::map<NodeKind, int> count;
  for (const Node& node : graph.nodes) ++count[node.kind];
  std::string line;
  for (const auto& [kind, n] : count)
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", n, to_string(kind));
  return "nodes: " + line + "\n";
}

// "nvlink: 8 of 360 GB/s, 18 each", one line for each kind, bandwidth and count
std::string link_lines(const Graph& graph) {
  std::map<std::tuple<LinkKind, double, int>, int> count;
  for (size_t i = 0; i < graph.links.size(); ++i) {
    const Link& link = graph.links[i];
    if (link.reverse > static_cast<int>(i)) ++count[{link.kind, link.bandwidth, link.count}];
  }
  std::string lines;
  for (const auto& [key, n] : count) {
    const auto& [kind, bandwidth, each] = key;
    lines += fmt::format("{}: {} of {:.5g} GB/s", to_string(kind), n, bandwidth);
    lines += each > 1 ? fmt::format(", {} links each\n", each) : "\n";
  }
  return lines;
}

// The farthest and narrowest path, and how many pairs have each class.
std::string paths_lines(const Graph& graph, const std::vector<int>& nodes) {
  Paths paths(graph);
  Path worst;
  std::map<std::string, int> classes;
  for (const int from : nodes) {
    for (const int to : nodes) {
      if (from == to) continue;
      const Path path = paths.between(from, to);
      ++classes[class_name(graph, path)];
      if (worst.links.empty() || compare(worst, path) < 0) worst = path;
    }
  }
  std::string line;
  for (const auto& [name, n] : classes)
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", n, name);
  if (line.empty()) return "paths: none\n";
  return fmt::format("paths: {}\nworst path: {} with {:.5g} GB/s\n", line, class_name(graph, worst),
                     worst.bandwidth);
}

std::string layout_lines(const Graph& graph, const std::vector<int>& nodes) {
  const Result<Layout> layout = search(graph, nodes);
  if (!layout.ok()) return layout.status().message() + "\n";
  std::string lines =
      fmt::format("rings: {}, {:.5g} GB/s\ntrees: {}, {:.5g} GB/s\n", layout->rings.size(),
                  layout->ring_bandwidth, layout->trees.size(), layout->tree_bandwidth);
  const bool any =
      std::any_of(layout->nic.begin(), layout->nic.end(), [](int n) { return n >= 0; });
  if (any && nodes.size() <= 16) {
    lines += "nics:";
    for (const int nic : layout->nic)
      lines += " " + (nic < 0 ? std::string("-") : graph.nodes[static_cast<size_t>(nic)].name);
    lines += "\n";
  }
  for (const std::string& note : layout->notes) lines += "note: " + note + "\n";
  return lines;
}

Result<Machine> machine_of(const fs::path& file) {
  const bool hwloc = file.filename().string().starts_with("hwloc");
  return hwloc ? read_hwloc_xml(file) : read_nccl_xml(file);
}

std::string summary(const fs::path& file) {
  const Result<Machine> machine = machine_of(file);
  if (!machine.ok()) {
    std::string text = machine.status().message();
    const size_t at = text.find(file.string());
    if (at != std::string::npos) text.replace(at, file.string().size(), file.filename().string());
    return "not read: " + text + "\n";
  }
  const Graph graph = graph_of(machine.value());
  const std::vector<int> nodes = ranks_of(graph);
  std::string text = nodes_line(graph) + link_lines(graph);
  text += fmt::format("ranks: {} on {}\n", nodes.size(),
                      nodes.empty() ? "nothing" : to_string(graph.nodes[nodes[0]].kind));
  text += paths_lines(graph, nodes) + layout_lines(graph, nodes);
  for (const std::string& note : graph.notes) text += "assumed: " + note + "\n";
  return text + fmt::format("warnings: {}\n", machine->warnings.size());
}

// A graph file says no less than what was found, and no more: the ways that are chosen for its
// orders were open to the search, too.
void expect_rings_read_back(const Graph& graph, const std::string& name) {
  const std::vector<int> nodes = ranks_of(graph);
  const Result<Layout> found = search(graph, nodes);
  if (!found.ok()) return;
  const std::string text = write_graph_xml(searched_graphs(graph, found.value()));
  const Result<SearchedGraphs> graphs = parse_graph_xml(text, "g.xml");
  ASSERT_TRUE(graphs.ok()) << graphs.status().message();
  const Result<Layout> read = layout_of(graph, nodes, graphs.value(), "g.xml");
  ASSERT_TRUE(read.ok()) << name << ": " << read.status().message();
  ASSERT_EQ(read->rings.size(), found->rings.size()) << name;
  for (size_t i = 0; i < read->rings.size(); ++i)
    EXPECT_EQ(read->rings[i].order, found->rings[i].order) << name;
  EXPECT_NEAR(read->ring_bandwidth / found->ring_bandwidth, 1, 0.001) << name;
}

TEST(Golden, RingsReadBackAsFastAsTheyWereWritten) {
  if (shared_folder().empty())
    GTEST_SKIP() << "no files of real machines here; TESSERA_SHARED names their folder";
  for (const fs::path& file : files()) {
    const Result<Machine> machine = machine_of(file);
    if (!machine.ok()) continue;  // the summaries say why
    const Graph graph = graph_of(machine.value());
    expect_rings_read_back(graph, file.filename());
    expect_rings_read_back(replicate(graph, 2), file.filename().string() + " on two hosts");
  }
}

// Cards whose switches reach the CPU by narrow links: rings leave by the GPU beside the card.
TEST(Golden, RingsOfHostsWithNarrowUplinksLeaveByTheGpuBesideTheCard) {
  const auto all = files();
  const auto file = std::find_if(all.begin(), all.end(), [](const fs::path& path) {
    return path.filename() == "oci-h100-bm.xml";
  });
  if (file == all.end())
    GTEST_SKIP() << "no files of real machines here; TESSERA_SHARED names their folder";
  const Result<Machine> machine = machine_of(*file);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  const Graph graph = replicate(graph_of(machine.value()), 2);
  const Result<Layout> layout = search(graph, graph.of_kind(NodeKind::kGpu));
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_GE(layout->ring_bandwidth, 337) << "16 ports of 22.5 GB/s; by the uplinks it would be 150";
}

TEST(Golden, SummariesOfRealMachinesAreAsTheyWere) {
  if (shared_folder().empty())
    GTEST_SKIP() << "no files of real machines here; TESSERA_SHARED names their folder";
  const char* mode = std::getenv(kRewrite);
  const bool rewrite = mode != nullptr && std::string(mode) == "write";
  for (const fs::path& file : files()) {
    const fs::path golden = golden_of(file);
    const std::string text = summary(file);
    if (rewrite) {
      std::ofstream(golden, std::ios::binary) << text;
      continue;
    }
    EXPECT_EQ(text, read_text(golden))
        << golden << " differs; if what is found now is right, run\n  " << kRewrite
        << "=write topology_tests --gtest_filter='Golden.*'\nand look at the difference";
  }
}

}  // namespace
}  // namespace tessera::topology
