// What goes wrong with tiles that are added onto a peer: it is told by name, and nobody writes into
// memory that its owner has back.
#include <gmock/gmock.h>

#include <barrier>

#include "fusion/onto_work.h"

namespace tessera::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// 4 x 2 tiles; rows of tiles 0 and 1 are rank 0's.
FusedDescription small_onto() { return onto(16, 8, 4, 4); }

// Makes a tile; what it fails with.
std::string make_tile(FusedOperator& op, int64_t row, int64_t col, int launch = 0) {
  const Result<FusedOperator::TilePlace> place = op.tile_onto(row, col);
  if (!place.ok()) return place.status().message();
  put_tile<float>(op, place.value(), launch, row, col);
  return op.tile_done(row, col).message();
}

void make_rows_of(FusedOperator& op, int rank, int64_t skip_row = -1, int64_t skip_col = -1) {
  for (int64_t row = 2 * rank; row < 2 * rank + 2; ++row) {
    for (int64_t col = 0; col < 2; ++col) {
      if (row == skip_row && col == skip_col) continue;
      EXPECT_EQ(make_tile(op, row, col), "");
    }
  }
}

struct Fixture {
  explicit Fixture(Communicator& comm) : op(make_operator(comm, small_onto())) {}
  Status launch() { return op->launch(nullptr, output.data()); }
  std::unique_ptr<FusedOperator> op;
  std::vector<float> output = std::vector<float>(64, -1);
};

TEST(FusedOntoFaults, ATileHasNoPlaceBeforeTheLaunch) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    Fixture f(comm);
    EXPECT_THAT(make_tile(*f.op, 0, 0), HasSubstr("tile (0,0) has no place yet: launch 1"));
    EXPECT_EQ(f.op->tile_onto(4, 0).status().code(), Code::kInvalidArgument);
    EXPECT_THAT(f.op->tile_done(0, 0).message(), HasSubstr("its place was not asked for"));
  });
}

TEST(FusedOntoFaults, ATileAskedForOrReportedTwiceIsAnErrorAndIsAddedOnce) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    Fixture f(comm);
    const int own = comm.rank(), other = 1 - own;
    for (int launch = 0; launch < 3; ++launch) {
      ASSERT_EQ(f.launch().message(), "");
      for (const int rank : {own, other}) {
        EXPECT_EQ(make_tile(*f.op, 2 * rank, 1, launch), "");
        EXPECT_THAT(make_tile(*f.op, 2 * rank, 1), HasSubstr("was asked for twice in a launch"));
        const Status twice = f.op->tile_done(2 * rank, 1);
        EXPECT_EQ(twice.code(), Code::kInvalidUsage);
        EXPECT_THAT(twice.message(), HasSubstr("was reported more than 1 time(s)"));
        EXPECT_THAT(f.op->tile_done(2 * rank, 0).message(), HasSubstr("was not asked for"));
        for (const auto& [row, col] : {std::pair{0, 0}, {1, 0}, {1, 1}})
          EXPECT_EQ(make_tile(*f.op, 2 * rank + row, col, launch), "");
      }
      ASSERT_EQ(f.op->wait().message(), "");
      EXPECT_THAT(make_tile(*f.op, 2 * other, 1), HasSubstr("has no place yet"));
      EXPECT_EQ(f.output[5],
                element<float>(0, launch, own * 8, 5) + element<float>(1, launch, own * 8, 5));
    }
    EXPECT_EQ(f.op->close().message(), "");
  });
}

TEST(FusedOntoFaults, TheDeadlineNamesTheTileThatItsOwnerNeverMade) {
  run_ranks(2, quick_options(400), [](Communicator& comm) {
    Fixture f(comm);
    ASSERT_EQ(f.launch().message(), "");
    if (comm.rank() == 0) {
      make_rows_of(*f.op, 0, 1, 1);
      make_rows_of(*f.op, 1);
    } else {
      make_rows_of(*f.op, 1);
      EXPECT_THAT(make_tile(*f.op, 1, 1), AnyOf(HasSubstr("1 of 8 tiles are missing: (1,1)"),
                                                HasSubstr("to add tile (1,1) waits for rank 0")));
    }
    const Status status = f.op->wait();
    EXPECT_EQ(status.code(), Code::kTimeout);
    EXPECT_THAT(status.message(), HasSubstr("rank 0: fused reduce-scatter"));
    EXPECT_THAT(status.message(), HasSubstr("1 of 8 tiles are missing: (1,1)"));
  });
}

TEST(FusedOntoFaults, TheDeadlineNamesTheTileThatThePeerNeverAdded) {
  run_ranks(2, quick_options(400), [](Communicator& comm) {
    Fixture f(comm);
    ASSERT_EQ(f.launch().message(), "");
    make_rows_of(*f.op, comm.rank());
    make_rows_of(*f.op, 1 - comm.rank(), 1, 0);  // rank 1 leaves out (1,0)
    const Status status = f.op->wait();
    EXPECT_EQ(status.code(), Code::kTimeout);
    EXPECT_THAT(status.message(), HasSubstr("1 of 8 tiles are missing: (1,0)"));
  });
}

