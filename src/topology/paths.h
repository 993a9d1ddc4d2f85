// The best path between two nodes.
//
// Which is best, when bandwidth is preferred (the default): the one whose worst link is of the
// nearest kind (LinkKind's order), then the widest, then the one with fewest links, then the one
// with least latency. When latency is preferred: least latency, then fewest links.
//
//   gpu0 --pcie-- cpu0 --smp-- cpu1 --pcie-- gpu1        second: kSmp, 10 GB/s
//     `-nvlink- nvswitch -nvlink------------'            first: kNvlink, 300 GB/s
//
// What a path may pass: switches, CPUs, caches and the fabric; a GPU only if all links are NVLink
// or xGMI; a card only from or to its ports; never a core.
//
// How: the fabric splits the graph into islands. Within one the answer is exact. Between two it is
// the best path to the fabric and the best one from there, each chosen by itself.
//
// Cost: when a node is first asked for, O(c E log V) over its island for c classes of paths that
// start there, a class being a kind and a width. Kept: tens of bytes per pair of nodes that share
// an island, so that 1,024 ranks on 128 hosts need some MB; beyond a limit all is forgotten and
// computed again.
//
// Thread safety: one thread at a time; answers are cached.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "topology/graph.h"

namespace tessera::topology {

enum class Prefer : uint8_t { kBandwidth, kLatency };

// A path without its links.
struct Reach {
  bool found = false;
  double bandwidth = 0;  // GB/s, of the narrowest link; infinite from a node to itself
  double latency = 0;    // us, of all links
  int hops = 0;
  LinkKind type = LinkKind::kLocal;  // the greatest of its links
};

struct Path : Reach {
  std::vector<int> links;  // in order; empty: from a node to itself
};

class Paths {
 public:
  // What a search needs of a link out of a node, beside the others of that node in memory.
  struct Exit {
    int to = 0, id = 0;
    double bandwidth = 0, latency = 0;
    LinkKind kind = LinkKind::kLocal;
  };

  // The graph must outlive this object and must not change.
  explicit Paths(const Graph& graph, Prefer prefer = Prefer::kBandwidth);

  Path between(int from, int to);
  // The best path, then others of the same kind and no more links that share no link with those
  // before: ways through parallel switch planes.
  std::vector<Path> disjoint(int from, int to, int most);
  Reach reach(int from, int to);
  const Graph& graph() const { return graph_; }
  int fabric() const { return fabric_; }  // -1: none
  // Which part the node belongs to when the fabric is taken away; counted from 0 in node order.
  int island(int node) const { return island_of_[node]; }

 private:
  struct Label {
    Reach reach;
    int tree = -1;
  };
  struct Source {
    std::vector<Label> labels;            // by place in the island
    std::vector<std::vector<int>> trees;  // by place: the link that leads there
  };
  // The fabric belongs to every island.
  Source& source(int node, int island);
  void by_bandwidth(int node, int island, Source& source) const;
  void by_latency(int node, int island, Source& source) const;
  int place(int node, int island) const;
  const Label& label(int from, int to, int island);
  void append(int from, int to, int island, std::vector<int>& links);

  const Graph& graph_;
  std::vector<std::vector<Exit>> exits_;  // by node
  Prefer prefer_;
  int fabric_ = -1;
  std::vector<int> island_of_, place_;     // per node
  std::vector<std::vector<int>> islands_;  // nodes; the fabric is the last of each
  std::unordered_map<int64_t, Source> known_;
  size_t kept_ = 0;
};

// One path after the other.
Reach join(const Reach& a, const Reach& b);

// Negative: a is better by the rule for bandwidth; 0: neither.
int compare(const Reach& a, const Reach& b);

// NCCL's name for a path of this kind: LOC, NVL, NVB (through another GPU), C2C, PIX (one PCIe
// switch), PXB (several), PHB (through a CPU, or within a NUMA node), SYS, NET; DIS: none.
const char* class_name(const Graph& graph, const Path& path);

}  // namespace tessera::topology
