#include "simulator/share.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "simulator/support/machines.h"

namespace tessera::simulator {
namespace {

// A chain of links of the given bandwidths, all in one direction.
machines::Machine chain(const std::vector<double>& gbs) {
  machines::Machine machine;
  machine.nodes.push_back(machine.graph.add_node(machines::node_of(topology::NodeKind::kGpu, "a")));
  for (const double bandwidth : gbs) {
    machine.nodes.push_back(machine.graph.add_node(
        machines::node_of(topology::NodeKind::kGpu, "n" + std::to_string(machine.nodes.size()))));
    machine.graph.add_link(machine.nodes[machine.nodes.size() - 2], machine.nodes.back(),
                           topology::LinkKind::kNvlink, bandwidth, 0);
  }
  return machine;
}

// When each flow (numbered by its lane) would end if nothing changed any more.
std::map<uint32_t, double> ends(Shares& shares) {
  std::map<uint32_t, double> by_lane;
  for (const Shares::Due& due : shares.due()) by_lane[due.lane] = due.time;
  shares.due().clear();
  return by_lane;
}

constexpr double kBytes = 1e6;  // 1000 us at 1 GB/s

TEST(Shares, AFlowHeldBackElsewhereLeavesItsShareToOthers) {
  const machines::Machine machine = chain({10, 4});
  Shares shares(machine.graph);
  const Path both = shares.add_path({0, 2}, 0, 2, 0, 2);
  const Path second = shares.add_path({2}, 1, 2, 1, 2);
  const Path first = shares.add_path({0}, 0, 1, 0, 1);
  shares.start(0, both, 0, 4, kBytes);
  shares.start(0, second, 1, 4, kBytes);
  shares.start(0, first, 2, 10, kBytes);
  shares.settle(0);
  const auto at = ends(shares);
  EXPECT_DOUBLE_EQ(at.at(0), 1000 / 2.0);
  EXPECT_DOUBLE_EQ(at.at(1), 1000 / 2.0);
  EXPECT_DOUBLE_EQ(at.at(2), 1000 / 8.0);
}

TEST(Shares, AFlowThatEndsGivesItsShareBack) {
  const machines::Machine machine = chain({10});
  Shares shares(machine.graph);
  const Path path = shares.add_path({0}, 0, 1, 0, 1);
  shares.start(0, path, 0, 10, kBytes);
  shares.start(0, path, 1, 10, 2 * kBytes);
  shares.settle(0);
  uint32_t version = 0, flow = 0;
  for (const Shares::Due& due : shares.due()) {
    if (due.lane == 0) version = due.version, flow = due.flow;
  }
  shares.due().clear();
  ASSERT_TRUE(shares.finish(200, flow, version));
  shares.settle(200);
  EXPECT_DOUBLE_EQ(ends(shares).at(1), 300);  // 1 MB at 5 GB/s, 1 MB at 10 GB/s
  EXPECT_FALSE(shares.finish(200, flow, version)) << "it has ended already";
}

TEST(Shares, FlowsUnderWayKeepTheirPathsWhenPathsAreForgotten) {
  const machines::Machine machine = chain({10, 4});
  Shares shares(machine.graph);
  shares.start(0, shares.add_path({0}, 0, 1, 0, 1), 0, 10, kBytes);
  shares.start(0, shares.add_path({0}, 0, 1, 0, 1), 1, 10, 2 * kBytes);
  shares.settle(0);
  Shares::Due last{};
  for (const Shares::Due& due : shares.due()) {
    if (due.lane == 0) last = due;
  }
  shares.due().clear();
  shares.forget_paths();
  shares.start(0, shares.add_path({2}, 1, 2, 1, 2), 2, 4, kBytes);
  EXPECT_DOUBLE_EQ(ends(shares).at(2), 250) << "it meets nobody";
  ASSERT_TRUE(shares.finish(200, last.flow, last.version));
  shares.settle(200);
  EXPECT_DOUBLE_EQ(ends(shares).at(1), 300) << "who shared its link gets all of it";
}

TEST(Shares, AChangeElsewhereMovesNothing) {
  const machines::Machine machine = chain({10, 10});
  Shares shares(machine.graph);
  const Path first = shares.add_path({0}, 0, 1, 0, 1), second = shares.add_path({2}, 1, 2, 1, 2);
  shares.start(0, first, 0, 10, kBytes);
  shares.start(0, first, 1, 10, kBytes);
  shares.settle(0);
  shares.due().clear();
  shares.start(10, second, 2, 10, kBytes);
  shares.start(10, second, 3, 10, kBytes);
  shares.settle(10);
  EXPECT_EQ(ends(shares).size(), 2u);
}

TEST(Shares, ALimitBelowTheFairShareLeavesMoreToOthers) {
  const machines::Machine machine = chain({10});
  Shares shares(machine.graph);
  const Path path = shares.add_path({0}, 0, 1, 0, 1);
  shares.start(0, path, 0, 2, kBytes);
  shares.start(0, path, 1, 10, kBytes);
  shares.start(0, path, 2, 10, kBytes);
  shares.settle(0);
  const auto at = ends(shares);
  EXPECT_DOUBLE_EQ(at.at(0), 500);
  EXPECT_DOUBLE_EQ(at.at(1), 250);
  EXPECT_DOUBLE_EQ(at.at(2), 250);
}

TEST(Shares, FanOutBoundsWhatADeviceSendsByItsPeers) {
  machines::Machine machine = machines::star(4, 100, 0);
  machine.graph.nodes[machine.nodes[0]].fan_out = {100, 80, 60};
  Shares shares(machine.graph);
  const TableRoutes routes = machine.routes();
  const auto to = [&](int peer) {
    return shares.add_path(routes.route(0, peer).value().links, machine.nodes[0],
                           machine.nodes[peer], 0, peer);
  };
  const Path one = to(1), two = to(2), three = to(3);
  shares.start(0, one, 0, 100, kBytes);
  EXPECT_DOUBLE_EQ(ends(shares).at(0), 10);
  shares.start(0, two, 1, 100, kBytes);
  shares.start(0, three, 2, 100, kBytes);
  shares.start(0, three, 3, 100, kBytes);  // the same peer again
  shares.settle(0);
  for (const auto& [lane, end] : ends(shares)) EXPECT_DOUBLE_EQ(end, 1000 / 15.0) << lane;
}

struct Placed {
  int first, last;  // links
  double limit, rate;
};

// Max-min: no link carries too much, and each flow is at its limit or on a full link where no other
// flow has more.
void expect_fair(const std::vector<double>& gbs, const std::vector<Placed>& flows) {
  std::vector<double> carried(gbs.size()), most(gbs.size());
  for (const Placed& flow : flows) {
    for (int l = flow.first; l <= flow.last; ++l) {
      carried[l] += flow.rate;
      most[l] = std::max(most[l], flow.rate);
    }
  }
  for (size_t l = 0; l < gbs.size(); ++l) EXPECT_LE(carried[l], gbs[l] * (1 + 1e-9));
  for (const Placed& flow : flows) {
    bool held = flow.rate >= flow.limit * (1 - 1e-9);
    for (int l = flow.first; l <= flow.last; ++l)
      held |= carried[l] >= gbs[l] * (1 - 1e-9) && most[l] <= flow.rate * (1 + 1e-9);
    EXPECT_TRUE(held) << "links " << flow.first << " to " << flow.last;
  }
}

TEST(Shares, RandomFlowsGetTheirMaxMinShare) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    std::vector<double> gbs;
    for (int i = 0; i < 6; ++i) gbs.push_back(1 + pick(20));
    const machines::Machine machine = chain(gbs);
    Shares shares(machine.graph);
    std::vector<Placed> flows;
    for (int i = 0; i < 12; ++i) {
      const int first = pick(6), last = first + pick(6 - first);
      std::vector<int> links;
      double limit = 1 + pick(30);
      for (int l = first; l <= last; ++l) {
        links.push_back(2 * l);
        limit = std::min(limit, gbs[l]);
      }
      flows.push_back({first, last, limit, 0});
      shares.start(0, shares.add_path(links, first, last + 1, first, last + 1),
                   static_cast<uint32_t>(i), limit, kBytes);
      if (i % 3 == 0) shares.settle(0);
    }
    shares.settle(0);
    for (const auto& [lane, end] : ends(shares)) flows[lane].rate = kBytes / end / 1e3;
    SCOPED_TRACE(testing::Message() << "round " << round);
    expect_fair(gbs, flows);
  }
}

