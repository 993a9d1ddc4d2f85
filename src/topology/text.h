// Numbers and names in the texts of topology files.
//
// Each parser takes the whole text or nothing; blanks around it do not count.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::topology {

std::string_view stripped(std::string_view text);

std::optional<int64_t> parse_integer(std::string_view text);    // decimal
std::optional<uint64_t> parse_hex(std::string_view text);       // digits only, no blanks, no "0x"
std::optional<uint64_t> parse_unsigned(std::string_view text);  // decimal, or hexadecimal after 0x
std::optional<double> parse_real(std::string_view text);        // finite

// "8 GT/s", "16.0 GT/s PCIe" and the like: the number, greater than 0.
std::optional<double> parse_link_speed(std::string_view text);
// Whether the text is one of those that kernels write.
bool usual_link_speed(std::string_view text);
// 24 bits; four digits are class and subclass, as NCCL compares them.
std::optional<uint32_t> parse_pci_class(std::string_view text);

// For messages: in quotes, cut after some 40 characters, control characters replaced.
std::string shown(std::string_view text);

}  // namespace tessera::topology
