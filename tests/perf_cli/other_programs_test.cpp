// The programs that measure links and fused products: help, arguments, a run of each kind.
#include <gmock/gmock.h>

#include "perf_cli/programs.h"

namespace tessera::perf {
namespace {

using ::testing::HasSubstr;

TEST_F(PerfCli, TheOtherProgramsExplainDefaultsAndColumns) {
  const Outcome links = shell(kPrograms + "/emulated_links --help");
  EXPECT_EQ(links.code, 0);
  for (const char* text : {"default: 2,4,8", "1 to 10000; default: 9", "two minutes"})
    EXPECT_THAT(links.text, HasSubstr(text));
  const std::string fused = kPrograms + "/fused_gemm_perf ";
  if (!std::filesystem::exists(kPrograms + "/fused_gemm_perf")) GTEST_SKIP() << "no OpenBLAS";
  const Outcome help = shell(fused + "--help");
  EXPECT_EQ(help.code, 0);
  for (const char* text : {"--products FC-2", "unfused, fused", "advice", "default: 5"})
    EXPECT_THAT(help.text, HasSubstr(text));
  EXPECT_EQ(shell(fused + "--products none-is-called-so").code, 2);
  EXPECT_EQ(shell(fused + "--operators --timer").code, 2);
  EXPECT_EQ(shell(fused + "--operators --types double").code, 2);
  const Outcome operators = shell(fused + "--operators --types half --ratios 0 --gflop 0.01 " +
                                  "--products 'gpt-3/32 OP' --repetitions 1");
  EXPECT_EQ(operators.code, 0) << operators.text;
  for (const char* text : {"reduce-scatter half", "all-gather half", "library's"})
    EXPECT_THAT(operators.text, HasSubstr(text));
  EXPECT_THAT(shell(fused + "--hosts 1").text, HasSubstr("--ratios 0"));
  const Outcome nowhere = shell(fused + "--hosts 2147483647 --ratios 0 --gflop 0.001");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.text, HasSubstr("cannot enter /proc/2147483647/ns/net"));
  EXPECT_EQ(shell(fused + "--json " + (folder_ / "none" / "file").string()).code, 1);
}

}  // namespace
}  // namespace tessera::perf
