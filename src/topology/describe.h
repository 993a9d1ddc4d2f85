// A machine by the name of its description, and who the ranks are on it: what programs and
// variables that name a machine have in common.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "topology/graph.h"
#include "topology/machine.h"

namespace tessera::topology {

// A description and, where it came by hwloc, what can be written back as hwloc XML.
struct Described {
  Machine machine;
  bool from_hwloc = false;
  std::string hwloc_xml;  // empty unless from_hwloc
};

// `from`: a file (NCCL or RCCL topology XML, hwloc XML), a synthetic description of hwloc, or empty
// for this machine. More than 4,096 GPUs and NICs, 4,096 ports or 1,024 CPUs (NUMA nodes) are an error.
Result<Described> describe_machine(const std::string& from);

// The machine of an XML text of any of those kinds, within the same limits; `name` stands for its
// file in messages.
Result<Machine> parse_machine(std::string text, const std::string& name);

// Nodes of `ranks` ranks: those that the description states, else GPUs, else cores, else NUMA
// nodes, host by host, and from the start again where there are fewer; 0: one each. Error: the
// graph has none of them.
Result<std::vector<int>> place_ranks(const Graph& graph, int ranks);

// What people may not expect of ranks on these nodes, a sentence each: "3 of 4 hosts have no ranks
// ...", and that they sit on NUMA nodes.
std::vector<std::string> notes_on_places(const Graph& graph, const std::vector<int>& nodes);

// Nodes of host ranks where no GPUs serve them: cores, or NUMA nodes where there are none, of host 0;
// round and round. Empty: there are neither.
std::vector<int> place_on_cores(const Graph& graph, int ranks);

// Error: two ranks are on one GPU.
Status check_places(const Graph& graph, const std::vector<int>& nodes);

}  // namespace tessera::topology
