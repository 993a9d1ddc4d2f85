// What the topology programs have in common: which machine they are about, and who the ranks are.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "topology/graph.h"
#include "topology/hwloc_topology.h"
#include "topology/machine.h"

namespace tessera::tools {

// A description and, where it came by hwloc, what can be written back as hwloc XML.
struct Described {
  topology::Machine machine;
  bool from_hwloc = false;
  std::string hwloc_xml;  // empty unless from_hwloc
};

// `from`: a file (NCCL or RCCL topology XML, hwloc XML), a synthetic description of hwloc, or empty
// for this machine.
Result<Described> describe_machine(const std::string& from);

// Nodes of `ranks` ranks: those that the description states, else GPUs, else cores, else NUMA
// nodes, host by host, and from the start again where there are fewer; 0: one each. Error: the
// graph has none of them.
Result<std::vector<int>> place_ranks(const topology::Graph& graph, int ranks);

Result<std::string> read_file(const std::string& path);
// Replaces the file; "-" is standard output.
Status write_file(const std::string& path, const std::string& text);

// Runs Graphviz's dot over a description. Error: dot is not installed, or failed.
Status draw_svg(const std::string& dot, const std::string& path);

}  // namespace tessera::tools
