// What a rank sees, in few numbers, so that ranks can compare it and be told in what they differ.
//
// Notes and stated ranks do not count: they differ between ranks that see the same machine.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/graph.h"

namespace tessera::topology {

struct ViewPart {
  std::string name;  // "gpus of host 0", "nvlink links of host 0"
  int count = 0;
  uint64_t fingerprint = 0;
  bool operator==(const ViewPart&) const = default;
};

struct View {
  uint64_t fingerprint = 0;     // of the whole graph
  std::vector<ViewPart> parts;  // in the order of hosts, kinds of nodes, kinds of links
};

View view_of(const Graph& graph);

// One line for each part that differs: what both have, or who lacks it. Empty: the same view.
std::string view_difference(const View& a, const View& b);

}  // namespace tessera::topology
