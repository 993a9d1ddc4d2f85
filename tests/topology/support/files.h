// Topology files for tests: those of real machines, where they lie beside the source tree or where
// TESSERA_SHARED points, and the small ones of corpus/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "topology/machine.h"

namespace tessera::topology::testing {

// Empty: there are none here.
std::filesystem::path shared_folder();
// In the NCCL format, sorted by name.
std::vector<std::filesystem::path> shared_nccl_files();
std::filesystem::path corpus_folder();
std::string read_text(const std::filesystem::path& path);

// A machine in the order in which a file would describe it, with any mix of what is given, absent
// and unreadable.
Machine random_machine(unsigned seed);

// Parses; a failure fails the test and gives an empty machine.
Machine parsed(const std::string& text);
// "ok", or the message.
std::string parse_error(const std::string& text);

// <system version="1"><cpu numaid="0" affinity="ff">...</cpu></system>
std::string on_one_cpu(const std::string& body);

// How many warnings contain the text.
int warnings_with(const Machine& machine, const std::string& text);
// All warnings, one a line.
std::string warnings_of(const Machine& machine);

}  // namespace tessera::topology::testing
