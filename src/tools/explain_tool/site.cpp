#include "tools/explain_tool/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tools/common/files.h"
#include "tools/common/layout.h"
#include "tools/common/warnings.h"
#include "topology/describe.h"
#include "topology/graph_of.h"
#include "transports/emulated/description.h"
#include "tuner/emulated_site.h"
#include "tuner/seats.h"

namespace tessera::tools {
namespace {

// The layout, empty for one host; sets how many ranks there are where it says so.
Result<std::vector<int>> place(Where& where) {
  if (where.hosts.empty()) return std::vector<int>();
  Result<std::vector<int>> layout = layout_named(where.hosts);
  if (!layout.ok()) return layout;
  const int ranks = static_cast<int>(layout->size());
  if (ranks > kMostExplainedRanks) {
    return Status::error(Code::kInvalidArgument, "--hosts {} places {} ranks; {} are the most",
                         where.hosts, ranks, kMostExplainedRanks);
  }
  if (where.ranks != 0 && where.ranks != ranks) {
    return Status::error(Code::kInvalidArgument, "--hosts {} places {} ranks, --ranks says {}",
                         where.hosts, ranks, where.ranks);
  }
  where.ranks = ranks;
  return layout;
}

// Of the first host; where only affinities are stated, their processors. 0: nothing is stated.
int cores_of(const topology::Machine& machine, const topology::Graph& graph) {
  const auto cores = static_cast<int>(graph.of_kind(topology::NodeKind::kCore, 0).size());
  topology::CpuSet near;
  for (const topology::Cpu& cpu : machine.cpus) {
    if (cpu.host == 0 && cpu.affinity.given()) near = near | *cpu.affinity.value;
  }
  return cores > 0 ? cores : near.count();
}

// The graph of the description, if there is one; sets what it says where nothing else does.
Result<std::optional<topology::Graph>> describe(Where& where, const Config& config) {
  const std::string from = where.from.empty() ? config.topology_file : where.from;
  if (from.empty()) return std::optional<topology::Graph>();
  if (where.from.empty()) {  // the variable names a file
    if (Result<std::string> text = read_file(from); !text.ok()) return text.status();
  }
  Result<topology::Described> described = topology::describe_machine(from);
  if (!described.ok()) return described.status();
  print_warnings(described->machine);
  topology::Graph graph = topology::graph_of(described->machine);
  if (where.cores == 0) where.cores = cores_of(described->machine, graph);
  if (where.ranks == 0) {
    const Result<std::vector<int>> nodes = topology::place_ranks(graph, 0);
    if (!nodes.ok()) return nodes.status();
    where.ranks = static_cast<int>(nodes->size());
    if (where.ranks > kMostExplainedRanks) {
      return Status::error(Code::kInvalidArgument,
                           "{} has places for {} ranks, {} are the most: say how many with --ranks",
                           from, where.ranks, kMostExplainedRanks);
    }
  }
  return std::optional(std::move(graph));
}

// Every host is as the graph says.
Status seat(const topology::Graph& graph, Site& site) {
  std::map<int, std::vector<int>> ranks_of;
  for (int rank = 0; rank < site.ranks; ++rank)
    ranks_of[site.host_of.empty() ? 0 : site.host_of[static_cast<size_t>(rank)]].push_back(rank);
  std::map<size_t, std::vector<Seat>> known;  // by ranks of a host
  std::vector<Seat> seats(static_cast<size_t>(site.ranks));
  NodeLink network{0, 0};
  for (const auto& [host, ranks] : ranks_of) {
    std::vector<Seat>& of_host = known[ranks.size()];
    if (of_host.empty()) {
      const auto count = static_cast<int>(ranks.size());
      Result<std::vector<int>> nodes = topology::place_ranks(graph, count);
      if (!nodes.ok()) return nodes.status();
      if (!topology::check_places(graph, nodes.value()).ok())
        nodes = topology::place_on_cores(graph, count);
      Result<std::vector<Seat>> found = seats_on(graph, nodes.value());
      if (!found.ok()) return found.status();
      of_host = std::move(found).value();
      if (site.hosts > 1 && !nodes->empty() && network.bandwidth == 0)
        network = to_another_host(graph, nodes->front());
    }
    for (size_t i = 0; i < of_host.size(); ++i) seats[static_cast<size_t>(ranks[i])] = of_host[i];
  }
  seat_ranks(site, seats, false);
  if (network.bandwidth > 0) {
    site.network.latency = network.latency;
    site.network.bandwidth = network.bandwidth;
  }
  return {};
}

// With TESSERA_EMULATE communicators take the links for those of its description; so does the site.
Status emulate(const Config& config, Site& site) {
  if (config.emulate.empty()) return {};
  if (site.hosts > 1) {
    return Status::error(Code::kInvalidUsage,
                         "--hosts with TESSERA_EMULATE=\"{}\": links are emulated between ranks of "
                         "one host only; leave one of them out",
                         config.emulate);
  }
  const Result<emulated::Links> links = emulated::links_of(config.emulate, site.ranks);
  if (links.ok()) describe_emulated(links.value(), site);
  return links.status();
}

}  // namespace

Result<Site> site_of(Where where, const Config& config) {
  Result<std::vector<int>> layout = place(where);
  if (!layout.ok()) return layout.status();
  Result<std::optional<topology::Graph>> graph = describe(where, config);
  if (!graph.ok()) return graph.status();
  if (where.cores == 0) where.cores = usable_cores();
  Site site;
  site.ranks = where.ranks == 0 ? where.cores : where.ranks;
  site.hosts = count_hosts(layout.value());
  site.cores = where.cores * site.hosts;
  site.crowded = site.ranks > site.cores;
  site.host_of = std::move(layout).value();
  if (graph.value()) {
    if (Status s = seat(*graph.value(), site); !s.ok()) return s;
  }
  if (Status s = emulate(config, site); !s.ok()) return s;
  return site;
}

std::vector<std::string> about_links(const Site& site, const Config& config, bool described) {
  std::vector<std::string> lines;
  const auto link = [](double latency, double bandwidth) {
    return fmt::format("{:.4g} us and {:.4g} GB/s", latency, bandwidth / 1e3);
  };
  if (!site.order.empty())
    lines.push_back(fmt::format("rings and trees take the ranks in this order: {}",
                                fmt::join(site.order, " ")));
  if (!site.node_of.empty())
    lines.push_back("between NUMA nodes: " +
                    link(site.between_nodes.latency, site.between_nodes.bandwidth));
  if (site.hosts > 1)
    lines.push_back("between hosts: " + link(site.network.latency, site.network.bandwidth));
  if (!config.emulate.empty())
    lines.push_back(
        fmt::format("note: links are emulated (TESSERA_EMULATE=\"{}\"){}", config.emulate,
                    site.hosts > 1 ? "" : ": one host; estimates do not count how fast they are"));
  if (described)
    lines.push_back(
        "ranks are those of hosts: they move bytes by their cores, and links of GPUs do "
        "not count");
  if (!config.graph_file.empty())
    lines.push_back(
        "note: communicators take the order of NCCL_GRAPH_FILE's first ring; it is not "
        "read here");
  return lines;
}

}  // namespace tessera::tools