// On a long row of links a change concerns few flows, or many by way of each other.
TEST(Shares, StayMaxMinAsFlowsComeAndGo) {
  constexpr int kLinks = 30;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<double> gbs;
    for (int i = 0; i < kLinks; ++i) gbs.push_back(1 + pick(20));
    const machines::Machine machine = chain(gbs);
    Shares shares(machine.graph);
    std::map<uint32_t, std::pair<Placed, Shares::Due>> flows;
    for (uint32_t lane = 0; lane < 300; ++lane) {
      const int first = pick(kLinks), last = std::min(kLinks - 1, first + pick(4));
      std::vector<int> links;
      for (int l = first; l <= last; ++l) links.push_back(2 * l);
      const double limit = 1 + pick(30);
      flows[lane].first = {first, last, limit, 0};
      shares.start(0, shares.add_path(links, first, last + 1, first, last + 1), lane, limit,
                   kBytes);
      for (int end = pick(3); end > 0 && flows.size() > 40; --end) {
        const auto at = std::next(flows.begin(), pick(static_cast<int>(flows.size()) - 1));
        EXPECT_TRUE(shares.finish(0, at->second.second.flow, at->second.second.version));
        flows.erase(at);
      }
      shares.settle(0);
      for (const Shares::Due& due : shares.due()) {
        flows[due.lane].second = due;
        flows[due.lane].first.rate = kBytes / due.time / 1e3;
      }
      shares.due().clear();
      std::vector<Placed> placed;
      for (const auto& [each, flow] : flows) placed.push_back(flow.first);
      SCOPED_TRACE(testing::Message() << "seed " << seed << " after " << lane);
      expect_fair(gbs, placed);
    }
  }
}

}  // namespace
}  // namespace tessera::simulator
