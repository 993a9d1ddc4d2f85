// Whether attribute values of an hwloc document are what hwloc's parser expects. hwloc reads them
// with sscanf and strtoul and believes what it gets; these functions look first.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "topology/hwloc_bitmap.h"

namespace tessera::topology {

// Decimal digits only, at most `most`.
std::optional<uint64_t> parse_number(std::string_view text, uint64_t most);
// "0x00000003,,0xf" or "0xf...f,0x1"; at most CpuSet::kMost bits.
std::optional<Bitmap> parse_bitmap(std::string_view text);
// A finite number from 0 to 1e9: "1.000000".
std::optional<double> parse_decimal(std::string_view text);

bool is_pci_bus_id(std::string_view text);  // "0000:17:00.0"
bool is_pci_type(std::string_view text);    // "0302 [10de:1db6] [10de:0000] a1"
bool is_bridge_pci(std::string_view text);  // "0000:[01-0a]"

// Text that both XML backends of hwloc accept: printable ASCII, every other byte becomes '?' or,
// where it is white space, ' '.
std::string printable(std::string_view text);

}  // namespace tessera::topology
