// What all command-line programs do with arguments: names, sizes, roots, files, help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tools/support/shell.h"

namespace tessera::tools::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMachine = "--from 'pack:1 core:4 pu:1'";

class Arguments : public InFolder {};

TEST_F(Arguments, ARootThatDoesNotExistIsRefusedWithAndWithoutAnAlgorithm) {
  for (const char* collective : {"broadcast", "reduce", "gather", "scatter"}) {
    for (const char* algorithm : {"", " --algorithm one-hop"}) {
      const Ended ended = run(std::string("tessera-sim ") + collective +
                              " 64KiB --ranks 2 --root 2 " + kMachine + algorithm);
      EXPECT_EQ(ended.code, 2) << collective << algorithm << "\n" << ended.text;
      EXPECT_THAT(ended.text, HasSubstr("root 2 does not exist among 2 ranks"));
    }
    const Ended plan = run(std::string("tessera-plan show one-hop --ranks 2 --root 2 ") +
                           "--collective " + collective);
    EXPECT_EQ(plan.code, 2) << plan.text;
    EXPECT_THAT(plan.text, HasSubstr("root 2 does not exist among 2 ranks"));
  }
}

TEST_F(Arguments, ACollectiveWithoutRootTakesNone) {
  const Ended simulated =
      run(std::string("tessera-sim allreduce 64KiB --ranks 2 --root 1 ") + kMachine);
  EXPECT_EQ(simulated.code, 2);
  EXPECT_THAT(simulated.text, HasSubstr("all-reduce has no root"));
  const Ended plan = run("tessera-plan show ring --collective all-reduce --ranks 2 --root 1");
  EXPECT_EQ(plan.code, 2);
  EXPECT_THAT(plan.text, HasSubstr("all-reduce has no root"));
}

TEST_F(Arguments, AnUnknownCollectiveIsAnsweredWithThoseThatThereAre) {
  for (const char* command :
       {"tessera-sim foo 8", "tessera-explain foo 8",
        "tessera-plan show ring --ranks 2 --collective foo", "tessera-tune --collectives foo"}) {
    const Ended ended = run(command);
    EXPECT_EQ(ended.code, 2) << command << "\n" << ended.text;
    EXPECT_THAT(ended.text, ContainsRegex("\"foo\".* all-reduce.* broadcast")) << command;
  }
}

TEST_F(Arguments, ThePlanToolKnowsTheNamesThatTheOthersKnow) {
  EXPECT_EQ(printed("tessera-plan show ring --collective AllReduce --ranks 2"),
            printed("tessera-plan show ring --collective all-reduce --ranks 2"));
}

TEST_F(Arguments, NothingMeasuredReplacesNoProfile) {
  const std::string profile = written("profile.json", "mine");
  for (const char* wrong : {"--collectives foo", "--collectives all-reduce barrier",
                            "--collectives broadcast --largest 4"}) {
    const Ended ended =
        run(std::string("tessera-tune --seconds 1 --ranks 2 ") + wrong + " --out " + profile);
    EXPECT_EQ(ended.code, 2) << wrong << "\n" << ended.text;
    EXPECT_EQ(text_of("profile.json"), "mine") << wrong;
  }
  EXPECT_EQ(run("tessera-tune --collectives foo --out " + path("new/profile.json")).code, 2);
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

TEST_F(Arguments, LayoutAndRanksMustAgree) {
  const Ended ended = run("tessera-explain allreduce 1MiB --hosts 2x4 --ranks 3");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text, HasSubstr("--hosts 2x4 places 8 ranks, --ranks says 3"));
  EXPECT_EQ(run("tessera-explain allreduce 1MiB --hosts 2x4 --ranks 8").code, 0);
}

TEST_F(Arguments, ASizeThatIsNoWholeNumberOfElementsIsRoundedAndSaidToBe) {
  const Ended explained = run("tessera-explain allgather 1001 --ranks 4");
  EXPECT_THAT(explained.text, HasSubstr("so 992 bytes are computed, not 1001"));
  const Ended simulated = run(std::string("tessera-sim allreduce 4097 --ranks 4 ") + kMachine);
  EXPECT_THAT(simulated.text, HasSubstr("so 4096 bytes are computed, not 4097"));
  EXPECT_THAT(run("tessera-explain allreduce 4096 --ranks 4").text, Not(HasSubstr("note:")));
}

