// Where ranks sit, and what plans and the model make of it.
#include "tuner/seats.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topology/describe.h"
#include "topology/graph_of.h"
#include "tuner/estimate.h"
#include "tuner/model.h"

namespace tessera {
namespace {

topology::Machine machine(const std::string& from) {
  Result<topology::Described> described = topology::describe_machine(from);
  EXPECT_TRUE(described.ok()) << described.status().message();
  return std::move(described.value().machine);
}

topology::CpuSet processors(const std::string& mask) {
  return topology::CpuSet::parse(mask).value();
}

// Ranks on cores in turn of two NUMA nodes of four.
struct DealtOut {
  topology::Graph graph = topology::graph_of(machine("pack:2 numa:1 core:4 pu:1"));
  std::vector<int> nodes;
  DealtOut() {
    const std::vector<int> cores = graph.of_kind(topology::NodeKind::kCore, 0);
    for (size_t i = 0; i < 4; ++i) {
      nodes.push_back(cores[i]);
      nodes.push_back(cores[4 + i]);
    }
  }
};

Site site_of(int ranks) {
  Site site;
  site.ranks = site.cores = ranks;
  return site;
}

Seat at(int place, int node) {
  Seat seat;
  seat.place = place;
  seat.node = node;
  return seat;
}

TEST(Seats, OfADescribedMachineFollowTheRingOfASearch) {
  const DealtOut dealt;
  const Result<std::vector<Seat>> seats = seats_on(dealt.graph, dealt.nodes);
  ASSERT_TRUE(seats.ok()) << seats.status().message();
  Site site = site_of(8);
  seat_ranks(site, seats.value(), false);
  ASSERT_EQ(site.order.size(), 8u);
  int crossings = 0;
  for (size_t i = 0; i < 8; ++i)
    crossings += site.order[i] % 2 != site.order[(i + 1) % 8] % 2 ? 1 : 0;
  EXPECT_EQ(crossings, 2) << "ranks of a node follow each other";
  EXPECT_EQ(site.node_of, (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1}));
}

TEST(Seats, LinksBetweenNodesAreThoseOfTheGraph) {
  DealtOut dealt;
  double smp = 0, latency = 0;
  for (topology::Link& link : dealt.graph.links) {
    if (link.kind != topology::LinkKind::kSmp) continue;
    link.bandwidth = smp = 7;
    link.latency = latency = 0.4;
  }
  ASSERT_EQ(smp, 7) << "the machine has a link between its sockets";
  const Result<std::vector<Seat>> seats = seats_on(dealt.graph, dealt.nodes);
  ASSERT_TRUE(seats.ok());
  EXPECT_DOUBLE_EQ(seats->front().between_nodes.bandwidth, 7e3);
  EXPECT_DOUBLE_EQ(seats->front().between_nodes.latency, latency);
  Site site = site_of(8);
  seat_ranks(site, seats.value(), false);
  EXPECT_DOUBLE_EQ(site.between_nodes.bandwidth, 7e3);
  EXPECT_DOUBLE_EQ(site.between_nodes.latency, 0.4);
}

TEST(Seats, AFasterLinkThanTheAssumedOneCountsAsItIs) {
  Seat fast = at(0, 0), other = at(1, 1);
  fast.between_nodes = other.between_nodes = {0.05, 300e3};
  Site site = site_of(2);
  seat_ranks(site, {fast, other}, false);
  EXPECT_EQ(site.between_nodes, (NodeLink{0.05, 300e3}));
}

TEST(Seats, AThreadSitsOnTheNodeThatHoldsAllItsProcessors) {
  const topology::Machine two = machine("pack:2 numa:1 core:4 pu:1");
  const Seat first = seat_among(two, processors("06")), second = seat_among(two, processors("f0"));
  EXPECT_EQ(first.place, 0);
  EXPECT_EQ(first.node, 0);
  EXPECT_EQ(second.place, 1);
  EXPECT_EQ(second.node, 1);
  EXPECT_GT(second.between_nodes.bandwidth, 0);
}

TEST(Seats, AreUnknownWhereProcessorsBelongToSeveralNodesOrThereIsOne) {
  EXPECT_EQ(seat_among(machine("pack:2 numa:1 core:4 pu:1"), processors("18")), Seat{});
  EXPECT_EQ(seat_among(machine("pack:2 numa:1 core:4 pu:1"), {}), Seat{});
  EXPECT_EQ(seat_among(machine("numa:1 core:4 pu:1"), processors("03")), Seat{});
}

TEST(Seats, ThatAreUnknownLeaveRanksInTheirOwnOrder) {
  Site site = site_of(3);
  site.order = {2, 1, 0};
  seat_ranks(site, {at(1, 1), at(-1, -1), at(0, 0)}, false);
  EXPECT_TRUE(site.order.empty());
  EXPECT_TRUE(site.node_of.empty());
}

TEST(Seats, OfSeveralHostsKeepTheRanksOfAHostTogether) {
  Site site = site_of(6);
  site.hosts = 2;
  site.host_of = {4, 9, 4, 9, 4, 9};
  const std::vector<Seat> seats = {at(1, 1), at(0, 0), at(0, 0), at(1, 1), at(0, 0), at(1, 1)};
  seat_ranks(site, seats, false);
  EXPECT_EQ(site.order, (std::vector<int>{2, 4, 0, 1, 3, 5}));
  EXPECT_EQ(site.node_of, (std::vector<int>{0, 1, 2, 3, 2, 3})) << "nodes of hosts are different";
}

TEST(Seats, OfAGraphFileCountOverAllHosts) {
  Site site = site_of(4);
  site.hosts = 2;
  site.host_of = {0, 0, 1, 1};
  seat_ranks(site, {at(3, 0), at(1, 0), at(0, 0), at(2, 0)}, true);
  EXPECT_EQ(site.order, (std::vector<int>{2, 1, 3, 0}));
  EXPECT_TRUE(site.node_of.empty()) << "one node on each host";
}

TEST(Seats, OnTheWayToAnotherHostAllPortsCount) {
  const topology::Graph graph = topology::graph_of(machine("pack:2 numa:1 core:4 pu:1"));
  const int core = graph.of_kind(topology::NodeKind::kCore, 0).front();
  EXPECT_EQ(to_another_host(graph, core).bandwidth, 0) << "no port is described";
}

PlanWork ring_work(const Site& site) {
  return work_of(
      find_algorithm(Collective::kAllReduce, "ring", Reach::kStaged)->build(params_at(site, -1)),
      site);
}

TEST(Seats, TheModelCountsWhatPassesBetweenNodes) {
  Site site = site_of(4);
  site.node_of = {0, 1, 0, 1};
  const PlanWork dealt = ring_work(site);
  EXPECT_EQ(dealt.strides, 6);
  EXPECT_EQ(dealt.hops, 0);
  EXPECT_DOUBLE_EQ(dealt.bridged, 3) << "two ranks send 2 (n-1)/n blocks each";
  site.order = {0, 2, 1, 3};
  const PlanWork ordered = ring_work(site);
  EXPECT_DOUBLE_EQ(ordered.bridged, 1.5);
  EXPECT_LT(ordered.strides, 6);
  EXPECT_GT(ordered.hops, 0);
}

TEST(Seats, EstimatesOfTheModelFollowTheLinkBetweenNodes) {
  Site site = site_of(8);
  site.node_of = {0, 0, 0, 0, 1, 1, 1, 1};
  const Candidate ring{Protocol::kStaged,
                       find_algorithm(Collective::kAllReduce, "ring", Reach::kStaged), 0};
  const auto time = [&](double latency, double bandwidth, size_t bytes) {
    site.between_nodes = {latency, bandwidth};
    return Estimator(site, nullptr).estimate(ring, bytes).microseconds;
  };
  EXPECT_GT(time(0.15, 100, 1 << 20), 2 * time(0.15, 20e3, 1 << 20));
  EXPECT_GT(time(5, 20e3, 64), time(0.15, 20e3, 64) + 4);
}

}  // namespace
}  // namespace tessera
