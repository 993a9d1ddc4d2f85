// Reading a file as a whole.
// Thread safety: pure but for the file.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace tessera {

// What a regular file of at most `most` bytes holds. Never waits: a pipe or device in its place is
// an error. Errors begin with the path: kSystem it cannot be read, kInvalidArgument it is too large.
Result<std::string> read_file(const std::string& path, size_t most);

}  // namespace tessera
