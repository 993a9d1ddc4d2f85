// Any bytes as an hwloc document: an error or a machine that survives being written and read, never
// a crash, also not in hwloc itself, and nothing on the terminal.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "topology/hwloc_read.h"
#include "topology/hwloc_write.h"

namespace tp = tessera::topology;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto topology = tp::HwlocTopology::from_document(bytes, "fuzz.xml");
  if (!topology.ok()) {
    if (topology.status().message().rfind("fuzz.xml:", 0) != 0) std::abort();
    return 0;
  }
  const tp::Machine machine = tp::machine_of(topology.value());
  const auto text = tp::write_hwloc_xml(topology.value());
  if (!text.ok()) std::abort();
  const auto again = tp::HwlocTopology::from_document(text.value(), "written.xml");
  if (!again.ok()) std::abort();
  const std::string changed = tp::difference(machine, tp::machine_of(again.value()));
  if (!changed.empty()) {
    std::fprintf(stderr, "written and read again: %s\n", changed.c_str());
    std::abort();
  }
  return 0;
}
