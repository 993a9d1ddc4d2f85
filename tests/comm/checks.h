// Calls of every collective whose results are compared with plain loops.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "comm/ranks.h"
#include "plan/shape.h"

namespace tessera::test {

// What rank `rank` contributes at element i of its input block b.
inline int32_t value(int rank, int block, size_t i) {
  return static_cast<int32_t>(rank * 1000003 + block * 7919 + static_cast<int>(i) * 31 + 1);
}

struct Case {
  Collective collective;
  int root;
  size_t count;
  bool in_place;
};

// What an output block must hold: value() and its sums grow evenly with the element's number.
struct Wanted {
  uint32_t first = 0, step = 0;
  int32_t at(size_t i) const {
    return static_cast<int32_t>(first + step * static_cast<uint32_t>(i));
  }
};

inline Wanted wanted(const Case& c, int ranks, int rank, int block) {
  Wanted sum;
  for (int from = 0; from < ranks; ++from) {
    const int in = required_input_block(c.collective, ranks, c.root, rank, block, from);
    if (in < 0) continue;
    sum.first += static_cast<uint32_t>(value(from, in, 0));
    sum.step += static_cast<uint32_t>(value(from, in, 1) - value(from, in, 0));
  }
  return sum;
}

// Makes the call and, if it ends well, checks its result.
inline Status attempt(Communicator& comm, const Case& c) {
  const int ranks = comm.size(), rank = comm.rank();
  const int ins = input_blocks(c.collective, ranks, c.root, rank);
  const int outs = output_blocks(c.collective, ranks, c.root, rank);
  const bool in_place = c.in_place && has_in_place(c.collective, ranks, c.root, rank);
  const int shift = in_place ? in_place_shift(c.collective, ranks, c.root, rank) : 0;
  constexpr int32_t kGuard = 0x5a5a5a5a;
  std::vector<int32_t> input(ins * c.count + 2, kGuard), output(outs * c.count + 2, kGuard);
  int32_t* send = input.data() + 1;
  int32_t* recv = output.data() + 1;
  if (in_place && outs >= ins) send = recv + shift * static_cast<ptrdiff_t>(c.count);
  if (in_place && outs < ins) recv = send - shift * static_cast<ptrdiff_t>(c.count);
  for (int b = 0; b < ins; ++b) {
    for (size_t i = 0; i < c.count; ++i) send[b * c.count + i] = value(rank, b, i);
  }
  Call call;
  call.collective = c.collective;
  call.send = ins > 0 ? send : nullptr;
  call.recv = outs > 0 ? recv : nullptr;
  call.count = c.count;
  call.type = DataType::kInt32;
  call.root = c.root;
  Status status = run(comm, call);
  if (!status.ok()) return status;
  for (int b = 0; b < outs; ++b) {
    const Wanted block = wanted(c, ranks, rank, b);
    for (size_t i = 0; i < c.count; ++i) {
      const int32_t right = block.at(i);
      if (recv[b * c.count + i] == right) continue;
      ADD_FAILURE() << recv[b * c.count + i] << " instead of " << right << ": "
                    << to_string(c.collective) << " ranks " << ranks << " rank " << rank << " root "
                    << c.root << " count " << c.count << " block " << b << " element " << i
                    << " in place " << in_place;
      return status;
    }
  }
  EXPECT_EQ(input.front(), kGuard);
  EXPECT_EQ(input.back(), kGuard);
  EXPECT_EQ(output.front(), kGuard);
  EXPECT_EQ(output.back(), kGuard);
  return status;
}

inline void check(Communicator& comm, const Case& c) {
  const Status status = attempt(comm, c);
  ASSERT_TRUE(status.ok()) << status.message();
}

inline void check_sizes(Communicator& comm, Collective collective,
                        const std::vector<size_t>& counts) {
  for (const size_t count : counts) {
    for (int root = 0; root < (has_root(collective) ? std::min(comm.size(), 3) : 1); ++root) {
      for (const bool in_place : {false, true})
        check(comm, {collective, has_root(collective) ? root : -1, count, in_place});
    }
  }
}

inline constexpr Collective kData[] = {Collective::kAllReduce,     Collective::kReduce,
                                       Collective::kBroadcast,     Collective::kAllGather,
                                       Collective::kReduceScatter, Collective::kAllToAll,
                                       Collective::kGather,        Collective::kScatter};

}  // namespace tessera::test
