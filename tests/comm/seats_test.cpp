// The plans of host ranks follow the rings that topology and graph files give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/ranks.h"

namespace tessera {
namespace {

class SeatsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tessera-seats-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) const {
    std::ofstream(folder_ + "/file.xml") << text;
    return folder_ + "/file.xml";
  }
  // A graph file with one ring of these devices.
  std::string write_ring(const std::vector<int>& devices) const {
    std::string text =
        "<graphs version='1'><graph id='0' pattern='4' crossnic='0' nchannels='1' speedintra='12' "
        "speedinter='12' latencyinter='0' typeintra='PIX' typeinter='PIX' samechannels='1'>"
        "<channel>";
    for (const int device : devices) text += fmt::format("<gpu dev='{}'/>", device);
    return write(text + "</channel></graph></graphs>");
  }

  std::string folder_;
};

// Sums whose rounding tells in which order the ranks were added: that for rank d starts at the rank
// after d in the ring and goes round to d.
std::vector<float> sums_around(const std::vector<int>& order, const std::vector<float>& values) {
  std::vector<float> sums(order.size());
  for (size_t place = 0; place < order.size(); ++place) {
    const auto value = [&](size_t steps) {
      return values[static_cast<size_t>(order[(place + steps) % order.size()])];
    };
    float sum = value(1);
    for (size_t steps = 2; steps <= order.size(); ++steps) sum += value(steps);
    sums[static_cast<size_t>(order[place])] = sum;
  }
  return sums;
}

CommOptions ring_options() {
  CommOptions options = test::quick_options();
  options.config.algorithm = "ring";
  return options;
}

