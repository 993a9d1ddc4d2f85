// Reader and writer of NCCL graph files (NCCL_GRAPH_FILE): the rings and trees that a search found.
//
//   graphs - graph (id, pattern, speeds, ...) - channel - net, gpu, gpu, ..., net
//
// Strict: whatever is missing, unknown or out of range is an error with file, line, element and
// attribute; an order that was misread would cost bandwidth and nobody would see why.
//
// Thread safety: pure functions but for the file access.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace tessera::topology {

struct GraphGpu {
  int device = 0;
  std::optional<int> rank;
  int line = 0;  // of the file; does not count for equality
  bool operator==(const GraphGpu& other) const {
    return device == other.device && rank == other.rank;
  }
};

// One ring, chain or tree over the GPUs of a host, in order.
struct GraphChannel {
  // Empty on a single host; the first one is entered by, the second one left by.
  std::vector<uint64_t> nets;
  std::vector<GraphGpu> gpus;
  bool operator==(const GraphChannel&) const = default;
};

enum class GraphPattern { kBalancedTree = 1, kSplitTree, kTree, kRing, kNvls, kCollnetDirect };

struct SearchedGraph {
  int id = 0;  // 0 ring, 1 tree, 2 collnet chain, 3 nvls, 4 collnet direct
  GraphPattern pattern = GraphPattern::kRing;
  int crossnic = 0;        // 0, 1 or 2: whether a ring may leave by another NIC than it enters
  double speed_intra = 0;  // GB/s per channel
  double speed_inter = 0;
  std::optional<double> latency_inter;  // us; older files do not state it
  std::string type_intra, type_inter;   // of paths: "NVL", "PIX", ...
  bool same_channels = false;
  std::vector<GraphChannel> channels;  // as many as nchannels says
  bool operator==(const SearchedGraph&) const = default;
};

struct SearchedGraphs {
  std::vector<SearchedGraph> graphs;  // different ids
  bool operator==(const SearchedGraphs&) const = default;
};

Result<SearchedGraphs> read_graph_xml(const std::string& path);
Result<SearchedGraphs> parse_graph_xml(std::string text, std::string source);
std::string write_graph_xml(const SearchedGraphs& graphs);
// Replaces the file as a whole: nobody sees it half written.
Status save_graph_xml(const SearchedGraphs& graphs, const std::string& path);

}  // namespace tessera::topology
