// Which parts of a rank's arena are in use, by offset. All ranks carve and give back the same in
// the same order, so that all know the same.
//
//   [ pairs | plans of collectives, never given back -->     <-- what borrowers have | ]
//
// Borrowers' parts lie in the upper half and come and go; those of collectives may grow as far as
// borrowers have not come.
// Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace tessera {

class Scratch {
 public:
  // Of an arena of `bytes`, the first `kept` are in use for good.
  Scratch(size_t kept, size_t bytes) : bottom_(kept), top_(bytes), floor_(bytes / 2) {}

  // For good; nothing: there is no room.
  std::optional<size_t> carve(size_t bytes) {
    if (bytes > top_ - bottom_) return {};
    bottom_ += bytes;
    return bottom_ - bytes;
  }
  size_t left() const { return top_ - bottom_; }

  // Until release(): the first gap that is large enough.
  std::optional<size_t> borrow(size_t bytes);
  void release(size_t offset, size_t bytes);

 private:
  size_t bottom_, top_, floor_;    // collectives' end, the lowest that was ever borrowed, its limit
  std::map<size_t, size_t> gaps_;  // of what was borrowed: offset -> bytes
};

}  // namespace tessera
