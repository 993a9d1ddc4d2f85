// The ranks of one communicator that live in this process, and how they finalise.
//
// Finalising is collective, but a thread may finalise its ranks one after the other: all but the
// last of the process return at once, and the last one finalises for all of them. A rank that was
// destroyed meanwhile is kept until then. Thread safety: every member may be called from any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/communicator.h"

namespace tessera::api {

class Clique {
 public:
  // One object per key for as long as anyone holds it. Keys are equal for the ranks of one
  // communicator.
  static std::shared_ptr<Clique> find_or_make(uint64_t key);

  explicit Clique(uint64_t key) : key_(key) {}
  uint64_t key() const { return key_; }

  void join();
  void leave(bool finalized);
  Status finalize(std::shared_ptr<Communicator> comm);

 private:
  const uint64_t key_;
  std::mutex mutex_;
  int members_ = 0;  // joined, and neither left nor finalised
  std::vector<std::shared_ptr<Communicator>> finalized_;
};

// Mixes the parts of a key.
uint64_t mix(uint64_t seed, const void* data, size_t bytes);

// In the child of a fork the lock may be held by a thread that does not exist.
void forget_cliques_after_fork();

}  // namespace tessera::api
