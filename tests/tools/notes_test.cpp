// What tessera-topo and tessera-sim say of a description: warnings, assumptions, hosts without ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tools/support/shell.h"

namespace tessera::tools::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++times;
  return times;
}

// As providers of machines write them: no GPUs, no ports, no links.
constexpr const char* kBare = R"(<system version="1">
  <cpu numaid="0" affinity="0f" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:10:00.0" class="0x030200"/>
    <pci busid="0000:11:00.0" class="0x020700"/>
  </cpu>
  <cpu numaid="1" affinity="f0" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:12:00.0" class="0x030200"/>
  </cpu>
</system>
)";

constexpr const char* kFourCores = "--from 'pack:2 numa:1 core:4 pu:1'";

class Notes : public InFolder {};

TEST_F(Notes, ASimulationSaysWhatItAssumesAsTheTopologyDoes) {
  const std::string from = " --from " + written("bare.xml", kBare);
  const std::string shown = printed("tessera-topo" + from);
  const std::string all = printed("tessera-sim all-reduce 1MiB --hosts 2" + from);
  const std::string one = printed("tessera-sim all-reduce 1MiB --algorithm ring" + from);
  int notes = 0;
  std::istringstream lines(shown);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("assumed: ")) continue;
    ++notes;
    EXPECT_EQ(count(all, line + "\n"), 1) << line;
    EXPECT_EQ(count(one, line + "\n"), 1) << line;
  }
  EXPECT_GT(notes, 1) << shown;
  EXPECT_EQ(printed("tessera-sim all-reduce 1MiB --algorithm ring --quiet" + from), "");
}

TEST_F(Notes, WarningsThatAreAlikeAreOneLine) {
  std::string text = "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"f\">\n";
  for (int i = 0; i < 5; ++i)
    text += "<pci busid=\"0000:1" + std::to_string(i) +
            ":00.0\" class=\"0x030200\" link_speed=\"fast\" link_width=\"16\"><gpu/></pci>\n";
  const std::string from = written("odd.xml", text + "</cpu>\n</system>\n");
  for (const std::string& program :
       {"tessera-topo --quiet --from " + from, "tessera-sim barrier --quiet --from " + from}) {
    const Ended ended = run(program);
    EXPECT_EQ(ended.code, 0) << ended.text;
    EXPECT_EQ(count(ended.text, "link_speed"), 1) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("(and 4 more alike, to line 7)\n"));
  }
}

TEST_F(Notes, RanksOnNumaNodesAreTold) {
  const std::string from =
      " --from " + written("nodes.xml",
                           "<system version=\"1\"><cpu numaid=\"0\" affinity=\"0f\"/>"
                           "<cpu numaid=\"1\" affinity=\"f0\"/></system>");
  const std::string note = "note: ranks sit on NUMA nodes, for want of GPUs and cores\n";
  EXPECT_THAT(printed("tessera-topo" + from), HasSubstr(note));
  EXPECT_THAT(printed("tessera-sim all-reduce 1MiB" + from), HasSubstr(note));
  EXPECT_THAT(printed(std::string("tessera-sim all-reduce 1MiB ") + kFourCores),
              Not(HasSubstr("NUMA nodes")));
}

TEST_F(Notes, HostsWithoutRanksAreNamed) {
  const std::string note =
      "note: 3 of 4 hosts have no ranks, since ranks fill one host after the other; 32 ranks fill "
      "all\n";
  const std::string four = std::string(" --hosts 4 ") + kFourCores;
  EXPECT_THAT(printed("tessera-topo --ranks 8" + four), HasSubstr(note));
  EXPECT_THAT(printed("tessera-sim all-reduce 1MiB --ranks 8" + four), HasSubstr(note));
  EXPECT_THAT(printed("tessera-sim barrier --ranks 8 --algorithm dissemination" + four),
              HasSubstr(note));
  EXPECT_THAT(printed("tessera-topo --ranks 25" + four), Not(HasSubstr("have no ranks")));
  EXPECT_THAT(printed("tessera-sim all-reduce 1MiB" + four), Not(HasSubstr("have no ranks")));
}

}  // namespace
}  // namespace tessera::tools::testing