// What a reduce-scatter along the ring gives each rank. `child`: makes the communicator that it runs
// on; empty: the first one. `hosts` as in run_ranks(). `change`: by rank.
std::vector<float> ring_sums(
    const std::vector<float>& values, const std::function<void(int, Config&)>& change,
    const std::function<std::unique_ptr<Communicator>(Communicator&)>& child = {},
    const std::vector<int>& hosts = {}) {
  std::vector<float> results(values.size());
  const auto body = [&](Communicator& parent) {
    const std::unique_ptr<Communicator> born = child ? child(parent) : nullptr;
    Communicator& comm = born ? *born : parent;
    const auto rank = static_cast<size_t>(comm.rank());
    const std::vector<float> input(values.size(), values[rank]);
    Call call = test::all_reduce(input.data(), &results[rank], 1);
    call.collective = Collective::kReduceScatter;
    const Status end = test::run(comm, call);
    EXPECT_TRUE(end.ok()) << end.message();
  };
  const CommOptions options = ring_options();
  const Result<UniqueId> id = create_unique_id(options.config);
  EXPECT_TRUE(id.ok()) << id.status().message();
  const auto ranks = static_cast<int>(values.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      CommOptions own = options;
      change(rank, own.config);
      if (!hosts.empty())
        own.config.host_id = "host " + std::to_string(hosts[static_cast<size_t>(rank)]);
      auto comm = Communicator::create(id.value(), ranks, rank, own);
      ASSERT_TRUE(comm.ok()) << comm.status().message();
      body(*comm.value());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

// Of three GPUs each. Ranks state their devices, which are dealt out to the sockets in turn.
std::string two_sockets() {
  std::string text = "<system version='1'>";
  for (int socket = 0; socket < 2; ++socket) {
    text += fmt::format(
        "<cpu numaid='{}' affinity='{:04x}' arch='x86_64' vendor='GenuineIntel' "
        "familyid='6' modelid='143'>",
        socket, 7 << (3 * socket));
    for (int i = 0; i < 3; ++i)
      text += fmt::format(
          "<pci busid='0000:{}{}:00.0' class='0x030200' link_speed='16.0 GT/s "
          "PCIe' link_width='16'><gpu dev='{}' rank='{}' sm='80' gdr='1'/></pci>",
          socket, i, 3 * socket + i, 2 * i + socket);
    text += "</cpu>";
  }
  return text + "</system>";
}

const std::vector<float> kTelling = {3e7F, 1.25F, -3e7F, 2.5F, 1e7F, -0.75F};

TEST_F(SeatsTest, RingsOfHostRanksFollowTheFirstRingOfTheGraphFile) {
  const std::vector<int> order = {4, 1, 0, 5, 2, 3};
  const std::string graph = write_ring(order);
  const auto with_file = [&](int, Config& config) { config.graph_file = graph; };
  ASSERT_NE(sums_around(order, kTelling), sums_around({0, 1, 2, 3, 4, 5}, kTelling));
  EXPECT_EQ(ring_sums(kTelling, with_file), sums_around(order, kTelling));
  EXPECT_EQ(ring_sums(kTelling, [](int, Config&) {}), sums_around({0, 1, 2, 3, 4, 5}, kTelling));
  // On several hosts, too, where the file says how they follow each other.
  EXPECT_EQ(ring_sums(kTelling, with_file, {}, {0, 0, 0, 1, 1, 1}), sums_around(order, kTelling));
}

TEST_F(SeatsTest, AGraphFileMeansTheSameOnHostsWithDifferentTopologyFiles) {
  const std::vector<int> order = {4, 1, 0, 5, 2, 3};
  const std::string graph = write_ring(order);
  const std::string machine = folder_ + "/machine.xml";
  std::ofstream(machine) << two_sockets();
  const auto change = [&](int rank, Config& config) {
    config.graph_file = graph;
    if (rank < 3) config.topology_file = machine;  // host 0 only
  };
  EXPECT_EQ(ring_sums(kTelling, change, {}, {0, 0, 0, 1, 1, 1}), sums_around(order, kTelling));
}

TEST_F(SeatsTest, WhatSeveralHostsDumpIsTheOrderInUse) {
  const std::string machine = folder_ + "/machine.xml", dump = folder_ + "/dump.xml";
  std::ofstream(machine) << two_sockets();
  const std::vector<int> hosts = {0, 1, 0, 1, 0, 1};
  const auto found = ring_sums(
      kTelling,
      [&](int, Config& config) {
        config.topology_file = machine;
        config.graph_dump = dump;
      },
      {}, hosts);
  const auto again = ring_sums(
      kTelling, [&](int, Config& config) { config.graph_file = dump; }, {}, hosts);
  EXPECT_EQ(found, again);
  EXPECT_NE(found, sums_around({0, 1, 2, 3, 4, 5}, kTelling)) << "hosts follow each other";
}

TEST_F(SeatsTest, AGraphFileWithoutARingIsAnError) {
  const std::string graph = write(
      "<graphs version='1'><graph id='0' pattern='4' crossnic='0' nchannels='0' speedintra='12' "
      "speedinter='12' latencyinter='0' typeintra='PIX' typeinter='PIX' "
      "samechannels='1'/></graphs>");
  CommOptions options = ring_options();
  options.config.graph_file = graph;
  const Result<UniqueId> id = create_unique_id(options.config);
  ASSERT_TRUE(id.ok());
  const Status end = Communicator::create(id.value(), 1, 0, options).status();
  EXPECT_EQ(end.code(), Code::kInvalidUsage);
  EXPECT_THAT(end.message(), ::testing::HasSubstr("has no rings"));
}

TEST_F(SeatsTest, CommunicatorsThatAreSplitOffKeepTheOrderOfTheirRanks) {
  const std::string graph = write_ring({4, 1, 0, 5, 2, 3});
  const auto backwards = [](Communicator& parent) {
    Result<std::unique_ptr<Communicator>> made = parent.split(0, -parent.rank(), ring_options());
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::move(made).value() : nullptr;
  };
  // Rank r of the parent is rank 5 - r of the child.
  EXPECT_EQ(ring_sums(
                kTelling, [&](int, Config& config) { config.graph_file = graph; }, backwards),
            sums_around({1, 4, 5, 0, 3, 2}, kTelling));
}

TEST_F(SeatsTest, RingsOfHostRanksFollowASearchOnTheMachineOfTheFile) {
  const std::string machine = write(two_sockets());
  const auto sums =
      ring_sums(kTelling, [&](int, Config& config) { config.topology_file = machine; });
  // The ranks of a socket follow each other, in one order of those that are equally good.
  std::vector<std::vector<float>> good;
  std::vector<int> even = {0, 2, 4}, odd = {1, 3, 5};
  do {
    do {
      good.push_back(sums_around({even[0], even[1], even[2], odd[0], odd[1], odd[2]}, kTelling));
    } while (std::next_permutation(odd.begin(), odd.end()));
  } while (std::next_permutation(even.begin(), even.end()));
  EXPECT_THAT(good, ::testing::Contains(sums));
  EXPECT_THAT(good, ::testing::Not(::testing::Contains(sums_around({0, 1, 2, 3, 4, 5}, kTelling))));
}

}  // namespace
}  // namespace tessera
