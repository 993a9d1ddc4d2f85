// The contract of the perf programs as a shell sees it: exit codes, lines, columns, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "perf_cli/programs.h"

namespace tessera::perf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The fields of every table row.
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, std::regex("^ +[0-9]+ +[0-9]+ +[a-z]"))) continue;
    std::istringstream words(line);
    rows.emplace_back(std::istream_iterator<std::string>(words),
                      std::istream_iterator<std::string>());
  }
  return rows;
}

TEST_F(PerfCli, HelpNamesEveryOptionAndEndsWithCodeZero) {
  const Outcome outcome = run("all_reduce", "-h");
  EXPECT_EQ(outcome.code, 0);
  for (const char* option :
       {"--nthreads", "--minbytes", "--stepfactor", "--datatype", "--local_register", "--timeout",
        "--per_iter_timing", "--baseline", "--limits", "--plot", "--buffers"}) {
    EXPECT_THAT(outcome.text, HasSubstr(option));
  }
}

TEST_F(PerfCli, BadArgumentsEndWithCode255AndNameTheArgument) {
  for (const std::string arguments :
       {"-b 8X", "-t 0", "-o sub", "-d real", "-z 9", "--nonsense", "-b 16 -e 8", "extra",
        "--baseline gloo", "--buffers gpu", "-n"}) {
    const Outcome outcome = run("all_reduce", arguments);
    EXPECT_EQ(outcome.code, 255) << arguments << "\n" << outcome.text;
    EXPECT_FALSE(outcome.text.empty()) << arguments;
  }
  EXPECT_THAT(run("all_reduce", "-o sub").text, HasSubstr("sub"));
}

TEST_F(PerfCli, AReportThatIsLostIsAFailure) {
  EXPECT_EQ(run("all_reduce", "-t 2 -b 8 -e 8 -n 2 -w 1 > /dev/full").code, 1);
}

TEST_F(PerfCli, WhatHostMemoryDoesNotHaveIsRefusedWithItsOwnCode) {
  EXPECT_EQ(run("all_reduce", "-b 8 -e 8 -G 1").code, 5);
  EXPECT_EQ(run("all_reduce", "-b 8 -e 8 -D 1").code, 6);
  EXPECT_EQ(run("all_reduce", "-b 8 -e 8 -D 1 -R 2").code, 5);
  EXPECT_EQ(run("broadcast", "-b 8 -e 8 -r 1").code, 6);
}

TEST_F(PerfCli, ARowHasThirteenColumnsInTheAgreedOrder) {
  const Outcome outcome = run("all_reduce", "-t 2 -b 8 -e 128 -f 4 -n 5");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("# nccl-tests version 2.19.6 nccl-headers=22809"));
  EXPECT_THAT(outcome.text, HasSubstr("# Collective test starting: all_reduce_perf\n"));
  EXPECT_THAT(
      outcome.text,
      HasSubstr("# nThread 2 nGpus 1 minBytes 8 maxBytes 128 step: 4(factor) warmup iters: 1 "
                "iters: 5 agg iters: 1 validation: 1 graph: 0 unalign: 0\n"));
  EXPECT_THAT(outcome.text, HasSubstr("# Out of bounds values : 0 OK\n"));
  EXPECT_THAT(outcome.text, HasSubstr("# Avg bus bandwidth    : "));
  EXPECT_THAT(outcome.text, HasSubstr("# Collective test concluded: all_reduce_perf\n"));
  const auto rows = rows_of(outcome.text);
  ASSERT_EQ(rows.size(), 3u);
  for (const auto& row : rows) EXPECT_EQ(row.size(), 13u);
  EXPECT_EQ(std::vector<std::string>(rows[1].begin(), rows[1].begin() + 5),
            (std::vector<std::string>{"32", "8", "float", "sum", "-1"}));
  EXPECT_EQ(rows[1][8], "0");
  EXPECT_EQ(rows[1][12], "0");
}

TEST_F(PerfCli, DeviceLinesNameEveryRank) {
  const Outcome outcome = run("all_reduce", "-t 2 -g 2 -b 8 -e 8 -n 2");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(std::regex_search(
        outcome.text,
        std::regex("#  Rank  " + std::to_string(rank) + " Group  0 Pid +[0-9]+ on +\\S+ device  " +
                   std::to_string(rank) + " \\[0000:00:00\\] \\S")))
        << outcome.text;
  }
}

