// Works that make progress together: sends and receives, several communicators, several ranks of
// one thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "comm/processes.h"
#include "comm/ranks.h"

namespace tessera::test {
namespace {

Call transfer(bool receives, void* buffer, size_t count, int peer) {
  Call call;
  call.collective = Collective::kSendRecv;
  call.receives = receives;
  (receives ? call.recv : const_cast<void*&>(call.send)) = buffer;
  call.count = count;
  call.type = DataType::kInt32;
  call.root = peer;
  return call;
}

// Everybody sends to everybody (itself included), several messages per pair.
std::string exchange_all(Communicator& comm, size_t count) {
  const int ranks = comm.size();
  constexpr int kMessages = 3;
  std::vector<std::vector<int32_t>> out(ranks * kMessages), in(ranks * kMessages);
  std::vector<Work> works;
  for (int peer = 0; peer < ranks; ++peer) {
    for (int m = 0; m < kMessages; ++m) {
      auto& sent = out[peer * kMessages + m];
      auto& received = in[peer * kMessages + m];
      sent.resize(count);
      received.resize(count);
      std::iota(sent.begin(), sent.end(), comm.rank() * 1000 + peer * 100 + m);
      works.push_back({&comm, transfer(false, sent.data(), count, peer)});
      works.push_back({&comm, transfer(true, received.data(), count, peer)});
    }
  }
  const Status status = execute(works);
  if (!status.ok()) return status.message();
  for (int peer = 0; peer < ranks; ++peer) {
    for (int m = 0; m < kMessages; ++m) {
      for (size_t i = 0; i < count; ++i) {
        const int32_t wanted = peer * 1000 + comm.rank() * 100 + m + static_cast<int32_t>(i);
        if (in[peer * kMessages + m][i] != wanted)
          return "wrong data from rank " + std::to_string(peer) + " at " + std::to_string(i);
      }
    }
  }
  return {};
}

TEST(Groups, SendsAndReceivesBetweenAllRanksDeliver) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_ranks(ranks, quick_options(), [](Communicator& comm) {
      for (const size_t count : {0, 1, 12, 13, 2000, 5000, 70'001}) {
        for (int repeat = 0; repeat < 3; ++repeat) EXPECT_EQ(exchange_all(comm, count), "");
      }
    });
  }
}

TEST(Groups, SendsAndReceivesBetweenProcessesDeliver) {
  for (const bool single_copy : {true, false}) {
    CommOptions options = quick_options();
    options.config.single_copy = single_copy;
    const std::vector<Ending> endings = run_processes(3, options, [](Communicator& comm) {
      for (const size_t count : {0, 1, 12, 2000, 70'001}) {
        if (std::string fault = exchange_all(comm, count); !fault.empty()) return fault;
      }
      return std::string();
    });
    for (const Ending& ending : endings) EXPECT_EQ(ending.exit_code, 0) << ending.text;
  }
}

TEST(Groups, ARankThatDidItsPartMayDestroyAndExitWhileOthersStillWork) {
  for (int round = 0; round < 20; ++round) {
    const std::vector<Ending> endings = run_processes(2, quick_options(), [](Communicator& comm) {
      int32_t value = 7;
      if (comm.rank() == 0) {
        const Work work{&comm, transfer(false, &value, 1, 1)};
        return execute({&work, 1}).message();
      }
      value = 0;
      const Work work{&comm, transfer(true, &value, 1, 0)};
      const Status status = execute({&work, 1});
      return status.ok() && value != 7 ? std::string("wrong value") : status.message();
    });
    for (const Ending& ending : endings) EXPECT_EQ(ending.exit_code, 0) << ending.text;
  }
}

TEST(Groups, OneThreadDrivesAllRanksOfACollective) {
  constexpr int kRanks = 5;
  Result<UniqueId> id = create_unique_id(quick_options().config);
  ASSERT_TRUE(id.ok());
  std::vector<std::unique_ptr<Communicator>> comms(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      auto comm = Communicator::create(id.value(), kRanks, rank, quick_options());
      ASSERT_TRUE(comm.ok()) << comm.status().message();
      comms[rank] = std::move(comm).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const size_t count : {1, 700, 9000, 100'000}) {
    std::vector<std::vector<float>> data(kRanks, std::vector<float>(count, 1.5F));
    std::vector<Work> works;
    for (int rank = 0; rank < kRanks; ++rank) {
      Call call;
      call.collective = Collective::kAllReduce;
      call.send = call.recv = data[rank].data();
      call.count = count;
      works.push_back({comms[rank].get(), call});
      works.push_back({comms[rank].get(), call});
    }
    const Status status = execute(works);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(data[rank][count - 1], 1.5F * 25);
  }
}

TEST(Groups, ASendToItselfWithoutAReceiveIsRefused) {
  run_ranks(1, quick_options(), [](Communicator& comm) {
    int32_t value = 0;
    const Work work{&comm, transfer(false, &value, 1, 0)};
    const Status status = execute({&work, 1});
    EXPECT_EQ(status.code(), Code::kInvalidUsage);
  });
}

TEST(Groups, TransfersWithDifferentCountsNameBothCounts) {
  for (const size_t count : {10, 30'000}) {
    run_ranks(2, quick_options(400), [&](Communicator& comm) {
      std::vector<int32_t> buffer(count + 1);
      const bool receives = comm.rank() == 1;
      const Work work{
          &comm, transfer(receives, buffer.data(), receives ? count + 1 : count, 1 - comm.rank())};
      Status status = execute({&work, 1});
      if (status.ok()) {
        while (comm.error().ok()) std::this_thread::yield();
        status = comm.error();
      }
      EXPECT_EQ(status.code(), Code::kInvalidUsage);
      EXPECT_THAT(status.message(), testing::HasSubstr(std::to_string(count + 1)));
    });
  }
}

TEST(Groups, SplitMakesCommunicatorsThatWork) {
  run_ranks(6, quick_options(), [](Communicator& comm) {
    Result<std::unique_ptr<Communicator>> half =
        comm.split(comm.rank() % 2, -comm.rank(), comm.options());
    ASSERT_TRUE(half.ok()) << half.status().message();
    ASSERT_EQ(half.value()->size(), 3);
    EXPECT_EQ(half.value()->rank(), 2 - comm.rank() / 2);  // keys reverse the order
    int32_t mine = 1 << comm.rank(), sum = 0;
    Call call;
    call.collective = Collective::kAllReduce;
    call.send = &mine;
    call.recv = &sum;
    call.count = 1;
    call.type = DataType::kInt32;
    ASSERT_TRUE(run(*half.value(), call).ok());
    EXPECT_EQ(sum, comm.rank() % 2 == 0 ? 0b010101 : 0b101010);
    Result<std::unique_ptr<Communicator>> none =
        comm.split(comm.rank() == 0 ? 0 : -1, 0, comm.options());
    ASSERT_TRUE(none.ok());
    EXPECT_EQ(none.value() != nullptr, comm.rank() == 0);
  });
}

}  // namespace
}  // namespace tessera::test
