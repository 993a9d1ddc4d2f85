#include "topology/graph_xml.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <initializer_list>
#include <set>

#include "base/file.h"
#include "topology/machine.h"
#include "topology/text.h"
#include "topology/xml_source.h"

namespace tessera::topology {
namespace {

constexpr std::array<const char*, 12> kPathTypes = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                    "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

bool is(const pugi::xml_node& node, const char* name) {
  return std::strcmp(node.name(), name) == 0;
}

// Keeps the first error; everything after it does nothing.
class Reader {
 public:
  explicit Reader(const XmlSource& xml) : xml_(xml) {}

  Result<SearchedGraphs> run() {
    SearchedGraphs graphs;
    const pugi::xml_node root = xml_.root();
    expect(root, {"version"});
    if (integer(root, "version", 0, INT_MAX) != 1) fail(root, "version", "the only version is 1");
    std::set<int> ids;
    for (const pugi::xml_node& node : root.children()) {
      if (!status_.ok() || !named(node, "graph")) break;
      graphs.graphs.push_back(graph(node));
      if (!ids.insert(graphs.graphs.back().id).second)
        fail(node, "id", "another graph has the same id");
    }
    if (!status_.ok()) return status_;
    return graphs;
  }

 private:
  SearchedGraph graph(const pugi::xml_node& node);
  GraphChannel channel(const pugi::xml_node& node);
  void check_ring(const pugi::xml_node& node, const GraphChannel& channel);

  void fail(const pugi::xml_node& node, const char* attribute, const std::string& what) {
    if (status_.ok()) status_ = xml_.error(node, attribute, what);
  }
  bool named(const pugi::xml_node& node, const char* name) {
    if (is(node, name)) return true;
    fail(node.type() == pugi::node_element ? node : node.parent(), nullptr,
         node.type() == pugi::node_element
             ? fmt::format("expected <{}> here", name)
             : fmt::format("the text {} does not belong here", shown(stripped(node.value()))));
    return false;
  }
  // Each attribute is one of these and given once.
  void expect(const pugi::xml_node& node, std::initializer_list<const char*> names) {
    std::set<std::string_view> seen;
    for (const pugi::xml_attribute& attribute : node.attributes()) {
      if (std::none_of(names.begin(), names.end(),
                       [&](const char* name) { return std::strcmp(name, attribute.name()) == 0; }))
        fail(node, attribute.name(), "not known");
      if (!seen.insert(attribute.name()).second) fail(node, attribute.name(), "given twice");
    }
  }
  std::string text(const pugi::xml_node& node, const char* name) {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) fail(node, name, "missing");
    return attribute.value();
  }
  int integer(const pugi::xml_node& node, const char* name, int least, int most) {
    const std::string value = text(node, name);
    const std::optional<int64_t> number = parse_integer(value);
    if (number && *number >= least && *number <= most) return static_cast<int>(*number);
    fail(node, name, fmt::format("{} is no number from {} to {}", shown(value), least, most));
    return least;
  }
  double real(const pugi::xml_node& node, const char* name) {
    const std::string value = text(node, name);
    const std::optional<double> number = parse_real(value);
    if (number && *number >= 0) return *number;
    fail(node, name, fmt::format("{} is no number of 0 or more", shown(value)));
    return 0;
  }
  std::string path_type(const pugi::xml_node& node, const char* name) {
    std::string value = text(node, name);
    if (std::find(kPathTypes.begin(), kPathTypes.end(), std::string_view(value)) ==
        kPathTypes.end())
      fail(node, name, shown(value) + " is no type of path (LOC, NVL, PIX, ..., DIS)");
    return value;
  }

