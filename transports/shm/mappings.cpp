#include "transports/shm/mappings.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/error_text.h"

namespace tessera::shm {

Mappings::~Mappings() {
  for (const Mapping& mapping : mappings_) munmap(mapping.base, mapping.bytes);
}

std::byte* Mappings::find(int owner, uint64_t allocation) const {
  for (const Mapping& mapping : mappings_) {
    if (mapping.owner == owner && mapping.allocation == allocation) return mapping.base;
  }
  return nullptr;
}

Status Mappings::add(int owner, uint64_t allocation, const Fd& fd) {
  if (find(owner, allocation) != nullptr) return {};
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) {
    return Status::error(Code::kSystem, "memory of rank {}: fstat: {}", owner, error_text(errno));
  }
  const auto bytes = static_cast<size_t>(info.st_size);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    return Status::error(Code::kSystem, "memory of rank {}: mmap of {} bytes: {}", owner, bytes,
                         error_text(errno));
  }
  if (bytes >= size_t{2} << 20) madvise(base, bytes, MADV_HUGEPAGE);  // a wish: refusal is fine
  mappings_.insert(mappings_.begin(), {owner, allocation, static_cast<std::byte*>(base), bytes});
  return {};
}

void Mappings::remove(int owner, uint64_t allocation) {
  const auto found = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& mapping) {
    return mapping.owner == owner && mapping.allocation == allocation;
  });
  if (found == mappings_.end()) return;
  munmap(found->base, found->bytes);
  mappings_.erase(found);
}

}  // namespace tessera::shm
