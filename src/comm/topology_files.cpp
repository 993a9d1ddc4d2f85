#include "comm/topology_files.h"

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "base/keyed_hash.h"
#include "base/log.h"
#include "topology/describe.h"
#include "topology/graph_of.h"
#include "topology/hwloc_read.h"
#include "topology/nccl_xml.h"
#include "topology/searched.h"
#include "topology/xml_source.h"

namespace tessera {
namespace {

using topology::GraphChannel;
using topology::GraphGpu;
using topology::NodeKind;

Status of_variable(const char* name, const Status& status) {
  return Status(status.code(), fmt::format("{}: {}", name, status.message()));
}

std::vector<int> places(const topology::Graph& graph, int ranks) {
  std::vector<int> seats = graph.of_kind(NodeKind::kGpu, 0);
  // GPUs that discovery has found serve no host ranks; they are there with cores.
  const std::vector<int> cores = graph.of_kind(NodeKind::kCore, 0);
  if (seats.size() < static_cast<size_t>(ranks) || !cores.empty()) seats = cores;
  if (seats.empty()) seats = graph.of_kind(NodeKind::kCpu, 0);
  std::vector<int> nodes;
  for (size_t rank = 0; rank < static_cast<size_t>(ranks) && !seats.empty(); ++rank)
    nodes.push_back(seats[rank % seats.size()]);
  return nodes;
}

// Gives every GPU of a ring its rank, and looks that each rank is there once.
Status assign_ranks(GraphChannel& channel, size_t number, int ranks, const std::string& path) {
  const bool stated = std::all_of(channel.gpus.begin(), channel.gpus.end(),
                                  [](const GraphGpu& gpu) { return gpu.rank.has_value(); });
  std::vector<int> times(static_cast<size_t>(ranks));
  for (GraphGpu& gpu : channel.gpus) {
    const int rank = stated ? *gpu.rank : gpu.device;
    if (rank < 0 || rank >= ranks)
      return Status::error(Code::kInvalidUsage,
                           "{}: graph 0, channel {}: {} {} is no rank; the ranks are 0 to {}", path,
                           number, stated ? "rank" : "device", rank, ranks - 1);
    gpu.rank = rank;
    ++times[static_cast<size_t>(rank)];
  }
  const auto wrong = std::find_if(times.begin(), times.end(), [](int n) { return n != 1; });
  if (wrong == times.end()) return {};
  return Status::error(Code::kInvalidUsage,
                       "{}: graph 0, channel {}: rank {} is there {} times; every rank of 0 to {} "
                       "must be there once",
                       path, number, wrong - times.begin(), *wrong, ranks - 1);
}

}  // namespace

Result<TopologyFiles> TopologyFiles::read(const Config& config, int ranks) {
  TopologyFiles files;
  if (!config.topology_file.empty()) {
    if (Status s = files.read_topology(config.topology_file); !s.ok())
      return of_variable("NCCL_TOPO_FILE", s);
  }
  if (!config.graph_file.empty()) {
    if (Status s = files.read_graphs(config.graph_file, ranks); !s.ok())
      return of_variable("NCCL_GRAPH_FILE", s);
  }
  return files;
}

Status TopologyFiles::read_topology(const std::string& path) {
  Result<std::string> text = read_file(path, topology::kMostXmlBytes);
  if (!text.ok()) return text.status();
  const uint64_t hash = short_hash(text.value());
  Result<topology::Machine> machine = topology::parse_machine(std::move(text).value(), path);
  if (!machine.ok()) return machine.status();
  for (const topology::Warning& warning : machine->warnings)
    log::info(-1, "{}:{}: {}", path, warning.line, warning.text);
  topology_digest_ = fmt::format("{} CPUs, {} GPUs, {} ports, digest {:016x}", machine->cpus.size(),
                                 machine->gpus.size(), machine->nets.size(), hash);
  machine_ = std::move(machine).value();
  return {};
}

Status TopologyFiles::read_graphs(const std::string& path, int ranks) {
  Result<std::string> text = read_file(path, topology::kMostXmlBytes);
  if (!text.ok()) return text.status();
  const uint64_t hash = short_hash(text.value());
  Result<topology::SearchedGraphs> read = topology::parse_graph_xml(std::move(text).value(), path);
  if (!read.ok()) return read.status();
  auto& graphs = read->graphs;
  const auto rings =
      std::find_if(graphs.begin(), graphs.end(),
                   [](const topology::SearchedGraph& graph) { return graph.id == 0; });
  if (rings == graphs.end())
    return Status::error(Code::kInvalidUsage, "{}: has no rings (graph id 0)", path);
  for (size_t i = 0; i < rings->channels.size(); ++i) {
    if (Status s = assign_ranks(rings->channels[i], i, ranks, path); !s.ok()) return s;
  }
  graph_digest_ = fmt::format("{} graphs, {} rings, digest {:016x}", graphs.size(),
                              rings->channels.size(), hash);
  graphs_ = std::move(read).value();
  return {};
}

Status TopologyFiles::dump(const Config& config, int rank, int ranks) const {
  const bool topology = !config.topology_dump.empty() && config.topology_dump_rank == rank;
  const bool graphs = !config.graph_dump.empty() && config.graph_dump_rank == rank;
  if (!topology && !graphs) return {};
  Result<topology::Machine> machine =
      machine_ ? Result<topology::Machine>(*machine_) : topology::discover();
  if (!machine.ok()) return machine.status();
  // Of the format: hwloc states none, and NCCL refuses files without.
  if (machine->version.absent()) machine->version.value = 1;
  if (topology) {
    if (Status s = topology::save_nccl_xml(machine.value(), config.topology_dump); !s.ok())
      return of_variable("NCCL_TOPO_DUMP_FILE", s);
    log::info(rank, "{}: the machine is written there", config.topology_dump);
  }
  if (!graphs) return {};
  if (Status s = dump_graphs(machine.value(), config, ranks); !s.ok())
    return of_variable("NCCL_GRAPH_DUMP_FILE", s);
  log::info(rank, "{}: rings and trees are written there", config.graph_dump);
  return {};
}

Status TopologyFiles::dump_graphs(const topology::Machine& machine, const Config& config,
                                  int ranks) const {
  const topology::Graph graph = topology::graph_of(machine);
  const std::vector<int> nodes = places(graph, ranks);
  Result<topology::Layout> layout = topology::search(graph, nodes);
  if (layout.ok() && graphs_) {
    topology::SearchedGraphs given = *graphs_;
    for (topology::SearchedGraph& each : given.graphs) {
      if (each.id != 0) continue;
      for (GraphChannel& channel : each.channels)
        for (GraphGpu& gpu : channel.gpus)
          gpu.device = graph.nodes[nodes[static_cast<size_t>(*gpu.rank)]].index;
    }
    layout = topology::layout_of(graph, nodes, given, config.graph_file);
  }
  if (!layout.ok()) return layout.status();
  return topology::save_graph_xml(topology::searched_graphs(graph, layout.value()),
                                  config.graph_dump);
}

}  // namespace tessera
