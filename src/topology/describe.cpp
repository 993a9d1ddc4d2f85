#include "topology/describe.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "topology/graph_of.h"
#include "topology/hwloc_read.h"
#include "topology/hwloc_topology.h"
#include "topology/hwloc_write.h"
#include "topology/nccl_xml.h"
#include "topology/xml_source.h"

namespace tessera::topology {
namespace {

// The name of the root element, as far as a look at the text can tell.
std::string root_of(const std::string& text) {
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at) {
    if (text.compare(at, 4, "<!--") == 0) {
      at = text.find("-->", at);
      if (at == std::string::npos) break;
      continue;
    }
    if (at + 1 < text.size() && (text[at + 1] == '?' || text[at + 1] == '!')) continue;
    const size_t end = text.find_first_of(" \t\r\n/>", at + 1);
    return text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
  }
  return {};
}

bool is_of_hwloc(const std::string& text) { return root_of(text) == "topology"; }

// Paths between n devices take n^2 steps and more, and sockets of which each is joined with each have
// n^2 links: what nobody has built would take minutes.
constexpr size_t kMostDevices = 4096, kMostCpus = 1024;

Status check_size(const Machine& machine) {
  const auto is_device = [](const Pci& pci) {
    return pci.kind == PciKind::kGpu || pci.kind == PciKind::kNic;
  };
  const auto unplaced = [](const auto& part) { return part.pci < 0; };
  const auto devices =
      static_cast<size_t>(std::count_if(machine.pcis.begin(), machine.pcis.end(), is_device) +
                          std::count_if(machine.gpus.begin(), machine.gpus.end(), unplaced) +
                          std::count_if(machine.nics.begin(), machine.nics.end(), unplaced));
  for (const auto& [count, most, what] : {std::tuple(devices, kMostDevices, "GPUs and NICs"),
                                          std::tuple(machine.nets.size(), kMostDevices, "ports"),
                                          std::tuple(machine.cpus.size(), kMostCpus, "CPUs")}) {
    if (count > most)
      return Status::error(Code::kInvalidArgument,
                           "{}: describes {} {}; a description may have {} at most", machine.source,
                           count, what, most);
  }
  return {};
}

Result<Machine> checked(Result<Machine> machine) {
  if (!machine.ok()) return machine;
  if (Status s = check_size(machine.value()); !s.ok()) return s;
  return machine;
}

Result<Described> by_hwloc(Result<HwlocTopology> topology) {
  if (!topology.ok()) return topology.status();
  Described described;
  described.machine = machine_of(topology.value());
  described.from_hwloc = true;
  if (Status s = check_size(described.machine); !s.ok()) return s;
  Result<std::string> xml = write_hwloc_xml(topology.value());
  if (!xml.ok()) return xml.status();
  described.hwloc_xml = std::move(xml).value();
  return described;
}

}  // namespace

Result<Described> describe_machine(const std::string& from) {
  if (from.empty()) return by_hwloc(HwlocTopology::this_machine());
  struct stat state {};
  const bool file = stat(from.c_str(), &state) == 0;
  if (!file && from.find(':') != std::string::npos && from.find('/') == std::string::npos)
    return by_hwloc(HwlocTopology::synthetic(from));
  Result<std::string> text = read_file(from, kMostXmlBytes);
  if (!text.ok()) return text.status();
  if (is_of_hwloc(text.value())) return by_hwloc(HwlocTopology::from_document(text.value(), from));
  Result<Machine> machine = checked(parse_nccl_xml(std::move(text).value(), from));
  if (!machine.ok()) return machine.status();
  return Described{std::move(machine).value(), false, {}};
}

Result<Machine> parse_machine(std::string text, const std::string& name) {
  if (!is_of_hwloc(text)) return checked(parse_nccl_xml(std::move(text), name));
  Result<HwlocTopology> topology = HwlocTopology::from_document(text, name);
  if (!topology.ok()) return topology.status();
  return checked(machine_of(topology.value()));
}

Result<std::vector<int>> place_ranks(const Graph& graph, int ranks) {
  std::vector<int> places = stated_ranks(graph);
  for (const auto kind : {NodeKind::kGpu, NodeKind::kCore, NodeKind::kCpu}) {
    if (places.empty()) places = graph.of_kind(kind);
  }
  if (places.empty())
    return Status(Code::kInvalidArgument,
                  "the description has no GPU, core or NUMA node to sit on");
  const size_t count = ranks == 0 ? places.size() : static_cast<size_t>(ranks);
  std::vector<int> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(places[i % places.size()]);
  return nodes;
}

std::vector<std::string> notes_on_places(const Graph& graph, const std::vector<int>& nodes) {
  std::vector<std::string> notes;
  if (!nodes.empty() && graph.nodes[static_cast<size_t>(nodes.front())].kind == NodeKind::kCpu)
    notes.emplace_back("ranks sit on NUMA nodes, for want of GPUs and cores");
  std::set<int> busy;
  for (const int node : nodes) busy.insert(graph.nodes[static_cast<size_t>(node)].host);
  const int idle = graph.hosts - static_cast<int>(busy.size());
  const Result<std::vector<int>> places = place_ranks(graph, 0);
  if (idle <= 0 || !places.ok()) return notes;
  notes.push_back(fmt::format(
      "{} of {} hosts have no ranks, since ranks fill one host after the other; {} ranks fill all",
      idle, graph.hosts, places->size()));
  return notes;
}

std::vector<int> place_on_cores(const Graph& graph, int ranks) {
  std::vector<int> places = graph.of_kind(NodeKind::kCore, 0);
  if (places.empty()) places = graph.of_kind(NodeKind::kCpu, 0);
  std::vector<int> nodes;
  for (size_t rank = 0; rank < static_cast<size_t>(ranks) && !places.empty(); ++rank)
    nodes.push_back(places[rank % places.size()]);
  return nodes;
}

Status check_places(const Graph& graph, const std::vector<int>& nodes) {
  std::set<int> taken;
  for (const int node : nodes) {
    const Node& at = graph.nodes[static_cast<size_t>(node)];
    if (at.kind == NodeKind::kGpu && !taken.insert(node).second) {
      return Status::error(Code::kInvalidArgument,
                           "{} ranks do not fit on the machine's {} GPUs: a GPU holds one rank",
                           nodes.size(), taken.size());
    }
  }
  return {};
}

}  // namespace tessera::topology
