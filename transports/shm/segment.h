// shm: memory that all ranks of a host map: a memfd, passed over a Unix socket. It has no name;
// nothing is left behind by anyone.
//
// Ranks of one process share one mapping per segment, so that they also share what hangs on it (see
// attach).
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <memory>

#include "base/fd.h"
#include "base/status.h"

namespace tessera::shm {

// A mapped segment. Unmapped when the last owner of this process lets go.
class Segment {
 public:
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* base() const { return base_; }
  size_t bytes() const { return bytes_; }

  // State of this process that belongs to the segment: set once by whoever comes first, shared by
  // all its ranks.
  std::shared_ptr<void> shared_state(std::shared_ptr<void> (*make)());

  // Makes sure that [offset, offset + bytes) has memory behind it, so that a later touch cannot
  // fault. kSystem when short.
  Status commit(size_t offset, size_t bytes);

 private:
  friend Result<std::shared_ptr<Segment>> attach(Fd fd);
  Segment(Fd fd, std::byte* base, size_t bytes) : fd_(std::move(fd)), base_(base), bytes_(bytes) {}
  Fd fd_;
  std::byte* base_;
  size_t bytes_;
  std::shared_ptr<void> state_;
};

// A new zeroed segment; address space only, memory comes with commit() or the first touch.
Result<Fd> create(size_t bytes);
// As Segment::commit, before the segment is mapped.
Status commit(const Fd& fd, size_t offset, size_t bytes);
// Maps the segment, or returns the mapping that this process already has.
Result<std::shared_ptr<Segment>> attach(Fd fd);

}  // namespace tessera::shm
