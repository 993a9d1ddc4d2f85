// The communicators that a field's contestants run with.
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "tools/tune_tool/field.h"
#include "tools/tune_tool/stopwatch.h"

namespace tessera::tune {

// Of a contestant, or of the field's automatic(). `base`: what all have in common, the profile that
// the automatic one chooses by included.
Entrant entrant_of(const Field& field, size_t who, const Config& base);

// Of all, by index; the automatic one where somebody is judged.
std::vector<Entrant> entrants_of(const Field& field, const Config& base);

}  // namespace tessera::tune
