// The tree keeps the source rules, and the rules notice what breaks them.
#include "layers/source_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace tessera::rules {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace fs = std::filesystem;

const fs::path kRoot = TESSERA_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string findings(const std::string& path, std::string_view text) {
  return to_string(check_file(path, text));
}

TEST(SourceRules, TheTreeKeepsThem) {
  const std::vector<fs::path> files = source_files(kRoot);
  ASSERT_THAT(files, Contains(fs::path("src/base/status.h")));
  for (const fs::path& file : files) EXPECT_EQ(findings(file.string(), read(kRoot / file)), "");
}

TEST(SourceRules, NoTwoFilesOfTheLibraryDefineATypeOfOneName) {
  std::map<std::string, std::string> first;
  for (const fs::path& file : source_files(kRoot)) {
    const std::string name = file.string();
    if (!name.starts_with("src/") && !name.starts_with("algorithms/") &&
        !name.starts_with("transports/"))
      continue;
    if (name.starts_with("src/exec/device_check/")) continue;  // programs of their own
    for (const Definition& type : types_defined(read(kRoot / file))) {
      const auto [at, fresh] = first.try_emplace(type.name, name);
      EXPECT_TRUE(fresh || at->second == name)
          << type.name << " is defined in " << at->second << " and in " << name << ":" << type.line;
    }
  }
  EXPECT_TRUE(first.contains("tessera::Plan"));
}

TEST(SourceRules, TypesAreFoundByTheirFullNames) {
  const std::vector<Definition> found = types_defined(
      "namespace a {\nstruct B;\nnamespace {\nstruct Own { int x; };\n}  // namespace\n"
      "class C final : public D {\n  struct Inner {\n  };\n};\nstruct alignas(64) E { int y; };\n"
      "struct C::Hidden {\n};\nvoid f() {\n  struct Local {\n  };\n}\n}\n"
      "namespace a::b {\nenum class F : int { kOne };\n// struct G {\n}\n");
  std::vector<std::string> names;
  for (const Definition& type : found) names.push_back(type.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a::C", "a::E", "a::b::F"}));
}

// The table of the architecture document names layers from the ground up, as the rules order them.
TEST(SourceRules, TheArchitectureDocumentListsTheLayersInTheirOrder) {
  const std::string text = read(kRoot / "docs/architecture.md");
  std::vector<std::string> named;
  int place = 0;
  const std::regex row(R"(\n\| (`[^|]+`) \|)");
  const std::regex name("`([^`]+)`");
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    const std::string cell = (*it)[1];
    for (std::sregex_iterator n(cell.begin(), cell.end(), name); n != end; ++n) {
      const Layer* layer = layer_of((*n)[1].str() + "/");
      ASSERT_NE(layer, nullptr) << (*n)[1];
      EXPECT_GE(layer->place, place) << layer->name << " is listed too late";
      place = layer->place;
      named.emplace_back(layer->name);
    }
  }
  for (const Layer& layer : layers()) {
    if (fs::exists(kRoot / layer.folder)) {
      EXPECT_THAT(named, Contains(layer.name));
    }
  }
}

TEST(SourceRules, ALayerMayIncludeItselfAndEverythingBelow) {
  EXPECT_EQ(findings("src/comm/link.cpp",
                     "#include <vector>\n#include \"comm/link.h\"\n#include \"exec/space.h\"\n"
                     "#include \"transports/shm/region.h\"\n#include \"base/status.h\"\n"),
            "");
}

TEST(SourceRules, ALayerMayNotIncludeALayerAbove) {
  EXPECT_EQ(findings("src/plan/plan.cpp", "#include \"plan/plan.h\"\n#include \"comm/comm.h\"\n"),
            "src/plan/plan.cpp:2: includes \"comm/comm.h\": src/comm lies above src/plan; a layer "
            "includes only layers below it\n");
}

TEST(SourceRules, ALayerMayNotIncludeItsSibling) {
  EXPECT_THAT(findings("src/exec/a.cpp", "#include \"transports/shm/region.h\"\n"),
              HasSubstr("transports is a sibling of src/exec"));
  EXPECT_THAT(findings("transports/shm/a.cpp", "#include \"exec/space.h\"\n"),
              HasSubstr("src/exec is a sibling of transports"));
}

