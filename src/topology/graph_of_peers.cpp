// Links that devices state about each other: NVLink, xGMI, C2C, and between PCI switches.
//
// Both ends may state a link, or one. The link is symmetric: the smaller of two statements, or the
// only one; an end that names the link and not how many there are agrees with the other. Switch planes exist where GPUs name them, whether or not they are PCI devices here;
// hidden ones are one plane per host.
#include <fmt/format.h>

#include <algorithm>

#include "topology/graph_builder.h"

namespace tessera::topology {
namespace {

constexpr uint32_t kSwitchClass = 0x068000, kCpuBridgeClass = 0x068001;

bool is_gpu_class(uint32_t pci_class) { return pci_class >> 16 == 0x03 || pci_class >> 16 == 0x12; }

LinkKind kind_of(PeerLinkKind kind) {
  switch (kind) {
    case PeerLinkKind::kNvlink:
      return LinkKind::kNvlink;
    case PeerLinkKind::kXgmi:
      return LinkKind::kXgmi;
    case PeerLinkKind::kC2c:
      return LinkKind::kC2c;
    case PeerLinkKind::kPciSwitch:
      return LinkKind::kPcie;
  }
  return LinkKind::kPcie;
}

double latency_of(LinkKind kind, bool to_switch) {
  switch (kind) {
    case LinkKind::kNvlink:
      return to_switch ? kNvlinkLatency / 2 : kNvlinkLatency;
    case LinkKind::kXgmi:
      return to_switch ? kXgmiLatency / 2 : kXgmiLatency;
    case LinkKind::kC2c:
      return kC2cLatency;
    default:
      return kPcieLatency;
  }
}

double positive_minimum(double a, double b) {
  if (a <= 0) return b;
  return b <= 0 ? a : std::min(a, b);
}

}  // namespace

int GraphBuilder::plane(int host, const std::string& key, const std::string& label) {
  const auto [at, fresh] = planes_.emplace(std::make_pair(host, key), -1);
  if (fresh) {
    const int number = count(NodeKind::kNvSwitch, host);
    at->second = add(NodeKind::kNvSwitch, host, fmt::format("nvswitch{}", number), label, -1);
  }
  return at->second;
}

// The first GPU of that bus id on the own host, or on another one; -1: none.
int GraphBuilder::gpu_of_id(const BusId& id, int from, int host, bool own_host) const {
  const auto devices = gpus_by_id_.find(id);
  if (devices == gpus_by_id_.end()) return -1;
  for (const int device : devices->second) {
    const GpuDevice& gpu = gpus_[device];
    if (own_host ? gpu.host == host && gpu.node != from : gpu.host != host) return gpu.node;
  }
  return -1;
}

// A device of that bus id: on the own host if there is one, else on another.
int GraphBuilder::target_by_id(const PeerLink& link, int from, int host) {
  const BusId& id = *link.target_id.value;
  const int own = link.gpu >= 0 ? machine_.gpus[link.gpu].pci : -1;
  if (own >= 0 && machine_.pcis[own].bus_id.given() && *machine_.pcis[own].bus_id.value == id) {
    ++self_;
    return -1;
  }
  if (const int gpu = gpu_of_id(id, from, host, true); gpu >= 0) return gpu;
  const auto known = pcis_by_id_.find(id);
  const std::vector<int> pcis = known == pcis_by_id_.end() ? std::vector<int>() : known->second;
  if (link.kind == PeerLinkKind::kPciSwitch) {
    for (const int pci : pcis) {
      if (pci_node_[pci] >= 0 && pci_node_[pci] != from && host_of_pci(pci) == host)
        return pci_node_[pci];
    }
  }
  if (link.kind != PeerLinkKind::kPciSwitch && link.target_class.or_else(0) == kSwitchClass) {
    return plane(host, to_string(id), to_string(id));
  }
  for (const int i : pcis) {
    const Pci& pci = machine_.pcis[i];
    const bool plain = pci.kind == PciKind::kBridge || pci.kind == PciKind::kOther;
    if (link.kind == PeerLinkKind::kNvlink && plain &&
        !is_gpu_class(link.target_class.or_else(0))) {
      return plane(host, to_string(id), to_string(id));
    }
  }
  const int elsewhere = gpu_of_id(id, from, host, false);
  if (elsewhere < 0) ++dropped_;
  return elsewhere;
}

int GraphBuilder::target_of(const PeerLink& link, int from, int host) {
  const int pci = link.gpu >= 0 ? machine_.gpus[link.gpu].pci : link.pci;
  const bool to_cpu =
      link.kind == PeerLinkKind::kC2c ||
      (link.kind == PeerLinkKind::kNvlink && link.target_class.or_else(0) == kCpuBridgeClass);
  if (to_cpu && (link.kind != PeerLinkKind::kC2c || !link.target_id.given())) {
    const int cpu = pci < 0 ? -1 : root_cpu(pci);
    const int node = cpu < 0 ? -1 : cpu_node_[cpu];
    return node >= 0 ? node : cpus_[host].front();
  }
  if (link.target_id.given()) return target_by_id(link, from, host);
  const bool hidden = link.kind == PeerLinkKind::kNvlink &&
                      (link.target_class.or_else(0) == kSwitchClass ||
                       link.target.starts_with("ffff") || link.target.starts_with("FFFF"));
  if (hidden) return plane(host, "hidden", "hidden switch plane");
  ++dropped_;
  return -1;
}

void GraphBuilder::state(const PeerLink& link, int from, int to) {
  Stated2& both = stated_[{std::min(from, to), std::max(from, to)}];
  const int side = from < to ? 0 : 1;
  both.kind = kind_of(link.kind);
  both.count[side] += std::max(1, link.count.or_else(1));
  both.counted[side] = both.counted[side] || link.count.given();
  both.bandwidth[side] += link.megabytes.or_else(0) / 1000;
  Speed speed;
  if (link.kind == PeerLinkKind::kPciSwitch) {
    // Within one package of chips: as wide as the narrower one's way up
    speed.bandwidth = kPcieUnknown;
    const auto up = [&](int node) {
      return graph_.out[node].empty() ? kPcieUnknown
                                      : graph_.links[graph_.out[node].front()].bandwidth;
    };
    speed.bandwidth = std::min(up(from), up(to));
  } else if (link.kind == PeerLinkKind::kC2c) {
    speed.bandwidth = kC2cUnknown;
    if (!link.megabytes.given()) {
      speed.note = fmt::format("C2C bandwidth is not stated: {} GB/s", kC2cUnknown);
    }
  } else if (link.gpu >= 0) {
    const Gpu& gpu = machine_.gpus[link.gpu];
    speed = link.kind == PeerLinkKind::kXgmi ? xgmi_speed(gpu.gcn)
                                             : nvlink_speed(gpu.compute_capability);
    if (link.megabytes.given()) speed.note.clear();
  }
  if (!speed.note.empty()) note(speed.note);
  both.per_link = positive_minimum(both.per_link, speed.bandwidth);
}

// How many links there are between two nodes, of what one or both of them state.
int GraphBuilder::links_of(const Stated2& both, int a, int b) {
  const std::string &name_a = graph_.nodes[a].name, &name_b = graph_.nodes[b].name;
  const bool by_count = both.kind == LinkKind::kNvlink || both.kind == LinkKind::kXgmi;
  if (by_count && !both.counted[0] && !both.counted[1]) {
    note("some GPU links state no count: one link");
  }
  if (both.count[0] == 0 || both.count[1] == 0) {
    if (graph_.nodes[a].kind == NodeKind::kGpu && graph_.nodes[b].kind == NodeKind::kGpu) {
      note(fmt::format("{} states a link to {}, which does not state it: symmetric",
                       both.count[0] > 0 ? name_a : name_b, both.count[0] > 0 ? name_b : name_a));
    }
    return std::max(both.count[0], both.count[1]);
  }
  if (both.counted[0] != both.counted[1]) {
    const int count = both.count[both.counted[0] ? 0 : 1];
    note(fmt::format("{} does not state how many links it has to {}, which states {}: {}",
                     both.counted[0] ? name_b : name_a, both.counted[0] ? name_a : name_b, count,
                     count));
    return count;
  }
  const int count = std::min(both.count[0], both.count[1]);
  if (both.count[0] != both.count[1]) {
    note(fmt::format("{} and {} state {} and {} links to each other: {}", name_a, name_b,
                     both.count[0], both.count[1], count));
  }
  return count;
}

void GraphBuilder::join_peers() {
  for (const auto& [ends, both] : stated_) {
    const auto [a, b] = ends;
    const bool to_switch =
        graph_.nodes[a].kind == NodeKind::kNvSwitch || graph_.nodes[b].kind == NodeKind::kNvSwitch;
    const int count = links_of(both, a, b);
    double bandwidth = positive_minimum(both.bandwidth[0], both.bandwidth[1]);
    if (bandwidth <= 0) bandwidth = count * (both.per_link > 0 ? both.per_link : 20);
    graph_.add_link(a, b, both.kind, bandwidth, latency_of(both.kind, to_switch), count);
  }
}

// How many groups a host's switches fall into, taking together what links between devices join.
int GraphBuilder::switch_groups(int host) const {
  std::vector<char> seen(graph_.nodes.size(), 0);
  int groups = 0;
  for (const int first : graph_.of_kind(NodeKind::kNvSwitch, host)) {
    if (seen[first] != 0 || graph_.out[first].empty()) continue;
    ++groups;
    std::vector<int> next{first};
    seen[first] = 1;
    while (!next.empty()) {
      const int node = next.back();
      next.pop_back();
      for (const int id : graph_.out[node]) {
        const Link& link = graph_.links[id];
        if (link.kind > LinkKind::kXgmi || seen[link.to] != 0) continue;
        seen[link.to] = 1;
        next.push_back(link.to);
      }
    }
  }
  return groups;
}

void GraphBuilder::add_peer_links() {
  for (const PeerLink& link : machine_.peer_links) {
    int from = -1, host = 0;
    if (link.gpu >= 0) {
      const GpuDevice& gpu = gpus_[device_of_gpu_[link.gpu]];
      from = gpu.node;
      host = gpu.host;
    } else if (link.pci >= 0) {
      host = host_of_pci(link.pci);
      from = pci_node_[link.pci];
      if (from < 0 && link.kind == PeerLinkKind::kNvlink &&
          machine_.pcis[link.pci].bus_id.given()) {
        // A switch that states its links itself
        const std::string id = to_string(*machine_.pcis[link.pci].bus_id.value);
        from = plane(host, id, id);
      }
    }
    if (from < 0) {
      ++dropped_;
      continue;
    }
    const int to = target_of(link, from, host);
    if (to >= 0 && to != from) state(link, from, to);
  }
  join_peers();
  for (int host = 0; host < hosts_; ++host) {
    const int groups = switch_groups(host);
    if (groups < 2) continue;
    note(
        fmt::format("GPUs hang on {} groups of switches, and no link between the groups is stated: "
                    "none is assumed, so that from one to another they go by PCIe and the CPUs",
                    groups));
  }
  if (dropped_ > 0) note(fmt::format("{} links lead outside the visible set: dropped", dropped_));
  if (self_ > 0) note(fmt::format("{} links lead from a GPU to itself: dropped", self_));
  if (!machine_.peer_links_stated && gpus_.size() > 1) {
    note("links between GPUs are not stated: none are assumed");
  }
}

// GPUs on a switch: what they move falls with the number of peers at a time.
void GraphBuilder::set_fan_out() {
  std::vector<double> shares = options_.fan_out;
  if (shares.empty()) shares.assign(default_fan_out().begin(), default_fan_out().end());
  bool any = false;
  for (const int gpu : graph_.of_kind(NodeKind::kGpu)) {
    double total = 0;
    for (const int link : graph_.out[gpu]) {
      const Link& out = graph_.links[link];
      if (graph_.nodes[out.to].kind == NodeKind::kNvSwitch) total += out.bandwidth;
    }
    if (total <= 0) continue;
    any = true;
    for (const double share : shares) graph_.nodes[gpu].fan_out.push_back(share * total);
  }
  if (any && options_.fan_out.empty()) {
    note(
        fmt::format("bandwidth of GPUs on a switch by number of peers is not measured: from {:.0f} "
                    "% with one peer to {:.0f} % with {}",
                    100 * shares.front(), 100 * shares.back(), shares.size()));
  }
}

}  // namespace tessera::topology
