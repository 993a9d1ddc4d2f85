// The topology and graph files of a communicator: NCCL_TOPO_FILE and NCCL_GRAPH_FILE say what its
// machine is and which rings it has, NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE ask for both to
// be written.
//
// They decide where ranks sit (tuner/seats.h): rings and trees follow the first ring of the graph
// file, else the first one that a search finds on the machine of the topology file.
//
// A file that is named and cannot be read, or is faulty, is an error that names variable, file,
// line and attribute. Where no variable is set nothing is read and nothing is discovered.
//
// Where the ranks of a host sit, for rings and trees:
//   a file describes the machine             as topology::place_ranks() says: on what the file
//                                            states, else on its GPUs, else cores, else NUMA nodes
//   none does, or it has fewer GPUs than     as topology::place_on_cores() says
//   there are ranks
// Whom the GPUs of a graph file stand for: topology/searched.h. Where no file describes the machine,
// and where there are several hosts, its devices are numbered like the ranks, and a rank that is
// stated counts. What several hosts dump is the one ring in use.
//
// Thread safety: one thread at a time per object.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/status.h"
#include "comm/bootstrap.h"
#include "topology/graph_xml.h"
#include "topology/machine.h"
#include "tuner/seats.h"

namespace tessera {

class TopologyFiles {
 public:
  static Result<TopologyFiles> read(const Config& config);

  // What ranks compare: "2 CPUs, 8 GPUs, 4 ports, digest 0123456789abcdef" and the like; "none" if
  // there is no file.
  const std::string& topology_digest() const { return topology_digest_; }
  const std::string& graph_digest() const { return graph_digest_; }

  bool has_rings() const { return graphs_.has_value(); }
  // Of a rank: by the files, or as seat_here() says. Once, when the ranks have met. Errors:
  // kInvalidUsage, a ring does not hold every rank once; alike on all ranks.
  Result<Seat> seat(const Config& config, const std::vector<Member>& members, int rank);

  // Writes what is asked of this rank. `order`: in which rings take the ranks. Errors name the file.
  Status dump(const Config& config, int rank, const std::vector<int>& order) const;

 private:
  Status read_topology(const std::string& path);
  Status read_graphs(const std::string& path);
  Status name_ranks(int ranks, const std::string& path);
  Result<Seat> seat_on_host(const std::vector<Member>& members, int rank) const;
  Status dump_graphs(const topology::Machine& machine, const Config& config,
                     const std::vector<int>& order) const;

  std::optional<topology::Machine> machine_;
  std::optional<topology::SearchedGraphs> graphs_;  // with rings, of which name_ranks() knows whom
  bool one_host_ = true;
  std::string topology_digest_ = "none", graph_digest_ = "none";
};

}  // namespace tessera