TEST(FusedOntoFaults, TheDeadlineNamesTheRankThatNeverLaunched) {
  run_ranks(2, quick_options(400), [](Communicator& comm) {
    Fixture f(comm);
    if (comm.rank() == 0) {
      ASSERT_EQ(f.launch().message(), "");
      make_rows_of(*f.op, 0);
      EXPECT_THAT(make_tile(*f.op, 2, 0), HasSubstr("to add tile (2,0) waits for rank 1"));
    } else {
      while (comm.error().ok()) std::this_thread::yield();
    }
  });
}

// Rank 1 is inside rank 0's output while rank 0 ends: whoever ends waits, then writes are over.
void end_while_the_peer_is_inside(const std::function<void(Communicator&, Fixture&)>& end) {
  std::barrier inside(2);
  std::atomic<bool> adding{false}, ended{false};
  run_ranks(2, quick_options(), [&](Communicator& comm) {
    Fixture f(comm);
    ASSERT_EQ(f.launch().message(), "");
    make_rows_of(*f.op, comm.rank());
    if (comm.rank() == 1) {
      const auto place = f.op->tile_onto(0, 0);
      ASSERT_TRUE(place.ok()) << place.status().message();
      adding = true;
      inside.arrive_and_wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_FALSE(ended);
      put_tile<float>(*f.op, place.value(), 0, 0, 0);
      adding = false;
      EXPECT_EQ(f.op->tile_done(0, 0).message(), "");
      while (!ended) std::this_thread::yield();
      EXPECT_FALSE(f.op->tile_onto(0, 1).ok());
    } else {
      inside.arrive_and_wait();
      end(comm, f);
      EXPECT_FALSE(adding);
      std::fill(f.output.begin(), f.output.end(), -7.0F);
      ended = true;
    }
    while (!ended) std::this_thread::yield();
  });
}

TEST(FusedOntoFaults, AnAbortGivesTheOutputBackWhenThePeerHasLeftIt) {
  end_while_the_peer_is_inside([](Communicator& comm, Fixture& f) {
    comm.abort();
    EXPECT_FALSE(f.op->wait().ok());
  });
}

TEST(FusedOntoFaults, AnOperatorThatIsDestroyedWaitsUntilThePeerHasLeft) {
  end_while_the_peer_is_inside([](Communicator& comm, Fixture& f) {
    EXPECT_THAT(f.op->close().message(), HasSubstr("launch 1 is still under way"));
    comm.abort();
    EXPECT_EQ(f.op->close().message(), "");
    f.op.reset();
  });
}

TEST(FusedOntoFaults, AnOperatorMayBeDestroyedRightAfterAnAbortedLaunch) {
  for (int round = 0; round < 20; ++round) {
    run_ranks(2, quick_options(), [&](Communicator& comm) {
      Fixture f(comm);
      if (!f.launch().ok()) return;  // the other has ended by now
      if (comm.rank() == round % 2) {
        comm.abort();
        EXPECT_EQ(f.op->close().message(), "");
        f.op.reset();
        std::fill(f.output.begin(), f.output.end(), -7.0F);
        return;
      }
      for (const int rank : {comm.rank(), 1 - comm.rank()})
        for (int64_t tile = 0; tile < 4; ++tile) make_tile(*f.op, 2 * rank + tile / 2, tile % 2);
      EXPECT_FALSE(f.op->wait().ok());
    });
  }
}

// A sanitizer sees what is written or read too late.
TEST(FusedOntoFaults, AnOutputMayBeFreedAfterAWaitThatAnAbortEnded) {
  for (int round = 0; round < 40; ++round) {
    const Collective collective =
        round % 2 == 0 ? Collective::kReduceScatter : Collective::kAllReduce;
    run_ranks(2, quick_options(), [&](Communicator& comm) {
      const auto op = make_operator(comm, onto(64, 256, 4, 64, collective));
      ASSERT_NE(op, nullptr);
      for (int launch = 0; launch < 50; ++launch) {
        auto output = std::make_unique<std::vector<float>>(64 * 256);
        if (!op->launch(nullptr, output->data()).ok()) return;
        std::thread kernel([&] {
          std::mt19937_64 random(1);
          for (const int rank : {comm.rank(), 1 - comm.rank()})
            for (const auto& [row, col] : tiles_of(*op, rank, random))
              if (!make_tile(*op, row, col, launch).empty()) return;
        });
        if (launch == 3 + round % 5 && comm.rank() == round / 2 % 2) comm.abort();
        const bool well = op->wait().ok();
        kernel.join();
        output.reset();
        if (!well) return;
      }
      ADD_FAILURE() << "nobody aborted";
    });
  }
}

TEST(FusedOntoFaults, AfterAWaitThatFailedNobodyIsLetIn) {
  std::barrier made(2);
  run_ranks(2, quick_options(), [&](Communicator& comm) {
    Fixture f(comm);
    ASSERT_EQ(f.launch().message(), "");
    make_rows_of(*f.op, comm.rank());
    made.arrive_and_wait();
    comm.revoke();
    EXPECT_FALSE(f.op->wait().ok());
    EXPECT_FALSE(f.op->tile_onto(2 * (1 - comm.rank()), 0).ok());
    EXPECT_FALSE(f.launch().ok());
  });
}

}  // namespace
}  // namespace tessera::test
