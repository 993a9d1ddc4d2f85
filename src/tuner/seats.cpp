#include "tuner/seats.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/of_process.h"
#include "topology/graph_of.h"
#include "topology/hwloc_read.h"
#include "topology/paths.h"
#include "topology/search.h"

namespace tessera {
namespace {

using topology::Graph;
using topology::NodeKind;

constexpr double kBytesPerUs = 1e3;  // of 1 GB/s

// Makes `link` as slow as `other`, if that is known.
void slower(NodeLink& link, const NodeLink& other) {
  if (other.bandwidth <= 0) return;
  link.bandwidth = link.bandwidth > 0 ? std::min(link.bandwidth, other.bandwidth) : other.bandwidth;
  link.latency = std::max(link.latency, other.latency);
}

// Between the NUMA nodes of these numbers: the slowest of their ways.
NodeLink slowest_between(const Graph& graph, const std::set<int32_t>& numbers) {
  std::vector<int> cpus;
  for (const int cpu : graph.of_kind(NodeKind::kCpu, 0)) {
    if (numbers.contains(static_cast<int32_t>(graph.nodes[static_cast<size_t>(cpu)].numa)))
      cpus.push_back(cpu);
  }
  NodeLink slowest{0, 0};
  topology::Paths paths(graph);
  for (const int from : cpus) {
    for (const int to : cpus) {
      if (from == to) continue;
      const topology::Reach reach = paths.reach(from, to);
      if (reach.found) slower(slowest, {reach.latency, reach.bandwidth * kBytesPerUs});
    }
  }
  return slowest;
}

bool several_numa_nodes() {
  std::ifstream file("/sys/devices/system/node/online");
  std::string ranges;
  return std::getline(file, ranges) && ranges.find_first_of("-,") != std::string::npos;
}

// This machine, looked at when it is first asked for.
struct Here {
  std::mutex mutex;
  bool looked = false;
  std::optional<topology::Machine> machine;  // none: it has one NUMA node, or cannot be seen
};

}  // namespace

NodeLink to_another_host(const Graph& graph, int node) {
  const Graph pair = topology::replicate(graph, 2);
  NodeLink link{0, 0};
  for (const int port : graph.of_kind(NodeKind::kPort, 0)) {
    double widest = 0;
    for (const int out : graph.out[static_cast<size_t>(port)])
      widest = std::max(widest, graph.links[static_cast<size_t>(out)].bandwidth);
    link.bandwidth += widest * kBytesPerUs;
  }
  if (link.bandwidth == 0) return link;
  const int there = pair.find(1, graph.nodes[static_cast<size_t>(node)].name);
  topology::Paths paths(pair);
  if (there >= 0) link.latency = paths.reach(node, there).latency;
  return link;
}

Result<std::vector<Seat>> seats_on(const Graph& graph, const std::vector<int>& nodes) {
  if (nodes.empty()) return std::vector<Seat>();
  const Result<topology::Layout> layout = topology::search(graph, nodes);
  if (!layout.ok()) return layout.status();
  std::vector<Seat> seats(nodes.size());
  std::set<int32_t> numbers;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    const int64_t numa = graph.nodes[static_cast<size_t>(nodes[rank])].numa;
    seats[rank].node = static_cast<int32_t>(numa);
    if (numa >= 0) numbers.insert(seats[rank].node);
  }
  const NodeLink between = slowest_between(graph, numbers);
  for (Seat& seat : seats) seat.between_nodes = between;
  if (layout->rings.empty()) return seats;
  const std::vector<int>& order = layout->rings.front().order;
  for (size_t place = 0; place < order.size(); ++place)
    seats[static_cast<size_t>(order[place])].place = static_cast<int32_t>(place);
  return seats;
}

Seat seat_among(const topology::Machine& machine, const topology::CpuSet& usable) {
  Seat seat;
  std::set<int32_t> numbers;
  for (const topology::Cpu& cpu : machine.cpus) {
    if (cpu.host != 0 || !cpu.numa.given() || *cpu.numa.value < 0) continue;
    const auto number = static_cast<int32_t>(*cpu.numa.value);
    numbers.insert(number);
    if (!usable.empty() && cpu.affinity.given() && cpu.affinity.value->contains(usable))
      seat.node = number;
  }
  if (seat.node < 0 || numbers.size() < 2) return {};
  seat.place = static_cast<int32_t>(std::distance(numbers.begin(), numbers.find(seat.node)));
  topology::GraphOptions options;
  options.cores = false;
  seat.between_nodes = slowest_between(topology::graph_of(machine, options), numbers);
  return seat;
}

Seat seat_here() {
  Here& here = of_process<Here, &Here::mutex>();
  const std::lock_guard lock(here.mutex);
  if (!here.looked && several_numa_nodes()) {
    Result<topology::Machine> machine = topology::discover();
    if (machine.ok())
      here.machine = std::move(machine).value();
    else
      log::info(-1, "{}; ranks are taken in their own order", machine.status().message());
  }
  here.looked = true;
  return here.machine ? seat_among(*here.machine, topology::CpuSet::allowed()) : Seat{};
}

void seat_ranks(Site& site, const std::vector<Seat>& seats, bool one_ring) {
  const auto ranks = static_cast<int>(seats.size());
  const auto host = [&](int rank) {
    return site.host_of.empty() ? 0 : site.host_of[static_cast<size_t>(rank)];
  };
  // By host: its number in the order of first ranks, whether all of its ranks are known.
  std::map<int, int> numbers;
  std::map<int, bool> placed, on_nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    const Seat& seat = seats[static_cast<size_t>(rank)];
    numbers.emplace(host(rank), static_cast<int>(numbers.size()));
    placed.emplace(host(rank), true).first->second &= seat.place >= 0;
    on_nodes.emplace(host(rank), true).first->second &= seat.node >= 0;
  }
  std::vector<int> order(static_cast<size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int rank) {
    const int32_t place = placed[host(rank)] ? seats[static_cast<size_t>(rank)].place : 0;
    return std::tuple(one_ring ? 0 : numbers[host(rank)], place, rank);
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  site.order = std::is_sorted(order.begin(), order.end()) ? std::vector<int>() : order;

  std::map<std::pair<int, int32_t>, int> nodes;
  site.node_of.clear();
  NodeLink slowest{0, 0};
  for (int rank = 0; rank < ranks; ++rank) {
    const Seat& seat = seats[static_cast<size_t>(rank)];
    const int32_t node = on_nodes[host(rank)] ? seat.node : -1;
    const auto number = static_cast<int>(nodes.size());
    site.node_of.push_back(nodes.emplace(std::pair(host(rank), node), number).first->second);
    slower(slowest, seat.between_nodes);
  }
  site.between_nodes = slowest.bandwidth > 0 ? slowest : NodeLink{};
  if (nodes.size() == numbers.size()) site.node_of.clear();  // one on each host
}

}  // namespace tessera
