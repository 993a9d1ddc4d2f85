#include "common/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "common/plot.h"
#include "common/statistics.h"
#include "common/world.h"

namespace tessera::perf {
namespace {

using Sizes = std::vector<size_t>;

Parsed parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(arguments.size()), argv.data());
}

TEST(Options, SizesTakeBinarySuffixes) {
  size_t bytes = 0;
  EXPECT_TRUE(parse_size("8", &bytes));
  EXPECT_EQ(bytes, 8u);
  EXPECT_TRUE(parse_size("64k", &bytes));
  EXPECT_EQ(bytes, 65536u);
  EXPECT_TRUE(parse_size("1.5M", &bytes));
  EXPECT_EQ(bytes, 1572864u);
  EXPECT_TRUE(parse_size("2G", &bytes));
  EXPECT_EQ(bytes, size_t{2} << 30);
  for (const char* bad : {"", "K", "-1", "8X", "8KB", "1e30"})
    EXPECT_FALSE(parse_size(bad, &bytes)) << bad;
}

TEST(Options, TheSweepStepsByFactorOrByBytesAndEndsAtTheMaximum) {
  EXPECT_EQ(parse({"-b", "8", "-e", "128", "-f", "4"}).options.sizes(), (Sizes{8, 32, 128}));
  EXPECT_EQ(parse({"-b", "10", "-e", "35", "-i", "10"}).options.sizes(), (Sizes{10, 20, 30}));
  EXPECT_EQ(parse({"-b", "0", "-e", "4", "-f", "2"}).options.sizes(), (Sizes{0, 1, 2, 4}));
  EXPECT_EQ(parse({"-b", "8", "-e", "8", "-i", "0"}).options.sizes(), (Sizes{8}));
}

TEST(Options, DefaultsAreThoseOfNcclTests) {
  const Options o = parse({}).options;
  EXPECT_EQ(o.threads, 1);
  EXPECT_EQ(o.gpus, 1);
  EXPECT_EQ(o.min_bytes, size_t{32} << 20);
  EXPECT_EQ(o.max_bytes, size_t{32} << 20);
  EXPECT_EQ(o.iterations, 20);
  EXPECT_EQ(o.warmup, 1);
  EXPECT_EQ(o.check, 1);
  EXPECT_EQ(o.average, 1);
  ASSERT_EQ(o.types.size(), 1u);
  EXPECT_STREQ(o.types[0]->name, "float");
  ASSERT_EQ(o.ops.size(), 1u);
  EXPECT_STREQ(o.ops[0]->name, "sum");
}

TEST(Options, LongAndShortNamesMeanTheSame) {
  const Options o =
      parse({"--nthreads", "3", "--op=all", "--datatype", "all", "--root=all", "--minbytes=1K"})
          .options;
  EXPECT_EQ(o.threads, 3);
  EXPECT_EQ(o.ops.size(), 6u);
  EXPECT_EQ(o.types.size(), 12u);
  EXPECT_EQ(o.root, 0);  // text that is no number
  EXPECT_EQ(parse({"-r", "-1"}).options.root, -1);
}

TEST(Options, ABaselineMakesIterationCountsAdaptive) {
  EXPECT_FALSE(parse({}).options.adaptive);
  EXPECT_TRUE(parse({"--baseline", "mpi"}).options.adaptive);
}

TEST(Options, AnUnknownTypeOrOperationIsAnsweredWithThoseThatThereAre) {
  const Parsed type = parse({"-d", "flaot"});
  EXPECT_EQ(type.exit_code, 255);
  EXPECT_NE(type.text.find("'flaot'; there are int8, "), std::string::npos) << type.text;
  EXPECT_NE(type.text.find("f8e5m2, all"), std::string::npos) << type.text;
  const Parsed op = parse({"-o", "sub"});
  EXPECT_EQ(op.exit_code, 255);
  EXPECT_NE(op.text.find("'sub'; there are sum, prod, "), std::string::npos) << op.text;
}

