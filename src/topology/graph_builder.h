// Inside of graph_of: the state that its steps share.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topology/graph_of.h"
#include "topology/link_speeds.h"

namespace tessera::topology {

// Adds the fabric to a graph of several hosts. Ports must be there, or are assumed.
void add_fabric(Graph& graph);

class GraphBuilder {
 public:
  GraphBuilder(const Machine& machine, const GraphOptions& options)
      : machine_(machine), options_(options) {}
  Graph build() &&;

 private:
  // Where a device hangs: on a bridge's node, or on a CPU (-1: unknown node) of a host.
  struct Place {
    int host = 0;
    int node = -1;
    int cpu = -1;          // graph node; -1: unknown
    double bandwidth = 0;  // of the chain up to there; 0: not stated
  };
  struct Card {
    int host = 0, pci = -1, cpu = -1;
    double stated = 0;  // GB/s that the slot carries, the smallest of its functions'; 0: not stated
    std::vector<int> nets;
  };
  struct GpuDevice {
    int node = -1, host = 0, pci = -1, gpu = -1;  // gpu -1: known by the PCI class only
  };
  // What both ends state about the links between two nodes.
  struct Stated2 {
    int count[2] = {0, 0};             // by direction: from the smaller node, from the larger one
    bool counted[2] = {false, false};  // whether that end says how many
    double bandwidth[2] = {0, 0};
    double per_link = 0;
    LinkKind kind = LinkKind::kNvlink;
  };

  // graph_of.cpp
  void note(const std::string& text);
  int add(NodeKind kind, int host, std::string name, std::string label, int64_t numa);
  int count(NodeKind kind, int host) const;  // of nodes so far
  std::string free_name(int host, const std::string& wanted);
  bool is_taken(int host, const std::string& name) const { return names_.contains({host, name}); }
  void add_cpus();
  void add_cpus_of(int host);
  std::vector<int> packages_of(int host) const;
  void join_cpus(int host);
  double smp_latency(int host, int a, int b) const;
  // graph_of_cores.cpp
  void add_cores(int host);
  // graph_of_pci.cpp
  void find_devices();
  void index_devices();
  void mark_useful(int pci);
  bool is_node(int pci) const;
  int host_of_pci(int pci) const;
  int root_cpu(int pci) const;
  Place place_of(int pci, bool above_only) const;
  void add_switches();
  void attach(int node, const Place& place, double bandwidth);
  void add_gpus();
  void add_cards();
  void add_card(const Card& card);
  void add_ports(const Card& card, int nic, double slot);
  // graph_of_peers.cpp
  void add_peer_links();
  int switch_groups(int host) const;
  int target_of(const PeerLink& link, int from, int host);
  int target_by_id(const PeerLink& link, int from, int host);
  int gpu_of_id(const BusId& id, int from, int host, bool own_host) const;
  int plane(int host, const std::string& key, const std::string& label);
  void state(const PeerLink& link, int from, int to);
  void join_peers();
  int links_of(const Stated2& both, int a, int b);
  void set_fan_out();

  const Machine& machine_;
  const GraphOptions& options_;
  Graph graph_;
  int hosts_ = 1;
  std::vector<std::vector<int>> cpus_;  // per host: nodes
  std::vector<int> cpu_node_;           // per Cpu; -1: unknown NUMA node
  std::map<int, CpuSet> affinity_;      // of CPU nodes
  std::vector<double> smp_;             // per host: GB/s between sockets
  std::vector<int> pci_node_;           // per Pci: of the bridge, or of the device; -1: none
  std::vector<int> below_;              // per Pci: useful things directly below
  std::vector<char> useful_;            // per Pci: a device, or above one
  std::vector<char> peered_;            // per Pci: a bridge with links to others
  std::vector<double> pci_speed_;       // per Pci: stated; 0: not
  std::vector<double> fastest_below_;
  std::vector<GpuDevice> gpus_;
  std::vector<Card> cards_;
  std::map<std::pair<int, std::string>, int> planes_;  // host, key
  std::map<std::pair<int, int>, Stated2> stated_;      // nodes, smaller first
  int dropped_ = 0, self_ = 0;
  // Indices, so that machines of thousands of parts take no quadratic time
  std::set<std::pair<int, std::string>> names_;          // host, name: of all nodes
  std::map<std::pair<int, std::string>, int> suffixes_;  // host, wanted name: last number tried
  std::map<std::pair<int, NodeKind>, int> counts_;       // host, kind
  std::map<BusId, std::vector<int>> pcis_by_id_;         // Pci, ascending
  std::map<BusId, std::vector<int>> gpus_by_id_;         // of gpus_, ascending
  std::vector<int> device_of_gpu_;                       // per Gpu: of gpus_
};

}  // namespace tessera::topology
