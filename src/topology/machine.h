// A machine as a description states it: what hwloc sees, or what an XML file says. Nothing is
// inferred here; graph_of.h makes the graph of it.
//
// Every attribute has three states: given, absent, unreadable. Absent is not zero and not "none".
// Attributes that nobody here knows are kept and written back.
//
//   Machine --- Host --- Cpu (a NUMA node) --- Pci --- Pci --- Gpu
//                 |       `- Nic - Net          `- Nic --- Net
//                 `- CpuTopology (cores, caches; from hwloc only)
//
// NUMA nodes that hold memory only (HBM beside DRAM, memory of GPUs) are no Cpu: hwloc's are listed
// in CpuTopology. Devices that belong to no one node hang below a Cpu without numa, whose affinity
// says where they may be.
//
// Objects live in flat arrays of the machine and name each other by index (-1: none), in the order
// of the description. Two machines are equal if all that they state is equal.
//
// Thread safety: plain data. Source: NCCL topology XML, version 1 and RCCL's version 2 of it
// (docs/topology.md has the elements); hwloc 2 objects.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/cpu_set.h"

namespace tessera::topology {

template <class T>
struct Stated {
  std::optional<T> value;
  // The text that could not be read, if there is no value; it may be empty (link_speed="").
  std::optional<std::string> unreadable;

  bool given() const { return value.has_value(); }
  bool absent() const { return !value.has_value() && !unreadable.has_value(); }
  T or_else(T other) const { return value.value_or(std::move(other)); }
  bool operator==(const Stated&) const = default;
};

// Attributes that no field stands for, in the order of the description.
struct Attribute {
  std::string name, text;
  bool operator==(const Attribute&) const = default;
};
using Attributes = std::vector<Attribute>;

// "0000:17:00.0". The domain counts: virtual machines give each device one of its own.
struct BusId {
  uint32_t domain = 0;
  uint8_t bus = 0, device = 0, function = 0;
  auto operator<=>(const BusId&) const = default;
};
std::optional<BusId> parse_bus_id(const std::string& text);  // with or without domain, any case
std::string to_string(const BusId& id);

// Where something was found, for warnings and errors. line 0: not from a file.
struct Origin {
  int line = 0;
};

struct Cpu {
  int host = 0;
  Stated<int64_t> numa;  // -1 and what cannot be an id: unknown node, value absent or negative
  Stated<CpuSet> affinity;
  std::string arch, vendor;  // empty: not stated
  Stated<int> family, model;
  Stated<uint64_t> memory_bytes;
  Attributes others;
  Origin origin;
};

enum class PciKind : uint8_t { kUnknown, kBridge, kGpu, kNic, kOther };

struct Pci {
  int cpu = -1;
  int parent = -1;  // pci; -1: directly under the cpu
  Stated<BusId> bus_id;
  Stated<uint32_t> pci_class;  // 24 bits
  PciKind kind = PciKind::kUnknown;
  std::string vendor, device, subsystem_vendor, subsystem_device;
  Stated<double> link_gts;  // per lane, GT/s
  Stated<int> link_width;   // lanes; 0 counts as unreadable
  // GB/s of the whole link in one direction, where lanes are not stated (hwloc)
  Stated<double> link_gigabytes;
  std::string name;  // of the model, where the description has one
  Attributes others;
  Origin origin;
};

constexpr int kMostStatedRank = (1 << 20) - 1;  // in any file

struct Gpu {
  int pci = -1;
  Stated<int> device, rank, compute_capability;
  std::string gcn;  // "gfx942"
  Stated<bool> direct_rdma;
  std::vector<std::string> names;  // cuda0, nvml0, rsmi3: OS devices that are this GPU
  Attributes others;
  Origin origin;
};

struct Nic {
  int cpu = -1, pci = -1;  // pci -1: no position on the bus
  Attributes others;
  Origin origin;
};

// A port.
struct Net {
  int nic = -1;
  std::string name;
  Stated<int> device, port;
  Stated<double> megabits;  // per second
  Stated<uint64_t> guid;
  Stated<bool> direct_rdma;
  Stated<double> latency_us;
  Stated<int> max_connections;
  Stated<bool> collectives;
  Attributes others;
  Origin origin;
};

enum class PeerLinkKind : uint8_t { kNvlink, kXgmi, kC2c, kPciSwitch };

// As one end states it: nvlink, xgmi and c2c below a GPU, pcilink below a bridge.
struct PeerLink {
  PeerLinkKind kind = PeerLinkKind::kNvlink;
  int gpu = -1, pci = -1;   // the end that states it
  std::string target;       // as written
  Stated<BusId> target_id;  // unreadable: a hidden switch, or nonsense
  Stated<uint32_t> target_class;
  int target_cpu = -1;  // c2c: the cpu at the other end; -1: the GPU's own
  Stated<int> count;
  Stated<double> megabytes;  // per second and direction, all links together (c2c; hwloc's matrices)
  Attributes others;
  Origin origin;
};

struct Cache {
  int level = 0;
  uint64_t bytes = 0;
  CpuSet cpus;
  bool operator==(const Cache&) const = default;
};

// A NUMA node that is no Cpu.
struct MemoryNode {
  int64_t numa = -1;
  std::string kind;  // "MCDRAM", "GPUMemory"; empty: not stated
  uint64_t bytes = 0;
  CpuSet cpus;  // that it is near to; empty: none
  bool operator==(const MemoryNode&) const = default;
};

// What hwloc knows beyond the file format of NCCL.
struct CpuTopology {
  std::vector<CpuSet> packages, cores;
  std::vector<Cache> caches;  // data and unified ones, level 2 and up
  CpuSet allowed;             // what this process may use
  std::vector<MemoryNode> memory_nodes;
  // NUMA ids and the matrix of relative latencies between them, row by row; empty: not stated
  std::vector<int64_t> latency_nodes;
  std::vector<uint64_t> latency;
  int processing_units = 0;
  bool operator==(const CpuTopology&) const = default;
};

struct Host {
  std::string name;  // may be equal for different hosts
  std::string id;    // tells hosts apart; empty: the only one
  CpuTopology cpus;
  Attributes others;
};

struct Warning {
  int line = 0;
  std::string text;  // names element, bus id and what was done about it
};

struct Machine {
  std::string source;   // file name, "this machine", "synthetic: ..."
  Stated<int> version;  // of the NCCL format
  std::vector<Host> hosts;
  std::vector<Cpu> cpus;
  std::vector<Pci> pcis;
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  std::vector<Net> nets;
  std::vector<PeerLink> peer_links;
  Attributes others;
  std::vector<Warning> warnings;

  // Whether GPU-GPU links are stated at all: a file that lists devices by class only says nothing
  // about them, which is different from none.
  bool peer_links_stated = false;
};

// Field by field, but for origins, source and warnings. The text names the first difference; empty:
// equal.
std::string difference(const Machine& a, const Machine& b);

}  // namespace tessera::topology
