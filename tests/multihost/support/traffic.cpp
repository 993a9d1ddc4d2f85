#include "multihost/support/traffic.h"

#include <gtest/gtest.h>

#include <random>

#include "comm/checks.h"

namespace tessera::multihost {
namespace {

// The same on every rank.
test::Case random_case(std::mt19937& random, int ranks, size_t largest) {
  const Collective collective = test::kData[random() % std::size(test::kData)];
  const int root =
      has_root(collective) ? static_cast<int>(random() % static_cast<unsigned>(ranks)) : -1;
  // As many small ones as large ones.
  size_t count = random() % (largest + 1);
  for (uint32_t shrink = random() % 5; shrink > 0; --shrink) count /= 13;
  return {collective, root, count, random() % 2 == 0};
}

}  // namespace

std::string describe(const Status& status) {
  return status.ok() ? "" : std::string(to_string(status.code())) + ": " + status.message();
}

Result<bool> agree_to_end(Communicator& comm, Board& board) {
  int32_t enough = comm.rank() == 0 ? board.enough.load() : 0;
  Call call;
  call.collective = Collective::kBroadcast;
  call.root = 0;
  call.send = comm.rank() == 0 ? &enough : nullptr;
  call.recv = &enough;
  call.count = 1;
  call.type = DataType::kInt32;
  if (Status status = test::run(comm, call); !status.ok()) return status;
  return enough != 0;
}

std::string run_traffic(Communicator& comm, Board& board, const Traffic& traffic) {
  std::mt19937 random(traffic.seed);
  for (int round = 0; round < traffic.rounds; ++round) {
    const Status status = test::attempt(comm, random_case(random, comm.size(), traffic.largest));
    if (!status.ok()) return describe(status);
    if (testing::Test::HasFailure()) return "wrong results";
    ++board.rounds[comm.rank()];
    if (round % 8 != 0) continue;
    const Result<bool> end = agree_to_end(comm, board);
    if (!end.ok()) return describe(end.status());
    if (end.value()) break;
  }
  return "";
}

}  // namespace tessera::multihost