TEST_F(PerfCli, EveryProgramPassesItsOwnChecksWithTwoThreads) {
  for (const char* program :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall",
        "alltoallv", "gather", "scatter", "sendrecv", "hypercube"}) {
    const Outcome outcome = run(program, "-t 2 -b 1 -e 20K -f 7 -n 2");
    EXPECT_EQ(outcome.code, 0) << program << "\n" << outcome.text;
    EXPECT_FALSE(rows_of(outcome.text).empty()) << program;
  }
}

TEST_F(PerfCli, AllTypesAndOperationsAreExact) {
  for (const char* program : {"all_reduce", "reduce_scatter", "reduce"}) {
    const Outcome outcome = run(program, "-t 3 -b 1000 -e 1000 -n 1 -d all -o all");
    EXPECT_EQ(outcome.code, 0) << program << "\n" << outcome.text;
    EXPECT_EQ(rows_of(outcome.text).size(), 72u) << program;
  }
}

TEST_F(PerfCli, EveryRootIsRunForRootMinusOne) {
  const auto rows = rows_of(run("broadcast", "-t 3 -b 8 -e 8 -n 1 -r -1").text);
  ASSERT_EQ(rows.size(), 3u);
  for (int root = 0; root < 3; ++root) {
    EXPECT_EQ(rows[static_cast<size_t>(root)][3], "none");
    EXPECT_EQ(rows[static_cast<size_t>(root)][4], std::to_string(root));
  }
}

TEST_F(PerfCli, CollectivesWithoutAnInPlaceFormShowNotAvailable) {
  for (const char* program : {"alltoall", "alltoallv", "sendrecv"}) {
    const auto rows = rows_of(run(program, "-t 2 -b 1K -e 1K -n 1").text);
    ASSERT_EQ(rows.size(), 1u) << program;
    EXPECT_EQ(rows[0][8], "0") << program;
    EXPECT_EQ(rows[0][12], "N/A") << program;
  }
}

TEST_F(PerfCli, HypercubeSkipsRankCountsThatAreNoPowerOfTwo) {
  const Outcome outcome = run("hypercube", "-t 3 -b 1K -e 1K");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("skipped"));
  EXPECT_TRUE(rows_of(outcome.text).empty());
}

TEST_F(PerfCli, RegisteredUnalignedAndMallocBuffersAreExactToo) {
  EXPECT_EQ(run("all_reduce", "-t 2 -b 1000 -e 1000 -n 2 -R 1").code, 0);
  EXPECT_EQ(run("all_reduce", "-t 2 -b 1000 -e 1000 -n 2 -R 2").code, 0);
  EXPECT_EQ(run("all_gather", "-t 2 -b 1000 -e 1000 -n 2 -u 3 -d int8").code, 0);
  EXPECT_EQ(run("all_reduce", "-t 2 -b 1000 -e 1000 -n 2 --buffers malloc").code, 0);
}

TEST_F(PerfCli, EveryWayToIssueAndReportCallsLeavesResultsExact) {
  for (const char* way :
       {"-m 3", "-p 1", "-p 1 -g 2", "-z 1", "-a 0", "-a 2", "-a 3", "-C 1", "-N 2", "-c 3", "-y 1",
        "-x 0", "-M 1", "-S 1", "-I 1 -K 1", "-T 60", "--adaptive"}) {
    const Outcome outcome = run("all_reduce", std::string("-t 2 -b 40 -e 40 -n 2 ") + way);
    EXPECT_EQ(outcome.code, 0) << way << "\n" << outcome.text;
    EXPECT_FALSE(rows_of(outcome.text).empty()) << way;
  }
}

TEST_F(PerfCli, ABandwidthBelowTheRequiredOneEndsWithCodeSeven) {
  const Outcome low = run("all_reduce", "-t 2 -b 8 -e 8 -n 1", "NCCL_TESTS_MIN_BW=1e9");
  EXPECT_EQ(low.code, 7);
  EXPECT_TRUE(std::regex_search(low.text, std::regex("# Avg bus bandwidth    : \\S+ FAILED\n")));
  const Outcome enough = run("all_reduce", "-t 2 -b 8 -e 8 -n 1", "NCCL_TESTS_MIN_BW=1e-12");
  EXPECT_EQ(enough.code, 0);
  EXPECT_TRUE(std::regex_search(enough.text, std::regex("# Avg bus bandwidth    : \\S+ OK\n")));
}

