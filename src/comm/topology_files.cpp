#include "comm/topology_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
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

// Where a file puts the ranks; empty: it has fewer GPUs than there are ranks, of several hosts
// perhaps.
std::vector<int> places_of_file(const topology::Graph& graph, int ranks) {
  const Result<std::vector<int>> nodes = topology::place_ranks(graph, ranks);
  if (!nodes.ok() || !topology::check_places(graph, nodes.value()).ok()) return {};
  return nodes.value();
}

// Devices are still to be named.
topology::SearchedGraphs ring_of(const std::vector<int>& order) {
  topology::SearchedGraph graph;
  graph.channels.emplace_back();
  for (const int rank : order) graph.channels.back().gpus.push_back({0, rank, 0});
  return {{std::move(graph)}};
}

// Of several hosts: no graph says how fast it is, and devices are numbered like ranks.
Status save_order(const std::vector<int>& order, const std::string& path) {
  topology::SearchedGraphs graphs = ring_of(order);
  topology::SearchedGraph& ring = graphs.graphs.front();
  ring.type_intra = ring.type_inter = "NET";
  for (GraphGpu& gpu : ring.channels.front().gpus) gpu.device = *gpu.rank;
  return topology::save_graph_xml(graphs, path);
}

Status check_dumps(const Config& config) {
  if (config.topology_dump.empty() || config.graph_dump.empty()) return {};
  std::error_code error;
  const auto place_of = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  };
  const auto topology = place_of(config.topology_dump), graph = place_of(config.graph_dump);
  if (error || topology != graph || (exists(graph, error) && !is_regular_file(graph, error)))
    return {};
  return Status::error(Code::kInvalidUsage,
                       "NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE name the same file, {}: one "
                       "would replace the other",
                       config.topology_dump);
}

void warn_of_missing_rank(const char* variable, bool wanted, int writer, int rank, int ranks) {
  if (wanted && rank == 0 && writer >= ranks)
    log::warn(rank, "{}={}: the ranks are 0 to {}, so nothing is written", variable, writer,
              ranks - 1);
}

}  // namespace

