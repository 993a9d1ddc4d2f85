// Elements of the lists of a Machine by their index there, which is an int.
#pragma once

#include <cstddef>

namespace tessera::topology {

// Requires 0 <= index < size.
template <class List>
auto& at(List& list, int index) {
  return list[static_cast<size_t>(index)];
}

}  // namespace tessera::topology
