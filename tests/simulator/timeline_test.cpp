#include "simulator/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <tuple>

#include "simulator/support/machines.h"
#include "simulator/support/run.h"

namespace tessera::simulator {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 4;

struct Traced {
  machines::Machine machine = machines::star(kRanks, 10, 1);
  Source source = Source::of(*find_algorithm(Collective::kAllReduce, "ring", Reach::kStaged),
                             run::params_for(Collective::kAllReduce, kRanks, 1))
                      .value();
  Outcome outcome;

  Traced() {
    SimulateOptions options;
    options.trace = true;
    outcome = simulate(source, machine.routes(), {3000, 4, 1000}, Cost{}, options).value();
  }
  const Timeline& timeline() const { return *outcome.timeline; }
};

TEST(Trace, IsJsonInWhichEveryStepOccursOnce) {
  const Traced traced;
  const nlohmann::json trace =
      nlohmann::json::parse(to_trace_json(traced.timeline(), traced.source, traced.machine.graph));
  std::map<std::tuple<int, int, int, int>, int> seen;  // rank, lane, pass, step
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++seen[{event["pid"], event["tid"], event["args"]["pass"], event["args"]["step"]}];
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(), traced.outcome.total_us);
  }
  EXPECT_EQ(seen.size(), traced.source.steps_per_pass() * traced.outcome.passes);
  for (const auto& [step, times] : seen) EXPECT_EQ(times, 1);
}

TEST(Trace, StepsOfALaneDoNotOverlap) {
  const Traced traced;
  std::map<uint32_t, double> ended;
  for (const StepRecord& record : traced.timeline().steps) {
    EXPECT_GE(record.begin, ended[record.lane]);
    ended[record.lane] = record.end;
  }
}

TEST(Trace, LinkCountersCarryWhatTheOutcomeCounts) {
  const Traced traced;
  const size_t links = traced.machine.graph.links.size();
  std::vector<double> carried(links), rate(links), since(links);
  for (const LinkSample& sample : traced.timeline().links) {
    carried[sample.link] += rate[sample.link] * (sample.time - since[sample.link]) * 1e3;
    rate[sample.link] = sample.gbs;
    since[sample.link] = sample.time;
  }
  for (size_t link = 0; link < links; ++link) {
    const auto bytes = static_cast<double>(traced.outcome.link_bytes[link]);
    EXPECT_NEAR(carried[link], bytes, 1 + 1e-3 * bytes);
    EXPECT_EQ(rate[link], 0);
  }
}

TEST(Trace, NamesProcessesThreadsAndLinks) {
  const Traced traced;
  const std::string text = to_trace_json(traced.timeline(), traced.source, traced.machine.graph);
  EXPECT_THAT(text, HasSubstr("\"rank 3\""));
  EXPECT_THAT(text, HasSubstr("\"lane 0\""));
  EXPECT_THAT(text, HasSubstr("gpu0 -> switch (nvlink)"));
  EXPECT_THAT(text, HasSubstr("put chunk 0 to rank 2, raise counter 0 of rank 2"));
}

size_t count(const std::string& text, const std::string& what) {
  size_t times = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++times;
  return times;
}

TEST(Svg, HasABarForEveryStepAndARowForEveryLinkInUse) {
  const Traced traced;
  const std::string svg = to_svg(traced.timeline(), traced.source, traced.machine.graph);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(svg.c_str()));
  EXPECT_EQ(count(svg, "class=\"step\""), traced.timeline().steps.size());
  EXPECT_THAT(svg, HasSubstr(">rank 3 lane 0<"));
  EXPECT_THAT(svg, HasSubstr(">switch -&gt; gpu0 (nvlink)<"));
  EXPECT_THAT(svg, HasSubstr(" us</text>"));
  EXPECT_EQ(count(svg, "are shown"), 0u);
}

TEST(Svg, SaysWhatItLeavesOut) {
  const Traced traced;
  const SvgLimits limits{.lanes = 2, .links = 3, .bars = 10};
  const std::string svg = to_svg(traced.timeline(), traced.source, traced.machine.graph, limits);
  EXPECT_EQ(count(svg, "class=\"step\"") + count(svg, "class=\"link\""), 10u);
  EXPECT_THAT(svg, HasSubstr("2 of 4 lanes are shown. 3 of 8 links in use are shown. 10 of "));
}

}  // namespace
}  // namespace tessera::simulator
