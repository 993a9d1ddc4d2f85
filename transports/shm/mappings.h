// Peers' allocations (ncclMemAlloc memory) that this rank has mapped, by owner and allocation id.
// The owner sends the descriptor once; the mapping stays until the owner says that it freed the
// allocation, or the end of the communicator.
// Thread safety: one thread at a time. find() does not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace tessera::shm {

class Mappings {
 public:
  Mappings() = default;
  ~Mappings();
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  // nullptr when it is not mapped.
  std::byte* find(int owner, uint64_t allocation) const;
  Status add(int owner, uint64_t allocation, const Fd& fd);
  void remove(int owner, uint64_t allocation);

 private:
  struct Mapping {
    int owner;
    uint64_t allocation;
    std::byte* base;
    size_t bytes;
  };
  std::vector<Mapping> mappings_;  // few: looked through from the latest used
};

}  // namespace tessera::shm
