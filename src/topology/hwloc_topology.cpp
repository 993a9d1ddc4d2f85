#include "topology/hwloc_topology.h"

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/file.h"
#include "base/of_process.h"
#include "topology/hwloc_document.h"
#include "topology/xml_source.h"

namespace tessera::topology {
namespace {

std::string reason() { return std::strerror(errno); }

struct XmlUse {
  std::mutex mutex;
};

}  // namespace

std::unique_lock<std::mutex> alone_with_xml() {
  return std::unique_lock(of_process<XmlUse, &XmlUse::mutex>().mutex);
}

Result<HwlocTopology::Handle> HwlocTopology::create(const std::string& source) {
  // Plugins of hwloc stay loaded for as long as some topology is there: one always is, or libxml2
  // would be gone when a thread ends for which it keeps something.
  static const hwloc_topology_t keeper = [] {
    hwloc_topology_t first = nullptr;
    return hwloc_topology_init(&first) == 0 ? first : nullptr;
  }();
  hwloc_topology_t topology = nullptr;
  if (keeper == nullptr || hwloc_topology_init(&topology) != 0)
    return Status::error(Code::kSystem, "{}: hwloc cannot start: {}", source, reason());
  Handle handle(topology);
  if (hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0)
    return Status::error(Code::kSystem, "{}: hwloc refuses the filters: {}", source, reason());
  return handle;
}

Result<HwlocTopology> HwlocTopology::from_file(const std::string& path) {
  Result<std::string> bytes = read_file(path, kMostXmlBytes);
  if (!bytes.ok()) return bytes.status();
  return from_document(bytes.value(), path);
}

Result<HwlocTopology> HwlocTopology::from_document(std::string_view bytes,
                                                   const std::string& name) {
  Result<HwlocDocument> document = normalise_hwloc_document(bytes, name);
  if (!document.ok()) return document.status();
  const std::string& text = document->text;
  Result<Handle> handle = create(name);
  if (!handle.ok()) return handle.status();
  hwloc_topology_t topology = handle.value().get();
  const auto alone = alone_with_xml();
  if (text.size() >= std::numeric_limits<int>::max() ||
      hwloc_topology_set_xmlbuffer(topology, text.c_str(), static_cast<int>(text.size() + 1)) !=
          0 ||
      hwloc_topology_load(topology) != 0)
    return Status::error(Code::kInvalidArgument, "{}: hwloc refuses the document: {}", name,
                         reason());
  return HwlocTopology(std::move(handle).value(), name, std::move(document->warnings));
}

namespace {

// How many leaves a synthetic description has, at most: the product of the numbers that follow a
// colon or stand for themselves, attributes in parentheses left out.
double leaves_of(const std::string& text) {
  double product = 1, number = 0;
  int depth = 0;
  for (const char c : text + " ") {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth > 0) continue;
    if (c >= '0' && c <= '9') {
      number = 10 * number + (c - '0');
    } else {
      if (c == ' ' || c == '(') product *= std::max(number, 1.0);
      number = 0;
    }
  }
  return product;
}

}  // namespace

Result<HwlocTopology> HwlocTopology::synthetic(const std::string& text) {
  constexpr double kMostLeaves = 1 << 14;
  const std::string source = "synthetic: " + text;
  if (leaves_of(text) > kMostLeaves) {
    return Status::error(
        Code::kInvalidArgument,
        "\"{}\" describes more than {} processing units, which are too many for one "
        "host",
        text, static_cast<int>(kMostLeaves));
  }
  Result<Handle> handle = create(source);
  if (!handle.ok()) return handle.status();
  hwloc_topology_t topology = handle.value().get();
  if (hwloc_topology_set_synthetic(topology, text.c_str()) != 0 ||
      hwloc_topology_load(topology) != 0)
    return Status::error(Code::kInvalidArgument,
                         "\"{}\" is no synthetic description of hwloc, such as \"pack:2 numa:1 "
                         "core:8 pu:2\"",
                         text);
  return HwlocTopology(std::move(handle).value(), source, {});
}

}  // namespace tessera::topology
