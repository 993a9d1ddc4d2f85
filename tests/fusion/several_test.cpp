// Several operators, and collectives beside them, on one communicator.
#include "fusion/workload.h"

namespace tessera::test {
namespace {

FusedDescription sum_of(int64_t rows, int64_t cols) {
  FusedDescription d;
  d.collective = Collective::kAllReduce;
  d.rows = rows;
  d.cols = cols;
  d.tile_rows = d.tile_cols = 8;
  return d;
}

struct Sum {
  Sum(Communicator& comm, int64_t rows, int64_t cols)
      : op(make_operator(comm, sum_of(rows, cols))),
        input(static_cast<size_t>(rows * cols), 1),
        output(input.size()) {}
  void launch() { ASSERT_EQ(op->launch(input.data(), output.data()).message(), ""); }
  void report() {
    const FusedDescription& d = op->description();
    const TileGrid grid{d.rows, d.cols, d.tile_rows, d.tile_cols};
    for (int64_t row = 0; row < grid.down(); ++row)
      for (int64_t col = 0; col < grid.across(); ++col)
        ASSERT_EQ(op->tile_done(row, col).message(), "");
  }
  void wait() {
    ASSERT_EQ(op->wait().message(), "");
    EXPECT_EQ(output, std::vector<float>(output.size(), static_cast<float>(op->ranks())));
  }
  std::unique_ptr<FusedOperator> op;
  std::vector<float> input, output;
};

class Layout : public testing::TestWithParam<std::string> {
 protected:
  void run(const std::function<void(Communicator&)>& body) {
    CommOptions options = quick_options();
    const bool hosts = GetParam() == "hosts";
    if (!hosts) options.config.emulate = GetParam();
    run_ranks(2, options, body, hosts ? std::vector{0, 1} : std::vector<int>());
  }
};

TEST_P(Layout, RanksMayWaitForOperatorsInDifferentOrder) {
  for (const bool remote : {false, true}) {
    run([remote](Communicator& comm) {
      Sum a(comm, 64, 16), b(comm, 64, 24);
      for (int round = 0; round < 20; ++round) {
        a.launch();
        b.launch();
        a.report();
        b.report();
        const bool first = (comm.rank() == 0) == remote;
        (first ? a : b).wait();
        (first ? b : a).wait();
      }
    });
  }
}

TEST_P(Layout, ARankMayCallACollectiveBeforeItWaitsForAnOperator) {
  run([](Communicator& comm) {
    Sum a(comm, 256, 16);
    std::vector<float> in(1000, 1), out(1000);
    const auto collective = [&] {
      ASSERT_EQ(test::run(comm, all_reduce(in.data(), out.data(), in.size())).message(), "");
    };
    for (int round = 0; round < 20; ++round) {
      a.launch();
      a.report();
      if (comm.rank() == 0) collective();
      a.wait();
      if (comm.rank() == 1) collective();
      EXPECT_EQ(out[999], 2);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Layout,
                         testing::Values("", "hosts", "uniform:bandwidth=1GB/s,latency=10us"),
                         [](const auto& kind) {
                           return kind.param.empty()      ? std::string("memory")
                                  : kind.param == "hosts" ? std::string("hosts")
                                                          : std::string("emulated");
                         });

TEST(ManyOperators, GiveTheirScratchBack) {
  run_ranks(3, quick_options(), [](Communicator& comm) {
    for (int64_t i = 0; i < 40; ++i) {
      Sum sum(comm, 640 + 8 * i, 1024);
      sum.launch();
      sum.report();
      sum.wait();
      ASSERT_EQ(sum.op->close().message(), "");
    }
    for (int root = 0; root < 3; ++root) {
      std::vector<float> in(100'000, 1), out(100'000);
      Call call = all_reduce(in.data(), out.data(), in.size());
      call.collective = Collective::kReduce;
      call.root = root;
      ASSERT_EQ(test::run(comm, call).message(), "");
    }
  });
}

TEST(ManyOperators, ThatAreAllInUseAreRefusedOnAllRanksAndDestroyedOnesMakeRoom) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    std::vector<std::unique_ptr<FusedOperator>> operators;
    Status refusal;
    for (int64_t i = 0; i < 200 && refusal.ok(); ++i) {
      auto op = FusedOperator::create(host_rank(comm), sum_of(1024 + 8 * i, 1024));
      if (op.ok()) {
        operators.push_back(std::move(op).value());
      } else {
        refusal = op.status();
      }
    }
    EXPECT_NE(refusal.message().find("destroy operators"), std::string::npos);
    ASSERT_EQ(operators.front()->close().message(), "");
    operators.erase(operators.begin());
    Sum last(comm, 512, 512);
    ASSERT_NE(last.op, nullptr);
    last.launch();
    last.report();
    last.wait();
  });
}

TEST(RaggedRows, ColumnMajorMatricesHaveTheRowsThatTheRankOwns) {
  run_ranks(2, quick_options(), [](Communicator& comm) {
    FusedDescription d = sum_of(79, 50);
    d.collective = Collective::kReduceScatter;
    d.column_major = true;
    const auto op = make_operator(comm, d);
    EXPECT_EQ(op->description().output_ld, comm.rank() == 0 ? 40 : 39);
    d.output_ld = comm.rank() == 0 ? 40 : 39;
    EXPECT_NE(make_operator(comm, d), nullptr);
  });
}

}  // namespace
}  // namespace tessera::test
