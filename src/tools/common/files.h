// Files and pictures of the command-line programs.
#pragma once

#include <string>

#include "base/status.h"

namespace tessera::tools {

Result<std::string> read_file(const std::string& path);
// Replaces the file; "-" is standard output.
Status write_file(const std::string& path, const std::string& text);

// Runs Graphviz's dot over a description. Error: dot is not installed, or failed.
Status draw_svg(const std::string& dot, const std::string& path);

}  // namespace tessera::tools
