// The graph of a machine, or of many: what bytes travel over, with types, bandwidths and latencies.
// Made from a Machine (graph_of.h), or by hand in tests; read by paths, search, cost model,
// simulator and pictures.
//
//   host 0:  gpu0 ==nvlink== nvswitch ==nvlink== gpu1      nic0 --net-- (fabric) --net-- nic0 of 1
//              |  pcie                     |  pcie            |  pcie
//            switch ------- cpu0 --smp-- cpu1 ------------- switch
//
// A link has a direction; add_link() makes both. Bandwidth is per direction and shared by all that
// uses the link in that direction. GB/s means 10^9 bytes per second.
//
// Ranks sit on nodes: host ranks on cores (kCore) or, where no cores are known, on kCpu; GPU ranks
// on kGpu. Thread safety: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::topology {

enum class NodeKind : uint8_t {
  kCpu,    // a NUMA node: its memory, and the way to it
  kCore,   // a core, or hardware threads that share one
  kCache,  // a cache shared by cores: a way between them that spares memory
  kGpu,
  kPciSwitch,  // a bridge with several devices behind it, or a root complex
  kNvSwitch,   // a switch plane of NVLink, or of another scale-up fabric
  kNic,        // a card
  kPort,       // a port of it
  kFabric,     // the network between hosts
};

// In the order of distance: a path's type is the greatest of its links'.
enum class LinkKind : uint8_t {
  kLocal,  // within a device
  kNvlink,
  kXgmi,
  kC2c,     // coherent link between CPU and GPU
  kCache,   // through a shared cache
  kMemory,  // through the memory of a NUMA node
  kPcie,
  kSmp,  // between sockets
  kNetwork,
};

struct Node {
  NodeKind kind = NodeKind::kCpu;
  int host = 0;       // -1: of none, which is the fabric
  std::string name;   // unique within its host: "gpu3", "cpu1", "nic0", "mlx5_0:1"
  std::string label;  // for pictures and explanations: bus id, model
  int index = 0;      // of its kind within its host
  int64_t numa = -1;  // of the NUMA node it is nearest to; -1: unknown
  int rank = -1;      // that the description states for it; ranks may differ in what they see of it
  // What the device moves at most, GB/s, all peers together, by the number of peers it talks to at
  // a time: entry k - 1 for k peers, the last one for more; empty: its links alone limit. Source:
  // published measurements on NVSwitch machines, where bandwidth per device falls with the number
  // of concurrent peers.
  std::vector<double> fan_out;
};

struct Link {
  int from = 0, to = 0;  // nodes
  LinkKind kind = LinkKind::kLocal;
  double bandwidth = 0;  // GB/s in this direction
  double latency = 0;    // us
  int count = 1;         // physical links that make it up
  // The link in the other direction.
  int reverse = -1;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Link> links;
  std::vector<std::vector<int>> out;  // per node: its outgoing links
  int hosts = 1;
  std::vector<std::string>
      notes;  // assumptions made: what was unknown and which value stands for it

  int add_node(Node node);
  // Both directions; returns the one from `from`.
  int add_link(int from, int to, LinkKind kind, double bandwidth, double latency, int count = 1);
  // -1 if there is none of that name.
  int find(int host, const std::string& name) const;
  std::vector<int> of_kind(NodeKind kind, int host = -1) const;  // host -1: all
};

const char* to_string(NodeKind kind);  // "gpu"
const char* to_string(LinkKind kind);  // "nvlink"

}  // namespace tessera::topology