  const XmlSource& xml_;
  Status status_;
};

SearchedGraph Reader::graph(const pugi::xml_node& node) {
  expect(node, {"id", "pattern", "crossnic", "nchannels", "speedintra", "speedinter",
                "latencyinter", "typeintra", "typeinter", "samechannels"});
  SearchedGraph graph;
  graph.id = integer(node, "id", 0, 4);
  graph.pattern = static_cast<GraphPattern>(integer(node, "pattern", 1, 6));
  graph.crossnic = integer(node, "crossnic", 0, 2);
  const int channels = integer(node, "nchannels", 0, INT_MAX);
  graph.speed_intra = real(node, "speedintra");
  graph.speed_inter = real(node, "speedinter");
  if (node.attribute("latencyinter")) graph.latency_inter = real(node, "latencyinter");
  graph.type_intra = path_type(node, "typeintra");
  graph.type_inter = path_type(node, "typeinter");
  graph.same_channels = integer(node, "samechannels", 0, 1) == 1;
  for (const pugi::xml_node& child : node.children()) {
    if (!status_.ok() || !named(child, "channel")) break;
    graph.channels.push_back(channel(child));
    if (graph.pattern == GraphPattern::kRing) check_ring(child, graph.channels.back());
  }
  if (graph.channels.size() != static_cast<size_t>(channels))
    fail(node, "nchannels", fmt::format("says {}, but {} follow", channels, graph.channels.size()));
  return graph;
}

GraphChannel Reader::channel(const pugi::xml_node& node) {
  expect(node, {});
  GraphChannel channel;
  bool closed = false;  // by a net after GPUs
  for (const pugi::xml_node& child : node.children()) {
    if (!status_.ok()) break;
    if (is(child, "net")) {
      expect(child, {"dev"});
      const std::string value = text(child, "dev");
      std::string_view digits = value;
      if (digits.starts_with("0x")) digits.remove_prefix(2);
      const std::optional<uint64_t> device = parse_hex(digits);
      if (!device) fail(child, "dev", shown(value) + " is no hexadecimal number");
      const bool second = channel.nets.size() == 1 && !channel.gpus.empty();
      if (!channel.nets.empty() && !second)
        fail(child, nullptr, "nets stand before the first and after the last gpu, one each");
      closed = !channel.gpus.empty();
      channel.nets.push_back(device.value_or(0));
    } else if (named(child, "gpu")) {
      expect(child, {"dev", "rank"});
      if (closed) fail(child, nullptr, "a gpu after the last net of its channel");
      GraphGpu gpu{integer(child, "dev", 0, INT_MAX), std::nullopt, xml_.line(child)};
      if (child.attribute("rank")) gpu.rank = integer(child, "rank", 0, kMostStatedRank);
      channel.gpus.push_back(gpu);
    }
    if (child.first_child()) fail(child.first_child(), nullptr, "nothing may stand in here");
  }
  if (channel.gpus.empty()) fail(node, nullptr, "holds no gpu");
  return channel;
}

void Reader::check_ring(const pugi::xml_node& node, const GraphChannel& channel) {
  std::set<std::pair<int, int>> seen;
  for (const GraphGpu& gpu : channel.gpus)
    if (!seen.insert({gpu.device, gpu.rank.value_or(-1)}).second)
      fail(node, nullptr, fmt::format("gpu {} occurs twice in a ring", gpu.device));
}

std::string number(double value) { return fmt::format("{}", value); }

}  // namespace

Result<SearchedGraphs> parse_graph_xml(std::string text, std::string source) {
  XmlSource xml;
  if (Status status = xml.load(std::move(text), std::move(source), "graphs"); !status.ok())
    return status;
  return Reader(xml).run();
}

Result<SearchedGraphs> read_graph_xml(const std::string& path) {
  Result<std::string> text = read_file(path, kMostXmlBytes);
  if (!text.ok()) return text.status();
  return parse_graph_xml(std::move(text.value()), path);
}

std::string write_graph_xml(const SearchedGraphs& graphs) {
  std::string out = "<graphs version=\"1\">\n";
  for (const SearchedGraph& graph : graphs.graphs) {
    out += fmt::format(
        "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{}\" "
        "speedinter=\"{}\"",
        graph.id, static_cast<int>(graph.pattern), graph.crossnic, graph.channels.size(),
        number(graph.speed_intra), number(graph.speed_inter));
    if (graph.latency_inter)
      out += fmt::format(" latencyinter=\"{}\"", number(*graph.latency_inter));
    out += fmt::format(" typeintra=\"{}\" typeinter=\"{}\" samechannels=\"{}\">\n",
                       graph.type_intra, graph.type_inter, graph.same_channels ? 1 : 0);
    for (const GraphChannel& channel : graph.channels) {
      out += "    <channel>\n";
      for (size_t i = 0; i < channel.nets.size() && i < 1; ++i)
        out += fmt::format("      <net dev=\"{:x}\"/>\n", channel.nets[i]);
      for (const GraphGpu& gpu : channel.gpus)
        out += gpu.rank
                   ? fmt::format("      <gpu dev=\"{}\" rank=\"{}\"/>\n", gpu.device, *gpu.rank)
                   : fmt::format("      <gpu dev=\"{}\"/>\n", gpu.device);
      for (size_t i = 1; i < channel.nets.size(); ++i)
        out += fmt::format("      <net dev=\"{:x}\"/>\n", channel.nets[i]);
      out += "    </channel>\n";
    }
    out += "  </graph>\n";
  }
  return out + "</graphs>\n";
}

}  // namespace tessera::topology
