// tessera-topo and tessera-sim: what they print, write and read back, and how they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/support/shell.h"

namespace tessera::tools::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kSynthetic = "--from 'pack:2 numa:1 l3:2 core:4 pu:2'";

// Two GPUs with a bridge, a card on each socket.
constexpr const char* kTwoGpus = R"(<system version="1">
  <cpu numaid="0" affinity="0f" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:10:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1">
        <nvlink target="0000:11:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
    <pci busid="0000:12:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_0" dev="0" speed="100000" port="1" guid="0x1" gdr="1"/></nic>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="f0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:11:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80" rank="1" gdr="1">
        <nvlink target="0000:10:00.0" count="4" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
</system>
)";

class TopoTool : public InFolder {};
class SimTool : public InFolder {};

TEST_F(TopoTool, HelpExplainsAndWrongArgumentsEndWithTwo) {
  EXPECT_EQ(run("tessera-topo --help").code, 0);
  EXPECT_THAT(run("tessera-topo --help").text, HasSubstr("--write-nccl"));
  EXPECT_EQ(run("tessera-topo --hosts 0").code, 2);
  EXPECT_EQ(run("tessera-topo --no-such-option").code, 2);
}

TEST_F(TopoTool, MistakesInDescriptionsAreNamed) {
  const Ended missing = run("tessera-topo --from " + path("none.xml"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.text, HasSubstr("none.xml: cannot read this file: No such file"));
  const std::string faulty =
      written("faulty.xml", "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci <gpu/>\n</system>\n");
  const Ended broken = run("tessera-topo --from " + faulty);
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.text, HasSubstr("faulty.xml:3:"));
  const Ended nonsense = run("tessera-topo --from 'sock:many'");
  EXPECT_EQ(nonsense.code, 1);
  EXPECT_THAT(nonsense.text, HasSubstr("sock:many"));
  const Ended folder = run("tessera-topo --from /tmp");
  EXPECT_EQ(folder.code, 1);
  EXPECT_THAT(folder.text, HasSubstr("Is a directory"));
}

TEST_F(TopoTool, MoreRanksThanItLaysOutAreRefusedAtOnce) {
  const Ended many = run("tessera-topo --from 'pack:2 core:2500 pu:1'");
  EXPECT_EQ(many.code, 1);
  EXPECT_THAT(many.text, HasSubstr("room for 5000 ranks, 4096 are the most: --ranks"));
  EXPECT_EQ(run("tessera-topo --from 'pack:2 core:2500 pu:1' --ranks 8 --quiet").code, 0);
  EXPECT_EQ(run("tessera-topo --ranks 4097").code, 2);
}