Result<TopologyFiles> TopologyFiles::read(const Config& config) {
  TopologyFiles files;
  if (Status s = check_dumps(config); !s.ok()) return s;
  if (!config.topology_file.empty()) {
    if (Status s = files.read_topology(config.topology_file); !s.ok())
      return of_variable("NCCL_TOPO_FILE", s);
  }
  if (!config.graph_file.empty()) {
    if (Status s = files.read_graphs(config.graph_file); !s.ok())
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

Status TopologyFiles::read_graphs(const std::string& path) {
  Result<std::string> text = read_file(path, topology::kMostXmlBytes);
  if (!text.ok()) return text.status();
  const uint64_t hash = short_hash(text.value());
  Result<topology::SearchedGraphs> read = topology::parse_graph_xml(std::move(text).value(), path);
  if (!read.ok()) return read.status();
  auto& graphs = read->graphs;
  const auto rings =
      std::find_if(graphs.begin(), graphs.end(),
                   [](const topology::SearchedGraph& graph) { return graph.id == 0; });
  if (rings == graphs.end() || rings->channels.empty())
    return Status::error(Code::kInvalidUsage, "{}: has no rings (graph id 0)", path);
  graph_digest_ = fmt::format("{} graphs, {} rings, digest {:016x}", graphs.size(),
                              rings->channels.size(), hash);
  graphs_ = std::move(read).value();
  return {};
}

// Which rank each gpu of a ring is. Where there are several hosts no topology file says it, for each
// host may have another one.
Status TopologyFiles::name_ranks(int ranks, const std::string& path) {
  if (!graphs_) return {};
  std::vector<topology::Seat> seats(static_cast<size_t>(ranks), {0, -1});
  if (machine_ && one_host_) {
    const topology::Graph graph = topology::graph_of(*machine_);
    const std::vector<int> nodes = places_of_file(graph, ranks);
    if (!nodes.empty()) seats = topology::seats_of(graph, nodes);
  }
  for (topology::SearchedGraph& graph : graphs_->graphs) {
    if (graph.id != 0) continue;
    for (GraphChannel& channel : graph.channels) {
      const Result<std::vector<int>> order = topology::ranks_of(channel, seats, path);
      if (!order.ok()) return of_variable("NCCL_GRAPH_FILE", order.status());
      for (size_t i = 0; i < channel.gpus.size(); ++i) channel.gpus[i].rank = order.value()[i];
    }
  }
  return {};
}

// In the ring of the own host.
Result<Seat> TopologyFiles::seat_on_host(const std::vector<Member>& members, int rank) const {
  if (!machine_) return seat_here();
  int neighbours = 0, own = 0;
  for (const Member& member : members) {
    if (member.rank == rank) own = neighbours;
    if (member.host == members[static_cast<size_t>(rank)].host) ++neighbours;
  }
  const topology::Graph graph = topology::graph_of(*machine_);
  std::vector<int> nodes = places_of_file(graph, neighbours);
  if (nodes.empty()) {
    log::info(rank,
              "NCCL_TOPO_FILE has fewer GPUs than the {} ranks of this host: they sit on its "
              "cores or NUMA nodes",
              neighbours);
    nodes = topology::place_on_cores(graph, neighbours);
  }
  const Result<std::vector<Seat>> seats = seats_on(graph, nodes);
  if (!seats.ok()) return of_variable("NCCL_TOPO_FILE", seats.status());
  if (seats->empty()) return Seat{};
  Seat seat = seats.value()[static_cast<size_t>(own)];
  if (!one_host_) seat.between_hosts = to_another_host(graph, nodes.front());
  return seat;
}

Result<Seat> TopologyFiles::seat(const Config& config, const std::vector<Member>& members,
                                 int rank) {
  one_host_ = std::all_of(members.begin(), members.end(),
                          [&](const Member& m) { return m.host == members.front().host; });
  if (Status s = name_ranks(static_cast<int>(members.size()), config.graph_file); !s.ok()) return s;
  Result<Seat> seat = seat_on_host(members, rank);
  if (!seat.ok() || !graphs_) return seat;
  for (const topology::SearchedGraph& graph : graphs_->graphs) {
    if (graph.id != 0) continue;
    const std::vector<GraphGpu>& ring = graph.channels.front().gpus;
    for (size_t place = 0; place < ring.size(); ++place)
      if (ring[place].rank == rank) seat.value().place = static_cast<int32_t>(place);
  }
  return seat;
}

Status TopologyFiles::dump(const Config& config, int rank, const std::vector<int>& order) const {
  const auto ranks = static_cast<int>(order.size());
  const bool topology = !config.topology_dump.empty() && config.topology_dump_rank == rank;
  const bool graphs = !config.graph_dump.empty() && config.graph_dump_rank == rank;
  warn_of_missing_rank("NCCL_TOPO_DUMP_FILE_RANK", !config.topology_dump.empty(),
                       config.topology_dump_rank, rank, ranks);
  warn_of_missing_rank("NCCL_GRAPH_DUMP_FILE_RANK", !config.graph_dump.empty(),
                       config.graph_dump_rank, rank, ranks);
  if (!topology && !graphs) return {};
  Result<topology::Machine> machine =
      machine_ ? Result<topology::Machine>(*machine_) : topology::discover();
  if (!machine.ok()) return machine.status();
  if (topology) {
    if (Status s = topology::save_nccl_xml(machine.value(), config.topology_dump); !s.ok())
      return of_variable("NCCL_TOPO_DUMP_FILE", s);
    log::info(rank, "{}: the machine is written there", config.topology_dump);
  }
  if (!graphs) return {};
  if (Status s = dump_graphs(machine.value(), config, order); !s.ok())
    return of_variable("NCCL_GRAPH_DUMP_FILE", s);
  log::info(rank, "{}: rings and trees are written there", config.graph_dump);
  return {};
}

Status TopologyFiles::dump_graphs(const topology::Machine& machine, const Config& config,
                                  const std::vector<int>& order) const {
  if (!one_host_) return save_order(order, config.graph_dump);
  const topology::Graph graph = topology::graph_of(machine);
  std::vector<int> nodes;
  if (machine_) nodes = places_of_file(graph, static_cast<int>(order.size()));
  // GPUs that discovery has found on this machine serve no host ranks.
  if (nodes.empty()) nodes = topology::place_on_cores(graph, static_cast<int>(order.size()));
  Result<topology::Layout> layout = topology::search(graph, nodes);
  if (layout.ok() && (graphs_ || !machine_)) {
    topology::SearchedGraphs given = graphs_ ? *graphs_ : ring_of(order);
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