TEST_F(PerfCli, WrongValuesAndStrayWritesAreCountedAndEndWithCodeSeven) {
  for (const std::string fault : {"value", "before", "after", "send"}) {
    const Outcome outcome = shell("FAULT=" + fault + " " + kFaulty + " -t 2 -b 64 -e 64 -n 1");
    EXPECT_EQ(outcome.code, 7) << fault << "\n" << outcome.text;
    EXPECT_TRUE(std::regex_search(outcome.text, std::regex("# Out of bounds values : [12] FAILED")))
        << outcome.text;
    const auto rows = rows_of(outcome.text);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0][8], "2") << fault;  // one on each rank
  }
  EXPECT_EQ(shell(kFaulty + " -t 2 -b 64 -e 64 -n 1").code, 0);
}

TEST_F(PerfCli, ACallThatHangsIsAbortedAndEndsWithCodeFour) {
  const Outcome outcome = shell("FAULT=hang " + kFaulty + " -t 1 -b 64 -e 64 -n 1 -T 1");
  EXPECT_EQ(outcome.code, 4) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("timeout"));
  EXPECT_TRUE(std::regex_search(outcome.text,
                                std::regex(" \\.\\. \\S+ pid [0-9]+: Test failure \\S+:[0-9]+\n")));
}

TEST_F(PerfCli, TheJsonReportHoldsWhatTheTableShows) {
  const std::string file = folder_ / "report.json";
  const Outcome outcome = run("all_reduce", "-t 2 -b 64 -e 256 -f 2 -n 3 -I 1 -J " + file);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::ifstream in(file);
  const nlohmann::json report = nlohmann::json::parse(in);
  for (const char* key :
       {"version", "start_time", "args", "env", "nccl_version", "config", "devices", "results",
        "out_of_bounds", "average_bus_bandwidth", "end_time"}) {
    EXPECT_TRUE(report.contains(key)) << key;
  }
  EXPECT_EQ(report["version"], 3);
  EXPECT_EQ(report["devices"].size(), 2u);
  ASSERT_EQ(report["results"].size(), 3u);
  const auto& row = report["results"][0];
  EXPECT_EQ(row["size"], 64);
  EXPECT_EQ(row["count"], 16);
  EXPECT_EQ(row["type"], "float");
  EXPECT_EQ(row["redop"], "sum");
  EXPECT_GT(row["out_of_place"]["time"].get<double>(), 0);
  EXPECT_EQ(row["in_place"]["nwrong"], 0);
  EXPECT_EQ(row["actual_iterations"], 3);
  EXPECT_EQ(row["out_of_place_per_iter"]["times_us"].size(), 3u);
  EXPECT_EQ(report["out_of_bounds"]["okay"], "true");
  EXPECT_EQ(report["average_bus_bandwidth"]["okay"], "unchecked");
}

TEST_F(PerfCli, AnExistingJsonReportIsKept) {
  const std::filesystem::path file = folder_ / "report.json";
  std::ofstream(file) << "mine";
  ASSERT_EQ(run("all_reduce", "-b 8 -e 8 -n 1 -J " + file.string()).code, 0);
  std::string kept;
  std::ifstream(file) >> kept;
  EXPECT_EQ(kept, "mine");
  EXPECT_TRUE(std::filesystem::exists(file.string() + ".0"));
}

TEST_F(PerfCli, LimitsPlotAndCsvAreWritten) {
  const std::string svg = folder_ / "plot.svg", csv = folder_ / "rows.csv";
  const Outcome outcome =
      run("all_reduce", "-t 2 -b 64 -e 256 -f 2 -n 3 --limits --plot " + svg + " --csv " + csv);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("# Limits of this machine"));
  const auto rows = rows_of(outcome.text);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].size(), 15u);
  std::stringstream picture, table;
  picture << std::ifstream(svg).rdbuf();
  table << std::ifstream(csv).rdbuf();
  EXPECT_THAT(picture.str(), HasSubstr("</svg>"));
  EXPECT_THAT(picture.str(), HasSubstr("busbw (GB/s)"));
  EXPECT_THAT(table.str(), HasSubstr("AllReduce,2,64,16,float,sum,-1,out-of-place,"));
}

