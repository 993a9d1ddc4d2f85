// tessera-plan and tessera-explain with ranks on several hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tools/support/shell.h"

namespace {

using tessera::tools::testing::Ended;
using tessera::tools::testing::run;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr const char* kShow = "tessera-plan show hierarchical --collective all-reduce ";

TEST(PlanTool, ListsThePlansForSeveralHostsAndSaysWhatTheirCostsAreMadeOf) {
  const Ended listed = run("tessera-plan list");
  EXPECT_EQ(listed.code, 0);
  for (const char* name : {"hierarchical ", "hierarchical-hop", "hierarchical-tree",
                           "hierarchical-ring", "h hosts of l ranks"})
    EXPECT_THAT(listed.text, HasSubstr(name));
}

TEST(PlanTool, TakesALayoutAsAListOrAsHostsTimesRanks) {
  const Ended product = run(std::string(kShow) + "--hosts 2x2 --json");
  EXPECT_EQ(product.code, 0) << product.text;
  EXPECT_EQ(product.text, run(std::string(kShow) + "--hosts 0,0,1,1 --json").text);
  EXPECT_EQ(product.text, run(std::string(kShow) + "--hosts 7,7,3,3 --ranks 4 --json").text);
  EXPECT_NE(product.text, run(std::string(kShow) + "--hosts 0,1,0,1 --json").text);
}

TEST(PlanTool, RefusesLayoutsThatAreNoneOrDoNotFit) {
  for (const char* layout : {"two", "2x", "x4", "0x4", "2x-1", "0,,1", "0,1,", "3000x3000"}) {
    const Ended ended = run(std::string(kShow) + "--hosts " + layout);
    EXPECT_EQ(ended.code, 2) << layout;
    EXPECT_THAT(ended.text, HasSubstr("is no layout")) << layout;
  }
  const Ended differs = run(std::string(kShow) + "--hosts 2x2 --ranks 5");
  EXPECT_EQ(differs.code, 2);
  EXPECT_THAT(differs.text, HasSubstr("--hosts 2x2 places 4 ranks, --ranks says 5"));
  EXPECT_THAT(run(kShow).text, HasSubstr("give --ranks or --hosts"));
}

TEST(PlanTool, SaysThatAPlanForSeveralHostsNeedsThem) {
  for (const char* ranks : {"--ranks 4", "--hosts 0,0,0,0"}) {
    const Ended one = run(std::string(kShow) + ranks);
    EXPECT_EQ(one.code, 2);
    EXPECT_THAT(one.text, HasSubstr("does not support 4 rank(s) on 1 host(s); see --hosts"));
  }
}

TEST(PlanTool, WritesPlansOfFusedOperatorsThatVerify) {
  const std::string matrix = " --rows 96 --cols 64 --tile-rows 16 --tile-cols 16";
  const std::string file = ::testing::TempDir() + "fused_plan.json";
  for (const char* what :
       {"reduce-scatter --ranks 3 --map ring", "allreduce --ranks 3 --chunks 2",
        "all-gather --ranks 3", "all-to-all --ranks 3 --type bfloat16",
        "allreduce --onto --ranks 2", "reduce-scatter --onto --ranks 2 --chunks 3"}) {
    const Ended ended =
        run("tessera-plan fused " + std::string(what) + matrix + " --json > " + file);
    EXPECT_EQ(ended.code, 0) << what << ended.text;
    const Ended verified = run("tessera-plan verify " + file);
    EXPECT_EQ(verified.code, 0) << what << verified.text;
    EXPECT_THAT(verified.text, HasSubstr("plan \"fused-"));
  }
  EXPECT_THAT(run("tessera-plan fused reduce-scatter --ranks 3" + matrix).text,
              HasSubstr("external"));
}

TEST(PlanTool, RefusesFusedOperatorsThatThereAreNot) {
  const std::string matrix = " --ranks 3 --rows 96 --cols 64 --tile-rows 16 --tile-cols 16";
  for (const auto& [what, why] :
       {std::pair("broadcast", "no collective here is called \"broadcast\""),
        std::pair("all-to-all --map ring", "it has no ring"),
        std::pair("all-reduce --onto", "cannot be added onto peers: there are not two ranks"),
        std::pair("all-reduce --type float33", "no data type is called \"float33\"")}) {
    const Ended ended = run("tessera-plan fused " + std::string(what) + matrix);
    EXPECT_EQ(ended.code, 2) << what;
    EXPECT_THAT(ended.text, HasSubstr(why));
  }
}

TEST(ExplainTool, NamesTheCandidatesOfSeveralHosts) {
  const Ended ended = run("tessera-explain allreduce 16MiB --hosts 2x4 --cores 4");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("8 ranks on 8 cores of 2 hosts"));
  EXPECT_THAT(ended.text,
              ContainsRegex("\\* staged hierarchical, slices of 64 KiB +[0-9.]+  model"));
  EXPECT_THAT(ended.text, HasSubstr("low-latency hierarchical-hop"));
}

TEST(SimulationOfHosts, KnowsWhichRanksShareAHost) {
  const Ended ended = run("tessera-sim all-reduce 64MiB --hosts 2 --from \"pack:1 core:4 pu:1\"");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, ContainsRegex("hierarchical +staged +[0-9]"));
  const Ended one = run("tessera-sim all-reduce 64MiB --from \"pack:1 core:4 pu:1\"");
  EXPECT_THAT(one.text, ContainsRegex("hierarchical +staged .*for ranks on several hosts"));
}

}  // namespace
