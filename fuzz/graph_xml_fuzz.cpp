// Whatever bytes a graph file holds: reading ends, and what was read is written so that nothing
// changes.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "topology/graph_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto graphs = tessera::topology::parse_graph_xml(text, "fuzz.xml");
  if (!graphs.ok()) {
    if (graphs.status().message().rfind("fuzz.xml:", 0) != 0) std::abort();
    return 0;
  }
  const auto again =
      tessera::topology::parse_graph_xml(write_graph_xml(graphs.value()), "written.xml");
  if (!again.ok() || !(again.value() == graphs.value())) std::abort();
  return 0;
}
