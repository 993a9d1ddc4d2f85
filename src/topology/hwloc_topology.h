// Owns a topology of hwloc: read from a document, made from a synthetic string, or discovered.
//
// Loaded with every type of object and with what the process may not use. Never falls back: what
// cannot be read is an error, not the running machine.
//
// Silence: documents are checked before hwloc sees them (hwloc_document.h), so that hwloc has
// nothing to print. Where sysfs is masked, in whole or in its NUMA nodes, hwloc is
// told not to look there. What remains is a
// machine whose firmware contradicts itself: hwloc prints that once per process unless
// HWLOC_HIDE_ERRORS=2 is set. this_machine() sets it for a moment if the process has had one thread
// only; otherwise changing the environment is not safe, and it is left alone.
//
// Thread safety: distinct objects may be used freely; one object by one thread at a time.
#pragma once

#include <hwloc.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "topology/machine.h"

namespace tessera::topology {

class HwlocTopology {
 public:
  static Result<HwlocTopology> from_file(const std::string& path);
  // `name` stands for the file in messages.
  static Result<HwlocTopology> from_document(std::string_view bytes, const std::string& name);
  static Result<HwlocTopology> synthetic(const std::string& text);
  // With link speeds of PCI devices and rates of network ports, which hwloc 2 has no place for, as
  // infos (below), and with the calling thread's affinity as the allowed set.
  static Result<HwlocTopology> this_machine();

  hwloc_topology_t get() const { return handle_.get(); }
  const std::string& source() const { return source_; }
  const std::vector<Warning>& warnings() const { return warnings_; }

 private:
  struct Destroy {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  };
  using Handle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;

  HwlocTopology(Handle handle, std::string source, std::vector<Warning> warnings)
      : handle_(std::move(handle)), source_(std::move(source)), warnings_(std::move(warnings)) {}
  static Result<Handle> create(const std::string& source);

  Handle handle_;
  std::string source_;
  std::vector<Warning> warnings_;
};

// Infos of PCI devices and of network devices: texts as sysfs has them.
inline constexpr const char* kLinkSpeed = "PCILinkSpeed";  // "16.0 GT/s PCIe"
inline constexpr const char* kLinkWidth = "PCILinkWidth";  // "16"
inline constexpr const char* kNetSpeed = "NetSpeed";       // "25000", Mb/s
inline constexpr const char* kPortRate = "Port{}Rate";     // "200 Gb/sec (4X HDR)", by port

// What sysfs knows about the devices of the topology of this machine. Files that are absent or
// unreadable are passed over. hwloc_sysfs.cpp.
void add_sysfs_infos(hwloc_topology_t topology, const std::string& sysfs);

// For as long as it is held no other thread of this library is inside hwloc's XML functions: libxml2
// makes its tables at first use, without a lock.
std::unique_lock<std::mutex> alone_with_xml();

}  // namespace tessera::topology
