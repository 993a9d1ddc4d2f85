// Ranks that are threads of the test's process.
#pragma once

#include <gtest/gtest.h>
#include <nccl.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {

inline std::string last_error() { return ncclGetLastError(nullptr); }

// Communicators of one process, one per rank; destroyed at the end.
class Ranks {
 public:
  explicit Ranks(int ranks) : comms_(ranks) {
    EXPECT_EQ(ncclCommInitAll(comms_.data(), ranks, nullptr), ncclSuccess) << last_error();
  }
  ~Ranks() {
    for (ncclComm_t comm : comms_)  // NULL where the test took it
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << last_error();
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int size() const { return static_cast<int>(comms_.size()); }
  ncclComm_t operator[](int rank) const { return comms_[rank]; }
  // The test ends it itself.
  ncclComm_t take(int rank) { return std::exchange(comms_[rank], nullptr); }

  // Runs `body(rank, comm)` on a thread per rank.
  void on_threads(const std::function<void(int, ncclComm_t)>& body) const {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank)
      threads.emplace_back([&, rank] { body(rank, comms_[rank]); });
    for (std::thread& thread : threads) thread.join();
  }
  // The same from one thread, all ranks in one group.
  void in_group(const std::function<void(int, ncclComm_t)>& body) const {
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < size(); ++rank) body(rank, comms_[rank]);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << last_error();
  }

 private:
  std::vector<ncclComm_t> comms_;
};

}  // namespace tessera
