// Bytes of messages, as the perf tests count them: all blocks of the larger buffer.
#pragma once

#include <cstddef>
#include <string>

#include "base/types.h"

namespace tessera::tools {

// Of a message whose blocks have so many bytes.
size_t message_bytes(Collective collective, int ranks, size_t block_bytes);

// Of one block of a message: whole float32 elements, and at least one unless nothing is asked for.
size_t block_bytes(Collective collective, int ranks, size_t asked);

// A line that says what is computed where `asked` is no whole number of float32 in every block;
// else empty.
std::string rounding_note(Collective collective, int ranks, size_t asked, size_t block_bytes);

}  // namespace tessera::tools