TEST_F(PerfCli, FilesThatCannotBeWrittenEndTheRunBeforeItMeasures) {
  const std::string nowhere = folder_ / "none" / "file";
  for (const char* option : {"-J ", "--csv ", "--plot "}) {
    const Outcome outcome = run("all_reduce", "-b 8 -e 8 -n 1 " + (option + nowhere));
    EXPECT_EQ(outcome.code, 6) << option << "\n" << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(nowhere + ": No such file or directory")) << option;
    EXPECT_TRUE(rows_of(outcome.text).empty()) << option;
  }
  std::ofstream(folder_ / "mine.csv") << "mine";
  const std::string mine = folder_ / "mine.csv", plot = folder_ / "plot.svg";
  EXPECT_EQ(run("all_reduce", "-b 8 --csv " + mine + " --plot " + plot + " -J " + nowhere).code, 6);
  std::string kept;
  std::ifstream(mine) >> kept;
  EXPECT_EQ(kept, "mine");
  EXPECT_FALSE(std::filesystem::exists(plot));
}

TEST_F(PerfCli, UnderALauncherAllProcessesEndWithTheOneThatCannotWrite) {
  if (kMpirun.empty()) GTEST_SKIP() << "MPI is not installed";
  const std::string nowhere = folder_ / "none" / "file";
  const Outcome outcome = run_mpi(2, "all_reduce", "-b 8 -e 8 -n 1 -J " + nowhere);
  EXPECT_EQ(outcome.code, 6) << outcome.text;
  EXPECT_TRUE(rows_of(outcome.text).empty());
}

TEST_F(PerfCli, ASizeThatDoesNotFitIntoMemoryIsSaidToBeReplaced) {
  // refused before it measures, so that the test does not fill the memory
  const std::string stop = " -J " + (folder_ / "none" / "file").string();
  const Outcome outcome = run("all_reduce", "-b 1000000G -e 1000000G" + stop);
  EXPECT_THAT(outcome.text, HasSubstr("warning: 1073741824000000 bytes (-b) do not fit"));
  EXPECT_THAT(run("all_reduce", "-b 8 -e 1000000G -f 2" + stop).text, Not(HasSubstr("warning:")));
}

TEST_F(PerfCli, AlltoallvTakesItsCountsFromAMatrix) {
  const std::string file = folder_ / "matrix";
  std::ofstream(file) << "0 1600\n320 64\n";
  const std::string variable =
      "NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY=1 NCCL_TESTS_ALLTOALLV_MATRIX_FILE=" + file;
  const Outcome outcome = run("alltoallv", "-t 2 -b 4K -e 4K -n 2", variable);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto rows = rows_of(outcome.text);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0][0], "1664");  // rank 1 receives 1600 + 64 bytes
  EXPECT_EQ(run("alltoallv", "-t 2 -b 1K -e 4K", variable).code, 6);
  EXPECT_EQ(run("alltoallv", "-t 2 -b 1K -e 1K", variable).code, 6);
  EXPECT_EQ(run("alltoallv", "-t 3 -b 4K -e 4K", variable).code, 6);
}

TEST_F(PerfCli, ProcessesAreMeasuredBesideMpi) {
  if (kMpirun.empty()) GTEST_SKIP() << "MPI is not installed";
  const Outcome outcome = run_mpi(2, "all_reduce", "-b 64 -e 4K -f 64 --baseline mpi");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto rows = rows_of(outcome.text);
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 17u);
    for (const size_t column : {13u, 14u, 15u, 16u}) EXPECT_GT(std::stod(row[column]), 0);
  }
  EXPECT_THAT(outcome.text, HasSubstr("# Geometric mean of ratio (out-of-place / in-place): "));
  EXPECT_THAT(outcome.text, HasSubstr("# Worst ratio: "));
}

TEST_F(PerfCli, TypesThatMpiDoesNotHaveShowNoRatio) {
  if (kMpirun.empty()) GTEST_SKIP() << "MPI is not installed";
  const Outcome outcome = run_mpi(2, "all_reduce", "-b 64 -e 64 -d half --baseline mpi");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto rows = rows_of(outcome.text);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0][13], "N/A");
  EXPECT_THAT(outcome.text, HasSubstr("(out-of-place / in-place): N/A / N/A"));
}

TEST_F(PerfCli, ASplitRunsGroupsSideBySide) {
  if (kMpirun.empty()) GTEST_SKIP() << "MPI is not installed";
  const Outcome outcome = run_mpi(4, "all_reduce", "-b 64 -e 64 -n 2", "NCCL_TESTS_SPLIT='mod 2'");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("#  Rank  1 Group  1"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("#  Rank  2")));
}

}  // namespace
}  // namespace tessera::perf
