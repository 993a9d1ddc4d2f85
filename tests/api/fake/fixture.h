// What the tests on fake communicators share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <tessera/stream.h>

#include <string>
#include <thread>
#include <vector>

#include "api/fake/fake_comm.h"

namespace tessera::fake {

class ApiTest : public ::testing::Test {
 protected:
  void SetUp() override { world().reset(); }
  void TearDown() override {
    world().open_gate();
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess) << last_error();
  }

  // `ranks` communicators of this process; ended by the fixture.
  std::vector<ncclComm_t> make_comms(int ranks) {
    std::vector<ncclComm_t> made(ranks);
    EXPECT_EQ(ncclCommInitAll(made.data(), ranks, nullptr), ncclSuccess) << last_error();
    comms_.insert(comms_.end(), made.begin(), made.end());
    return made;
  }
  ncclComm_t make_comm() { return make_comms(1)[0]; }

  // A communicator of one rank, not blocking. Initialised unless the gate is closed.
  ncclComm_t make_nonblocking() {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclInProgress) << last_error();
    comms_.push_back(comm);
    return comm;
  }
  // Polls until nothing is in progress.
  static ncclResult_t settle(ncclComm_t comm) {
    ncclResult_t state = ncclInProgress;
    for (; state == ncclInProgress; std::this_thread::yield())
      if (const ncclResult_t result = ncclCommGetAsyncError(comm, &state); result != ncclSuccess)
        return result;
    return state;
  }

  // The test ends it itself.
  void forget(ncclComm_t comm) { std::erase(comms_, comm); }

  static std::string last_error() { return ncclGetLastError(nullptr); }

  ncclResult_t all_reduce(ncclComm_t comm, size_t count = 8, cudaStream_t stream = nullptr) {
    return ncclAllReduce(buffer_, buffer_, count, ncclFloat32, ncclSum, comm, stream);
  }

  float buffer_[64] = {};

 private:
  std::vector<ncclComm_t> comms_;
};

}  // namespace tessera::fake
