// Everything the environment says, read once when a communicator is created and never cached for
// the process (I11). The only place that reads the environment.
//
// Sources, in order: the process environment; the file $NCCL_CONF_FILE, or ~/.nccl.conf;
// /etc/nccl.conf. Lines VAR=VALUE, '#' in column 0 starts a comment; a file never overrides what is
// set. Bad values are errors that name the variable, the text and what is allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"

namespace tessera {

struct Config {
  std::chrono::milliseconds timeout{30'000};  // TESSERA_TIMEOUT_MS: deadline of a wait for peers
  std::string algorithm;         // TESSERA_ALGO: force an algorithm by name ("": choose)
  int64_t low_latency_max = -1;  // TESSERA_LL_MAX bytes; -1: choose
  // TESSERA_SLICE_BYTES: bytes of a block per pass; -1: choose
  int64_t slice_bytes = -1;
  bool single_copy = true;  // TESSERA_SINGLE_COPY=0: no process_vm_readv/writev
  // TESSERA_SHARE_MEMORY=0: do not map ncclMemAlloc memory of peers
  bool share_memory = true;
  // TESSERA_SPIN: looks at a counter before yielding; -1: by ranks and cores
  int spin = -1;
  // TESSERA_EMULATE: the links between ranks behave as described (docs/emulated.md); "": as they are
  std::string emulate;
  std::string nccl_algorithms;  // NCCL_ALGO
  std::string nccl_protocols;   // NCCL_PROTO
  // TESSERA_PROFILE: file of measured times, "none", or "": this machine's, if there is one
  std::string profile;
  // NCCL_TUNER_PLUGIN: name of a library, "none", or "": libnccl-tuner.so, if there is one
  std::string tuner_plugin;
  std::string net_plugin;  // NCCL_NET_PLUGIN: the same for networks; libnccl-net.so
  std::string net;         // NCCL_NET: the network that must be used, by name; "": choose
  std::string topology_file, topology_dump;  // NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE
  std::string graph_file, graph_dump;        // NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE
  int topology_dump_rank = 0;                // NCCL_TOPO_DUMP_FILE_RANK
  int graph_dump_rank = 0;                   // NCCL_GRAPH_DUMP_FILE_RANK
  // Least and most channels: NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS, and the newer NCCL_MIN_CTAS,
  // NCCL_MAX_CTAS; -1: choose. Host ranks drive one channel whatever they say.
  int min_channels = -1, max_channels = -1, min_ctas = -1, max_ctas = -1;
  // What is in use, in words or digits; set when a communicator is made.
  std::string profile_digest = "none", plugin_in_use = "none";
  std::string net_plugin_in_use = "none";
  std::string topology_digest = "none", graph_digest = "none", emulation_digest = "none";
  std::string cache_home;     // XDG_CACHE_HOME, or HOME/.cache
  int blocking = -1;          // NCCL_COMM_BLOCKING: -1 unset
  std::string socket_ifname;  // NCCL_SOCKET_IFNAME
  // NCCL_SOCKET_FAMILY: AF_INET or AF_INET6; "": both
  std::string socket_family;
  // NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD sockets connect two ranks; -1: choose. One
  // thread serves them all, so only the product has a meaning.
  int socket_threads = -1, sockets_per_thread = -1;
  // RDMA (transports/ib)
  bool ib_disabled = false;  // NCCL_IB_DISABLE
  std::string ib_hca;        // NCCL_IB_HCA: devices and ports to use
  int ib_gid_index = -1;     // NCCL_IB_GID_INDEX; -1: choose
  int ib_timeout = 20;       // NCCL_IB_TIMEOUT: 4.096 us * 2^timeout until a packet is repeated
  int ib_retries = 7;        // NCCL_IB_RETRY_CNT
  int ib_traffic_class = 0;  // NCCL_IB_TC
  int ib_service_level = 0;  // NCCL_IB_SL
  int ib_pairs_per_connection = 1;  // NCCL_IB_QPS_PER_CONNECTION, for each port of a device
  std::string comm_id;              // NCCL_COMM_ID host:port
  // NCCL_HOSTID: ranks with equal ones share memory, others do not; "": this host's
  std::string host_id;
  log::Level debug = log::Level::kWarn;  // NCCL_DEBUG
  std::string debug_file;                // NCCL_DEBUG_FILE

  static Result<Config> from_environment();

  using Texts = std::vector<std::pair<std::string, std::string>>;  // (variable, value)

  // The settings that all ranks must share, in a fixed order; compared at init.
  Texts shared_settings() const;
  // Those that the ranks of a host must share: what describes a host may differ between hosts; what
  // hosts do together by it, ranks tell each other.
  Texts host_settings() const;

  // Sockets between two ranks, 1 to 64 after from_environment().
  int sockets_per_peer() const;

  // One INFO line for each setting that differs from its default, and one for each that has no
  // effect.
  void log_changes(int rank) const;
};

// Whether the process has a variable of that name now.
bool in_environment(const char* name);

}  // namespace tessera