TEST(SourceRules, AngleBracketsDoNotHideAnInclude) {
  EXPECT_THAT(findings("algorithms/ring.cpp", "#  include <device/host/copy.h>\n"),
              HasSubstr("src/device is a sibling of algorithms"));
}

TEST(SourceRules, AnIncludeMayNotClimb) {
  EXPECT_THAT(findings("src/plan/plan.cpp", "#include \"../comm/comm.h\"\n"),
              HasSubstr("without '..'"));
}

TEST(SourceRules, OnlyTheApiAndWhatIsAboveItKnowsTheNcclHeader) {
  EXPECT_THAT(findings("src/comm/comm.cpp", "#include <nccl.h>\n"), HasSubstr("C types"));
  EXPECT_EQ(findings("src/api/comm.cpp", "#include \"nccl.h\"\n"), "");
}

TEST(SourceRules, AFolderOfSrcThatIsNoLayerIsReported) {
  EXPECT_THAT(findings("src/util/misc.h", "#pragma once\n"), HasSubstr("lies in no layer"));
}

TEST(SourceRules, AtomicsAndFencesLiveInSyncOnly) {
  for (const char* text :
       {"std::atomic<int> x;\n", "std::atomic_ref<int> x(y);\n", "__atomic_fetch_add(p, 1, 5);\n",
        "x.load(std::memory_order_relaxed);\n", "atomic_thread_fence(o);\n", "__threadfence();\n",
        "_mm_mfence();\n", "asm volatile(\"\" ::: \"memory\");\n",
        "cuda::atomic_ref<int> x(y);\n"}) {
    EXPECT_THAT(findings("src/exec/a.cpp", text), HasSubstr("src/sync only (I4)")) << text;
    EXPECT_EQ(findings("src/sync/a.cpp", text), "") << text;
    EXPECT_THAT(findings("include/tessera/tile.h", text), HasSubstr("(I4)")) << text;
    EXPECT_EQ(findings("include/tessera/device_block.h", text), "") << text;
  }
}

TEST(SourceRules, OnlyTheConfigReadsTheEnvironment) {
  const char* text = "const char* v = std::getenv(\"X\");\n";
  EXPECT_THAT(findings("src/base/log.cpp", text), HasSubstr("only src/base/config.cpp"));
  EXPECT_THAT(findings("transports/shm/a.cpp", "secure_getenv(n);\n"), HasSubstr("(I11)"));
  EXPECT_EQ(findings("src/base/config.cpp", text), "");
}

TEST(SourceRules, AGotoIsReportedWithItsLine) {
  EXPECT_EQ(findings("src/sync/a.cpp", "int f() {\n  goto out;\n}\n"),
            "src/sync/a.cpp:2: a goto: control flow is structured\n");
}

TEST(SourceRules, CommentsAndLiteralsAreNoCode) {
  EXPECT_EQ(findings("src/plan/a.cpp",
                     "// no goto, no std::atomic\n/* getenv\n goto */\n"
                     "const char* a = \"goto \\\" getenv\";\nconst char* b = R\"x(goto )\" )x\";\n"
                     "const int c = 30'000;  // it's\nconst char d = '\"';\n"
                     "// #include \"comm/comm.h\"\n"),
            "");
}

TEST(SourceRules, CodeAfterACommentOrALiteralIsStillSeen) {
  EXPECT_THAT(check_file("src/plan/a.cpp",
                         "/* x */ goto a;\nf(\"x\"); goto b;\nint c = 1'000; goto d;\n"
                         "f(R\"(x)\"); goto e;\nf('\\''); goto g;\n"),
              SizeIs(5));
}

TEST(SourceRules, AFileMayHaveFourHundredLinesAndNoMore) {
  const auto lines = [](int n) { return std::string(static_cast<size_t>(n), '\n'); };
  EXPECT_EQ(findings("src/plan/a.h", lines(kMaxFileLines)), "");
  EXPECT_THAT(findings("src/plan/a.h", lines(kMaxFileLines + 1)), HasSubstr("401 lines"));
}

TEST(SourceRules, TestsMayTouchAtomicsAndTheEnvironment) {
  EXPECT_EQ(findings("tests/sync/a_test.cpp", "std::atomic<int> x; getenv(\"X\");\n"), "");
}

}  // namespace
}  // namespace tessera::rules