TEST_F(TopoTool, ShowsDevicesPathsRingsAndTrees) {
  const std::string text = printed("tessera-topo --from " + written("two.xml", kTwoGpus));
  for (const char* part : {"host 0", "gpu1 (0000:11:00.0)", "nvlink 80 GB/s, 4 links", "NVL 80",
                           "rings, 80 GB/s", "trees, ", "*nic0"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST_F(TopoTool, WrittenFilesOfNcclAreReadBackAsTheSameMachine) {
  const std::string first = written("two.xml", kTwoGpus);
  const std::string text =
      printed("tessera-topo --from " + first + " --write-nccl " + path("again.xml"));
  EXPECT_EQ(printed("tessera-topo --from " + path("again.xml")), text);
  EXPECT_EQ(printed("tessera-topo --quiet --from " + first + " --write-nccl -"),
            text_of("again.xml"));
}

TEST_F(TopoTool, WrittenFilesOfHwlocAreReadBackAsTheSameMachine) {
  const std::string text =
      printed(std::string("tessera-topo ") + kSynthetic + " --write-hwloc " + path("hwloc.xml"));
  EXPECT_EQ(printed("tessera-topo --from " + path("hwloc.xml")), text);
  const Ended refused = run("tessera-topo --from " + written("two.xml", kTwoGpus) +
                            " --write-hwloc " + path("no.xml"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("did not come by hwloc"));
}

TEST_F(TopoTool, WrittenRingsAreReadBackAsTheSameRings) {
  const std::string from = "tessera-topo --from " + written("two.xml", kTwoGpus);
  const std::string text = printed(from + " --write-graph " + path("graph.xml"));
  EXPECT_EQ(printed(from + " --graph " + path("graph.xml")),
            text + "note: rings as " + path("graph.xml") + " has them\n");
  printed(from + " --hosts 3 --write-graph " + path("hosts.xml"));
  EXPECT_THAT(printed(from + " --hosts 3 --graph " + path("hosts.xml")),
              ContainsRegex("ring 0 \\([0-9.]+ GB/s\\): 0 1 2 3 4 5\n"));
  const Ended faulty =
      run(from + " --graph " + written("bad.xml", "<graphs version=\"1\">\n<graph/>\n</graphs>"));
  EXPECT_EQ(faulty.code, 1);
  EXPECT_THAT(faulty.text, HasSubstr("bad.xml:2"));
}

TEST_F(TopoTool, FilesOfOneHostAreNotWrittenOfSeveral) {
  const std::string from = "tessera-topo --hosts 2 --from " + written("two.xml", kTwoGpus);
  const Ended nccl = run(from + " --write-nccl " + path("out.xml"));
  EXPECT_EQ(nccl.code, 2);
  EXPECT_THAT(nccl.text, HasSubstr("--write-nccl writes one host"));
  const Ended hwloc = run(from + " --write-hwloc " + path("out.xml"));
  EXPECT_EQ(hwloc.code, 2);
  EXPECT_THAT(hwloc.text, HasSubstr("--write-hwloc writes one host"));
  EXPECT_FALSE(std::filesystem::exists(path("out.xml")));
}

TEST_F(TopoTool, AWrongRankOrDeviceOfAGraphFileIsNamedWithItsLine) {
  const auto shown = [&](const std::string& gpus) {
    return run("tessera-topo --from " + written("two.xml", kTwoGpus) + " --graph " +
               written("graph.xml",
                       "<graphs version='1'><graph id='0' pattern='4' crossnic='0' nchannels='1' "
                       "speedintra='12' speedinter='12' typeintra='PIX' typeinter='PIX' "
                       "samechannels='1'><channel>\n" +
                           gpus + "</channel></graph></graphs>"));
  };
  EXPECT_EQ(shown("<gpu dev='1' rank='1'/><gpu dev='0'/>").code, 0);
  EXPECT_THAT(shown("<gpu dev='0'/>\n<gpu dev='1' rank='7'/>").text,
              HasSubstr("graph.xml:3: rank 7 is no rank; the ranks are 0 to 1"));
  EXPECT_THAT(shown("<gpu dev='0' rank='1'/>\n<gpu dev='1' rank='0'/>").text,
              HasSubstr("graph.xml:2: rank 1 does not sit on device 0, but on 1"));
  EXPECT_THAT(shown("<gpu dev='0'/>\n<gpu dev='7'/>").text,
              HasSubstr("graph.xml:3: device 7 is no rank's"));
  EXPECT_THAT(shown("<gpu dev='0'/>\n<gpu dev='1' rank='1000000000'/>").text,
              HasSubstr("graph.xml:3: element \"gpu\", attribute \"rank\""));
}

TEST_F(TopoTool, PicturesAreDrawnByDot) {
  const std::string from = "tessera-topo --quiet --from " + written("two.xml", kTwoGpus);
  EXPECT_EQ(printed(from + " --dot " + path("two.dot")), "");
  EXPECT_THAT(text_of("two.dot"), HasSubstr("graph"));
  if (std::system("dot -V > /dev/null 2>&1") != 0) GTEST_SKIP() << "dot is not installed";
  EXPECT_EQ(printed(from + " --svg " + path("two.svg")), "");
  EXPECT_THAT(text_of("two.svg"), HasSubstr("</svg>"));
}

TEST_F(TopoTool, TwoRunsPrintTheSame) {
  const std::string command = std::string("tessera-topo ") + kSynthetic + " --hosts 4 --dot -";
  EXPECT_EQ(printed(command), printed(command));
}

TEST_F(SimTool, HelpExplainsAndWrongArgumentsEndWithTwo) {
  EXPECT_EQ(run("tessera-sim --help").code, 0);
  EXPECT_THAT(run("tessera-sim --help").text, HasSubstr("--algorithm"));
  EXPECT_EQ(run("tessera-sim").code, 2);
  EXPECT_EQ(run("tessera-sim all-reduce").code, 2);
  EXPECT_EQ(run("tessera-sim all-reduce lots").code, 2);
  EXPECT_EQ(run("tessera-sim all-reduce 1MiB --svg x.svg").code, 2);
  const Ended unknown = run("tessera-sim alreduce 1MiB");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.text, HasSubstr("\"alreduce\""));
  const Ended algorithm = run("tessera-sim allreduce 1MiB --algorithm bruck");
  EXPECT_EQ(algorithm.code, 2);
  EXPECT_THAT(algorithm.text, HasSubstr("all-reduce has no algorithm \"bruck\""));
}

TEST_F(SimTool, MistakesInFilesAreNamed) {
  const std::string call = std::string("tessera-sim all-reduce 1MiB --ranks 4 ") + kSynthetic;
  EXPECT_THAT(run(call + " --plan " + path("none.json")).text,
              HasSubstr("none.json: cannot read this file: No such"));
  const Ended plan = run(call + " --plan " + written("plan.json", "{\"format\": 3}"));
  EXPECT_EQ(plan.code, 1);
  EXPECT_THAT(plan.text, HasSubstr("plan.json: "));
  const Ended cost = run(call + " --cost " + written("cost.json", "{\"hosts\": {}}"));
  EXPECT_EQ(cost.code, 1);
  EXPECT_THAT(cost.text, HasSubstr("cost.json: "));
  const Ended gpus =
      run("tessera-sim all-reduce 1MiB --ranks 3 --from " + written("two.xml", kTwoGpus));
  EXPECT_EQ(gpus.code, 2);
  EXPECT_THAT(gpus.text, HasSubstr("a GPU holds one rank"));
  const Ended root =
      run(std::string("tessera-sim broadcast 8 --algorithm tree --root 9 --ranks 4 ") + kSynthetic);
  EXPECT_EQ(root.code, 2);
  EXPECT_THAT(root.text, HasSubstr("root 9 does not exist among 4 ranks"));
}

TEST_F(SimTool, AllAlgorithmsOfACollectiveComeFastestFirst) {
  const std::string text =
      printed(std::string("tessera-sim all-gather 1MiB --ranks 6 ") + kSynthetic);
  EXPECT_THAT(text, HasSubstr("all-gather of 1048576 bytes, 6 ranks"));
  EXPECT_THAT(text, HasSubstr("not for 6 ranks"));  // recursive doubling
  std::istringstream lines(text);
  double before = 0;
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, reach;
    double us = 0;
    if (!(words >> name >> reach >> us) || (reach != "staged" && reach != "direct")) continue;
    EXPECT_GE(us, before) << line;
    before = us;
    ++rows;
  }
  EXPECT_EQ(rows, 5);
}

TEST_F(SimTool, OneAlgorithmComesWithBandwidthsLinksAndCriticalPath) {
  const std::string text =
      printed("tessera-sim allreduce 16MiB --algorithm ring --hosts 2 --from " +
              written("two.xml", kTwoGpus));
  EXPECT_THAT(text, ContainsRegex("ring: [0-9.]+ us in 1 pass"));
  EXPECT_THAT(text, ContainsRegex("bandwidth: algorithm [0-9.]+ GB/s, bus [0-9.]+ GB/s"));
  EXPECT_THAT(text, ContainsRegex("[0-9.]+ %  cpu1@0 -> cpu0@0 \\(smp\\), 10 GB/s"));
  EXPECT_THAT(text, ContainsRegex("critical path: [0-9.]+ us along"));
  EXPECT_THAT(text, ContainsRegex("simulated: [0-9]+ steps, [0-9]+ events"));
  const std::string sliced =
      printed("tessera-sim allreduce 16MiB --algorithm ring --slice 1MiB --from " +
              written("two.xml", kTwoGpus));
  EXPECT_THAT(sliced, HasSubstr("in 16 passes"));
}

TEST_F(SimTool, APlanFromAFileTakesAsLongAsItsAlgorithm) {
  const std::string json =
      printed("tessera-plan show ring --collective all-gather --ranks 4 --json");
  const std::string call = std::string("tessera-sim all-gather 4MiB --ranks 4 ") + kSynthetic;
  EXPECT_EQ(printed(call + " --plan " + written("plan.json", json)),
            printed(call + " --algorithm ring"));
  const Ended other = run(std::string("tessera-sim broadcast 4MiB --ranks 4 ") + kSynthetic +
                          " --plan " + path("plan.json"));
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.text, HasSubstr("a plan of all-gather, not of broadcast"));
}

TEST_F(SimTool, TimelinesAreJsonAndSvg) {
  printed(std::string("tessera-sim all-reduce 1MiB --ranks 4 --algorithm double-tree ") +
          kSynthetic + " --trace " + path("trace.json") + " --svg " + path("time.svg"));
  const nlohmann::json trace = nlohmann::json::parse(text_of("trace.json"), nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  EXPECT_GT(trace["traceEvents"].size(), 20U);
  EXPECT_THAT(text_of("time.svg"), StartsWith("<svg"));
  EXPECT_THAT(text_of("time.svg"), HasSubstr("</svg>"));
}

TEST_F(SimTool, CostsOfAFileCount) {
  const std::string call =
      std::string("tessera-sim barrier 0 --algorithm dissemination --ranks 2 ") + kSynthetic;
  const std::string slow = written(
      "cost.json", R"({"format": "tessera-cost", "version": 1, "host": {"launch_us": 1000}})");
  EXPECT_THAT(printed(call + " --cost " + slow), ContainsRegex("dissemination: 100[0-9]"));
}

TEST_F(SimTool, AListNamesAlgorithmsWithTheirCosts) {
  EXPECT_THAT(printed("tessera-sim --list"), HasSubstr("reduce-scatter\n"));
  const std::string one = printed("tessera-sim broadcast --list");
  EXPECT_THAT(one, HasSubstr("ceil(log2 n) (alpha + S beta)"));
  EXPECT_THAT(one, Not(HasSubstr("reduce-scatter")));
}

TEST_F(SimTool, ThousandsOfRanksAreSimulatedFromRankZerosProgram) {
  const std::string text = printed(
      "tessera-sim all-reduce 64MiB --algorithm double-tree --chunks 2 --hosts 64 "
      "--from 'pack:2 core:16 pu:1'");
  EXPECT_THAT(text, HasSubstr("2048 ranks on 64 hosts"));
}

TEST_F(SimTool, TwoRunsPrintTheSame) {
  const std::string command =
      std::string("tessera-sim all-reduce 1MiB --hosts 3 --trace - --algorithm ring ") + kSynthetic;
  EXPECT_EQ(printed(command), printed(command));
  const std::string all = std::string("tessera-sim all-reduce 1MiB --hosts 3 ") + kSynthetic;
  EXPECT_EQ(printed(all), printed(all));
}

}  // namespace
}  // namespace tessera::tools::testing