TEST_F(Arguments, AStarStandsAtTheFirstOfEqualEstimatesAndRulesAreNamedAsSuch) {
  const std::string text = printed("tessera-explain allreduce 16MiB --hosts 2x4 --cores 4");
  EXPECT_THAT(text, HasSubstr("a rule decided, not the estimates"));
  const size_t star = text.find("\n* ");
  ASSERT_NE(star, text.npos);
  const size_t line = text.rfind('\n', star - 1);
  const std::string before = text.substr(line, star - line);
  const std::string chosen = text.substr(star, text.find('\n', star + 1) - star);
  const auto estimate = [](const std::string& row) { return row.substr(0, 48).substr(36); };
  EXPECT_NE(estimate(before), estimate(chosen)) << before << chosen;
}

TEST_F(Arguments, WhatIsTooLargeAloneIsSaidToBeSoInTheTableToo) {
  const std::string call =
      "tessera-sim broadcast 4 --chunks 4096 --hosts 2048 --from 'pack:1 core:1 pu:1'";
  EXPECT_THAT(printed(call), ContainsRegex("\ntree .* too many to simulate"));
  const Ended alone = run(call + " --algorithm tree");
  EXPECT_EQ(alone.code, 1);
  EXPECT_THAT(alone.text, HasSubstr("too many to simulate"));
}

TEST_F(Arguments, FilesThatCannotBeWrittenAreToldBeforeTheWork) {
  const std::string call = std::string("tessera-sim allreduce 64KiB --algorithm ring ") + kMachine;
  for (const char* option : {" --trace ", " --svg "}) {
    const Ended ended = run(call + option + path("none/file"), "", "2>&1");
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.text, HasSubstr("none/file: cannot be written: No such file"));
    EXPECT_THAT(ended.text, Not(HasSubstr("bandwidth"))) << option;
  }
  const std::string mine = written("mine.svg", "mine");
  EXPECT_EQ(run(call + " --trace " + path("none/file") + " --svg " + mine).code, 1);
  EXPECT_EQ(text_of("mine.svg"), "mine");
}

TEST_F(Arguments, TwoOutputsDoNotShareAFile) {
  const std::string both = path("both.svg");
  const Ended sim = run(std::string("tessera-sim all-reduce 8 --algorithm ring ") + kMachine +
                        " --trace " + both + " --svg " + path("./both.svg"));
  EXPECT_EQ(sim.code, 2) << sim.text;
  EXPECT_THAT(sim.text, HasSubstr("--trace and --svg name the same file"));
  EXPECT_FALSE(std::filesystem::exists(both));
  const Ended topo =
      run(std::string("tessera-topo ") + kMachine + " --dot " + both + " --write-nccl " + both);
  EXPECT_EQ(topo.code, 2) << topo.text;
  EXPECT_THAT(topo.text, HasSubstr("--dot and --write-nccl name the same file"));
}

TEST_F(Arguments, LessThanAnElementIsAnElement) {
  const std::string args = " all-reduce 2 --ranks 4 ";
  EXPECT_THAT(run("tessera-sim" + args + kMachine).text, HasSubstr("blocks of 4 bytes"));
  EXPECT_THAT(run("tessera-explain" + args).text, HasSubstr("blocks of 4 bytes"));
}

TEST_F(Arguments, APictureIsNotWrittenUnderAnotherKindOfPicturesName) {
  for (const std::string& command :
       {std::string("tessera-sim allreduce 64KiB --algorithm ring ") + kMachine,
        std::string("tessera-topo ") + kMachine,
        std::string("tessera-plan show ring --collective all-reduce --ranks 2")}) {
    const Ended ended = run(command + " --svg " + path("a.PNG"));
    EXPECT_EQ(ended.code, 2) << command << "\n" << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("end it in .svg")) << command;
    EXPECT_FALSE(std::filesystem::exists(path("a.PNG"))) << command;
  }
}

TEST_F(Arguments, HelpShowsLimitsAndDefaultsInWords) {
  for (const char* program :
       {"tessera-sim", "tessera-tune", "tessera-topo", "tessera-explain", "tessera-plan show"}) {
    const Ended help = run(std::string(program) + " --help");
    EXPECT_EQ(help.code, 0) << program;
    EXPECT_THAT(help.text, HasSubstr("; default: ")) << program;
    EXPECT_THAT(help.text, ContainsRegex("[0-9] to [0-9]")) << program;
    EXPECT_THAT(help.text, Not(ContainsRegex("INT|FLOAT|REQUIRED| in \\["))) << program;
  }
  EXPECT_THAT(printed("tessera-tune --help"),
              HasSubstr("(1 to 3600; default: a minute, two for a check)"));
  EXPECT_THAT(printed("tessera-explain --help"), HasSubstr("powers of 1024"));
}

