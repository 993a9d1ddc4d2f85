// The machine that this process runs on.
#include <fmt/format.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/config.h"
#include "topology/hwloc_bitmap.h"
#include "topology/hwloc_read.h"
#include "topology/hwloc_topology.h"

// Of hwloc/plugins.h, which C++ cannot include.
extern "C" int hwloc_hide_errors(void);

namespace tessera::topology {
namespace {

// hwloc reads the variable at the first message of a process and remembers it.
void hush() {
  constexpr const char* kVariable = "HWLOC_HIDE_ERRORS";
  if (__libc_single_threaded == 0) return;
  if (in_environment(kVariable) || ::setenv(kVariable, "2", 1) != 0) return;
  hwloc_hide_errors();
  ::unsetenv(kVariable);
}

// Whether sysfs describes processors; sandboxes mask it. hwloc looks for the same files.
bool sysfs_has_processors() {
  for (const char* folder : {"/sys/bus/cpu/devices", "/sys/devices/system/cpu"})
    for (const char* file : {"package_cpus", "core_cpus", "core_siblings", "thread_siblings"})
      if (::access(fmt::format("{}/cpu0/topology/{}", folder, file).c_str(), R_OK) == 0)
        return true;
  return false;
}

// Whether a folder of NUMA nodes is there and names none, as where a container masks it. hwloc takes
// for granted that Linux cannot have that, and aborts the process.
bool sysfs_masks_nodes() {
  const auto is_node = [](const std::filesystem::directory_entry& entry) {
    const std::string name = entry.path().filename();
    return name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9';
  };
  for (const char* folder : {"/sys/devices/system/node", "/sys/bus/node/devices"}) {
    std::error_code error;
    if (!std::filesystem::exists(folder, error)) continue;
    const std::filesystem::directory_iterator entries(folder, error);
    if (std::none_of(begin(entries), end(entries), is_node)) return true;
  }
  return false;
}

// The allowed processors of the topology of this machine, narrowed to the thread's affinity.
void respect_affinity(hwloc_topology_t topology) {
  Bitmap allowed(hwloc_topology_get_allowed_cpuset(topology));
  Bitmap bound;
  if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_THREAD) != 0) return;
  allowed.keep(bound);
  if (allowed.empty()) return;
  hwloc_topology_allow(topology, allowed.get(), nullptr, HWLOC_ALLOW_FLAG_CUSTOM);
}

}  // namespace

Result<HwlocTopology> HwlocTopology::this_machine() {
  const std::string source = "this machine";
  hush();
  Result<Handle> handle = create(source);
  if (!handle.ok()) return handle.status();
  hwloc_topology_t topology = handle.value().get();
  // Without that phase hwloc asks the processors themselves; with it, it would say on the terminal
  // that it cannot. NUMA nodes belong to the same phase.
  if (!sysfs_has_processors() || sysfs_masks_nodes())
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "linux:cpu");
  // hwloc reads sysfs by itself where this component is away, which never frees its table of names.
  hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
  if (hwloc_topology_load(topology) != 0)
    return Status::error(Code::kSystem, "{}: hwloc cannot discover it: {}", source,
                         std::strerror(errno));
  // Variables of hwloc can name another machine.
  if (hwloc_topology_is_thissystem(topology) != 0) {
    respect_affinity(topology);
    add_sysfs_infos(topology, "/sys");
  }
  return HwlocTopology(std::move(handle).value(), source, {});
}

Result<Machine> discover() {
  const Result<HwlocTopology> topology = HwlocTopology::this_machine();
  if (!topology.ok()) return topology.status();
  return machine_of(topology.value());
}

}  // namespace tessera::topology
