// An hwloc XML document made safe to hand to hwloc.
//
// hwloc believes what a document says: sets that do not nest, indexes out of range or a matrix
// that is cut off make it fail without a reason, print to the terminal, drop objects silently or,
// at worst, abort. So the document is read here first, and a new one is written that holds only
// what a Machine needs:
//
//   bytes -> tree -> known elements, checked values, nested sets, ordered children -> bytes
//
// What is odd but readable is put right, with a warning; what is not readable is one error with
// file, line and reason. The new document is plain (no DTD, no comments, no CRLF, ASCII), so both
// XML backends of hwloc, libxml2 and its own, read it alike.
//
// Not kept: memory attributes, CPU kinds, page types, user data, what the exporter supported.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "topology/machine.h"

namespace tessera::topology {

struct HwlocDocument {
  std::string text;
  std::vector<Warning> warnings;
};

// Name of an info of NUMA nodes: their processors as stated, where the tree says otherwise. hwloc
// gives a node the processors of its parent.
inline constexpr const char* kStatedCpuset = "StatedCpuset";

// `name` is the file's, for messages. Schema versions 1.x (hwloc 1) and 2.x (hwloc 2).
Result<HwlocDocument> normalise_hwloc_document(std::string_view bytes, const std::string& name);

}  // namespace tessera::topology
