// Files and pictures of the command-line programs.
#pragma once

#include <string>

#include "base/status.h"

namespace tessera::tools {

// A regular file.
Result<std::string> read_file(const std::string& path);
// Replaces the file; "-" is standard output.
Status write_file(const std::string& path, const std::string& text);

// Whether write_file() will be able to write it, so that nobody waits for what cannot be kept. Leaves
// an existing file as it is, and no new one.
Status check_writable(const std::string& path);
// The same for an SVG picture, whose name must not end like another picture's: "a.png".
Status check_svg(const std::string& path);

// Whether two names lead to one file, there or not; false if one is empty or a device.
bool same_file(const std::string& a, const std::string& b);

// What main() returns: `code`, or 1 if what was printed could not be written.
int finish(int code);

// Runs Graphviz's dot over a description. Error: dot is not installed, or failed.
Status draw_svg(const std::string& dot, const std::string& path);

}  // namespace tessera::tools