TEST_F(Arguments, OutOfATerminalASimulationPrintsItsTableOnly) {
  const std::string call = std::string("tessera-sim allreduce 64KiB ") + kMachine;
  EXPECT_EQ(run(call).text, printed(call));
}

TEST_F(Arguments, SizesThatAreNoneAreRefused) {
  for (const char* size : {"-1", "18446744073709551616", "K", "''"}) {
    for (const char* tool : {"tessera-sim all-reduce ", "tessera-explain allreduce "})
      EXPECT_EQ(run(std::string(tool) + size).code, 2) << tool << size;
    EXPECT_EQ(run(std::string("tessera-tune --ranks 2 --largest ") + size).code, 2) << size;
  }
  EXPECT_EQ(run("tessera-tune --ranks 2 --largest 8EiB").code, 2);
  EXPECT_EQ(run("tessera-sim all-reduce 1M --algorithm ring --slice 3").code, 2);
}

TEST_F(Arguments, FilesWithoutAnEndAndPipesWithoutAReaderAreRefused) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& file : {std::string("/dev/zero"), pipe}) {
    EXPECT_EQ(run("tessera-sim all-reduce 1M --plan " + file).code, 1) << file;
    EXPECT_EQ(run("tessera-plan verify " + file).code, 3) << file;
    EXPECT_EQ(run("tessera-explain allreduce 1M", "NCCL_CONF_FILE=" + file).code, 1) << file;
  }
  EXPECT_EQ(run("tessera-topo --from 'core:2 pu:1' --quiet --dot " + pipe).code, 1);
}

TEST_F(Arguments, OutputThatCannotBeWrittenIsAnError) {
  for (const char* command :
       {"tessera-topo --from 'core:2 pu:1'", "tessera-explain allreduce 1M", "tessera-sim --list",
        "tessera-plan show ring --collective all-reduce --ranks 2"}) {
    const Ended ended = run(command, "TESSERA_PROFILE=none", "2>&1 > /dev/full");
    EXPECT_GT(ended.code, 0) << command;
    EXPECT_LT(ended.code, 4) << command << "\n" << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("standard output cannot be written")) << command;
  }
}

TEST_F(Arguments, ComplaintsThatNobodyCanReadEndLikeOthers) {
  const std::string plain = "TESSERA_PROFILE=none";
  for (const char* where : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(run("tessera-topo --from /none/such", plain, where).code, 1) << where;
    for (const char* command : {"tessera-sim foo", "tessera-explain foo 1"})
      EXPECT_EQ(run(command, plain, where).code, 2) << command << where;
  }
}

TEST_F(Arguments, WhatACommunicatorWouldRefuseIsNotExplained) {
  const Ended slip = run("tessera-explain allreduce 1M --ranks 4", "TESSERA_ALGO=foo");
  EXPECT_EQ(slip.code, 1) << slip.text;
  EXPECT_THAT(slip.text, HasSubstr("TESSERA_ALGO=foo: no algorithm has that name"));
  EXPECT_THAT(run("tessera-explain sendrecv 1M --ranks 4").text,
              HasSubstr("send-recv with 4 ranks: there is no algorithm"));
  EXPECT_EQ(run("tessera-explain allreduce 1M --hosts 4096x1").code, 2);
}

TEST_F(Arguments, TheWinnerHasNothingAgainstIt) {
  const std::string text =
      run("tessera-explain allreduce 1M --ranks 4", "NCCL_PROTO=LL TESSERA_PROFILE=none").text;
  const size_t star = text.find("\n* ");
  ASSERT_NE(star, text.npos) << text;
  EXPECT_THAT(text.substr(star, text.find('\n', star + 1) - star),
              Not(HasSubstr("too much memory")));
  EXPECT_THAT(text, HasSubstr("blocks of all sizes run without meeting first"));
}

TEST_F(Arguments, AProcessCountsTheCoresThatItMayUse) {
  EXPECT_THAT(run("tessera-explain allreduce 1M --ranks 2", "taskset -c 0").text,
              HasSubstr("2 ranks on 1 cores"));
}

}  // namespace
}  // namespace tessera::tools::testing