TEST(Options, ABaselineNeedsOneRankPerProcess) {
  for (const std::vector<std::string>& ranks :
       {std::vector<std::string>{"-t", "4"}, std::vector<std::string>{"-g", "4"}}) {
    Parsed refused = parse({"--baseline", "mpi", ranks[0], ranks[1]});
    EXPECT_EQ(refused.exit_code, 6);
    EXPECT_NE(refused.text.find("start 4 processes with mpirun"), std::string::npos);
  }
  EXPECT_EQ(parse({"--baseline", "mpi"}).exit_code, -1);
}

TEST(Options, APlotIsNotNamedLikeAnotherKindOfPicture) {
  for (const char* name : {"a.png", "b/a.PDF", "a.svg.jpeg"}) {
    const Parsed refused = parse({"--plot", name});
    EXPECT_EQ(refused.exit_code, 255) << name;
    EXPECT_NE(refused.text.find(".svg"), std::string::npos) << name;
  }
  for (const char* name : {"a.svg", "png", "-", "a"})
    EXPECT_EQ(parse({"--plot", name}).exit_code, -1) << name;
}

class Split : public ::testing::Test {
 protected:
  void TearDown() override {
    unsetenv("NCCL_TESTS_SPLIT");
    unsetenv("NCCL_TESTS_SPLIT_MASK");
  }
  static int colour(const char* text, int process) {
    setenv("NCCL_TESTS_SPLIT", text, 1);
    int color = -1;
    return split_color(process, &color) ? color : -1;
  }
};

TEST_F(Split, OperatorsHaveWordsAndSigns) {
  EXPECT_EQ(colour("AND 3", 6), 2);
  EXPECT_EQ(colour("& 0x3", 6), 2);
  EXPECT_EQ(colour("or 1", 6), 7);
  EXPECT_EQ(colour("|1", 6), 7);
  EXPECT_EQ(colour("MOD 4", 6), 2);
  EXPECT_EQ(colour("%4", 6), 2);
  EXPECT_EQ(colour("div2", 6), 3);
  EXPECT_EQ(colour("/ 4", 6), 1);
}

TEST_F(Split, NonsenseIsRefused) {
  for (const char* text : {"MOD", "MOD x", "MOD 0", "/0", "XOR 1", "3", "MOD 2 3"})
    EXPECT_EQ(colour(text, 1), -1) << text;
}

TEST_F(Split, TheMaskIsHexadecimal) {
  setenv("NCCL_TESTS_SPLIT_MASK", "10", 1);
  int color = -1;
  EXPECT_TRUE(split_color(0x1f, &color));
  EXPECT_EQ(color, 0x10);
  setenv("NCCL_TESTS_SPLIT_MASK", "q", 1);
  EXPECT_FALSE(split_color(1, &color));
}

TEST(Statistics, PercentilesAndDeviationOfKnownSamples) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const SampleStatistics s = statistics(samples, 0);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 100);
  EXPECT_EQ(s.p95, 95);
  EXPECT_EQ(s.p99, 99);
  EXPECT_NEAR(s.average, 50.5, 1e-9);
  EXPECT_NEAR(s.deviation, 28.866, 1e-3);
  EXPECT_EQ(statistics(samples, 1).max, 99);
  EXPECT_EQ(statistics({5}, 3).max, 5);
}

TEST(Plot, OnlyPositiveValuesAreDrawnAndTextIsEscaped) {
  const Panel panel{"a<b", "x", "y", {{"ours & theirs", {1, 2, 4}, {1, 0, 10}}}};
  const std::string svg = draw("t", {panel, panel});
  EXPECT_NE(svg.find("a&lt;b"), std::string::npos);
  EXPECT_NE(svg.find("ours &amp; theirs"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  size_t circles = 0;
  for (size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++circles;
  EXPECT_EQ(circles, 4u);  // two points in each of two panels
}

}  // namespace
}  // namespace tessera::perf
