// tessera-explain for machines that a description names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>

#include "tools/support/shell.h"

namespace {

using tessera::tools::testing::Ended;
using tessera::tools::testing::run;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTwoSockets =
    "tessera-explain allreduce 1MiB --from 'pack:2 numa:1 core:4 pu:1'";

TEST(Explanation, OfADescribedMachineCountsItsCoresAndTheLinksBetweenItsNodes) {
  const Ended said = run(kTwoSockets);
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, AllOf(HasSubstr("8 ranks on 8 cores"), HasSubstr("a described machine"),
                               HasSubstr("between NUMA nodes: "), Not(HasSubstr("this order"))));
  const Ended several = run(std::string(kTwoSockets) + " --hosts 2x4");
  EXPECT_THAT(several.text,
              AllOf(HasSubstr("8 ranks on 16 cores of 2 hosts"), HasSubstr("between hosts: ")));
}

// A machine of two sockets with two GPUs each, on which the ranks are dealt out in turn.
class DealtOut : public tessera::tools::testing::InFolder {
 protected:
  void SetUp() override {
    InFolder::SetUp();
    std::ostringstream text;
    text << "<system version='1'>";
    for (int gpu = 0; gpu < 4; ++gpu) {
      if (gpu % 2 == 0)
        text << "<cpu numaid='" << gpu / 2 << "' affinity='" << (gpu == 0 ? "0f" : "f0")
             << "' arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='143'>";
      text << "<pci busid='0000:0" << gpu << ":00.0' class='0x030200' link_speed='16.0 GT/s PCIe' "
           << "link_width='16'><gpu dev='" << gpu << "' rank='" << (gpu % 2 * 2 + gpu / 2)
           << "' sm='80' gdr='1'/></pci>";
      if (gpu % 2 == 1) text << "</cpu>";
    }
    text << "</system>";
    file_ = written("dealt.xml", text.str());
  }
  std::string file_;
};

TEST_F(DealtOut, TheExplanationTellsTheOrderInWhichRingsTakeTheRanks) {
  constexpr const char* kOrder = "rings and trees take the ranks in this order: 0 2 ";
  const Ended asked = run("tessera-explain allreduce 1MiB --from " + file_);
  EXPECT_THAT(asked.text, HasSubstr(kOrder));
  EXPECT_THAT(asked.text, HasSubstr("4 ranks on 8 cores")) << "as many as its affinities have";
  const Ended by_variable =
      run("tessera-explain allreduce 1MiB --ranks 4", "NCCL_TOPO_FILE=" + file_);
  EXPECT_THAT(by_variable.text, HasSubstr(kOrder));
  // As communicators do it: ranks that do not fit on the GPUs sit on the sockets in turn.
  const Ended more = run("tessera-explain allreduce 1MiB --ranks 5 --from " + file_);
  EXPECT_EQ(more.code, 0);
  EXPECT_THAT(more.text, HasSubstr("this order: 0 2 4 1 3"));
}

TEST_F(DealtOut, ASimulatedRingIsFasterInTheOrderThatASearchFinds) {
  const auto time = [&](const char* option) {
    const Ended said =
        run("tessera-sim all-gather 64MiB --algorithm ring --from " + file_ + option);
    EXPECT_EQ(said.code, 0) << said.text;
    std::smatch found;
    const bool there = std::regex_search(said.text, found, std::regex("([0-9.]+) us"));
    EXPECT_TRUE(there) << said.text;
    return there ? std::stod(found[1]) : 0;
  };
  EXPECT_LT(time(" --found-order"), 0.8 * time(""));
}

TEST(Explanation, OfSeveralHostsCountsOnPutsAsCommunicatorsDo) {
  const std::string large = "tessera-explain alltoall 16MiB --hosts 2x2";
  const Ended puts = run(large);
  EXPECT_THAT(puts.text, AllOf(HasSubstr("buffers reached by puts"), HasSubstr("\n* put put: ")));
  const Ended without = run(large, "TESSERA_PROFILE=none TESSERA_SINGLE_COPY=0");
  EXPECT_THAT(without.text, AllOf(HasSubstr("buffers beyond reach"), HasSubstr("\n* staged ")));
}

TEST(Explanation, OfUnmappedBuffersCopiesThroughTheKernelWhereThatIsAllowed) {
  const std::string large = "tessera-explain allreduce 16MiB --ranks 4";
  EXPECT_THAT(run(large, "TESSERA_PROFILE=none TESSERA_SHARE_MEMORY=0").text,
              HasSubstr("\n* single-copy direct: "));
  EXPECT_THAT(run(large + " --plain", "TESSERA_PROFILE=none TESSERA_SINGLE_COPY=0").text,
              HasSubstr("\n* staged "));
}

TEST(Explanation, OfADescriptionThatIsNotThereNamesIt) {
  const Ended said = run("tessera-explain allreduce 1MiB --from /no/such/file.xml");
  EXPECT_NE(said.code, 0);
  EXPECT_THAT(said.text, HasSubstr("/no/such/file.xml"));
}

TEST(Explanation, OfNothingIsRefused) {
  for (const char* tool :
       {"tessera-explain allreduce 8", "tessera-topo", "tessera-sim allreduce 8"}) {
    const Ended said = run(std::string(tool) + " --from ''");
    EXPECT_EQ(said.code, 2) << tool;
    EXPECT_THAT(said.text, HasSubstr("an empty text names nothing")) << tool;
  }
}

TEST(Explanation, OfMoreRanksThanItTakesAsksForFewer) {
  const Ended said = run("tessera-explain allreduce 1MiB --from 'pack:64 numa:1 core:32 pu:1'");
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.text, AllOf(HasSubstr("2048 ranks"), HasSubstr("--ranks")));
}

}  // namespace
