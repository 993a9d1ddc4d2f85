#include "topology/graph_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "topology/support/files.h"

namespace tessera::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kRing =
    "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" "
    "speedintra=\"12\" speedinter=\"6.5\"\n  latencyinter=\"0\" typeintra=\"PIX\" "
    "typeinter=\"PHB\" samechannels=\"1\">\n"
    "  <channel><net dev=\"a0\"/><gpu dev=\"0\" rank=\"4\"/><gpu dev=\"1\"/><net dev=\"a1\"/>"
    "</channel></graph></graphs>";

std::string error_of(const std::string& text) {
  const Result<SearchedGraphs> graphs = parse_graph_xml(text, "graph.xml");
  if (graphs.ok()) return "ok";
  EXPECT_EQ(graphs.status().code(), Code::kInvalidArgument);
  return graphs.status().message();
}

// The message about kRing with its first `what` replaced.
std::string error_with(const std::string& what, const std::string& with) {
  std::string text = kRing;
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return error_of(text.replace(at, what.size(), with));
}

TEST(GraphXml, ReadsEveryField) {
  const Result<SearchedGraphs> read = parse_graph_xml(kRing, "graph.xml");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read.value().graphs.size(), 1U);
  const SearchedGraph& graph = read.value().graphs[0];
  EXPECT_EQ(graph.id, 0);
  EXPECT_EQ(graph.pattern, GraphPattern::kRing);
  EXPECT_EQ(graph.crossnic, 0);
  EXPECT_EQ(graph.speed_intra, 12);
  EXPECT_EQ(graph.speed_inter, 6.5);
  EXPECT_EQ(graph.latency_inter, 0);
  EXPECT_EQ(graph.type_intra, "PIX");
  EXPECT_EQ(graph.type_inter, "PHB");
  EXPECT_TRUE(graph.same_channels);
  ASSERT_EQ(graph.channels.size(), 1U);
  EXPECT_THAT(graph.channels[0].nets, ElementsAre(0xa0, 0xa1));
  EXPECT_THAT(graph.channels[0].gpus, ElementsAre(GraphGpu{0, 4}, GraphGpu{1, std::nullopt}));
}

TEST(GraphXml, FilesOfOlderVersionsStateNoLatency) {
  EXPECT_EQ(error_with("latencyinter=\"0\"", ""), "ok");
}

TEST(GraphXml, NetsAreHexadecimalWithOrWithoutPrefix) {
  EXPECT_EQ(error_with("dev=\"a0\"", "dev=\"0xffffffffffffffff\""), "ok");
  for (const char* bad :
       {"dev=\"g\"", "dev=\"\"", "dev=\"0x\"", "dev=\"-1\"", "dev=\"0x10000000000000000\""})
    EXPECT_THAT(error_with("dev=\"a0\"", bad),
                StartsWith("graph.xml:3: element \"net\", attribute \"dev\": "));
}

TEST(GraphXml, EveryAttributeIsRequiredAndInRange) {
  for (const char* name : {"id", "pattern", "crossnic", "nchannels", "speedintra", "speedinter",
                           "typeintra", "typeinter", "samechannels"}) {
    EXPECT_EQ(error_with(fmt::format(" {}=", name), " other="),
              "graph.xml:1: element \"graph\", attribute \"other\": not known");
    std::string missing = kRing;
    const size_t at = missing.find(fmt::format(" {}=", name));
    missing.erase(at, missing.find('"', missing.find('"', at) + 1) + 1 - at);
    EXPECT_EQ(error_of(missing),
              fmt::format("graph.xml:1: element \"graph\", attribute \"{}\": missing", name));
  }
  EXPECT_THAT(error_with(" id=\"0\"", " id=\"5\""),
              HasSubstr("attribute \"id\": \"5\" is no number"));
  EXPECT_THAT(error_with("pattern=\"4\"", "pattern=\"0\""), HasSubstr("from 1 to 6"));
  EXPECT_THAT(error_with("speedintra=\"12\"", "speedintra=\"-1\""), HasSubstr("0 or more"));
  EXPECT_THAT(error_with("speedintra=\"12\"", "speedintra=\"nan\""), HasSubstr("0 or more"));
  EXPECT_THAT(error_with("\"PIX\"", "\"PCI\""), HasSubstr("no type of path"));
  EXPECT_THAT(error_with("samechannels=\"1\"", "samechannels=\"2\""), HasSubstr("from 0 to 1"));
  EXPECT_THAT(error_with("version=\"1\"", "version=\"2\""), HasSubstr("the only version is 1"));
  EXPECT_THAT(error_with(" version=\"1\"", ""), HasSubstr("\"version\": missing"));
  EXPECT_THAT(error_with("rank=\"4\"", "rank=\"-1\""), HasSubstr("attribute \"rank\""));
  EXPECT_THAT(error_with("rank=\"4\"", "rank=\"4\" rank=\"5\""), HasSubstr("given twice"));
}

TEST(GraphXml, ChannelsAreAsManyAsStated) {
  EXPECT_EQ(error_with("nchannels=\"1\"", "nchannels=\"2\""),
            "graph.xml:1: element \"graph\", attribute \"nchannels\": says 2, but 1 follow");
}

TEST(GraphXml, NetsEncloseTheGpusOfAChannel) {
  EXPECT_THAT(error_with("<gpu dev=\"1\"/><net dev=\"a1\"/>", "<net dev=\"a1\"/><gpu dev=\"1\"/>"),
              HasSubstr("a gpu after the last net"));
  EXPECT_THAT(error_with("<net dev=\"a0\"/>", "<net dev=\"a0\"/><net dev=\"a0\"/>"),
              HasSubstr("one each"));
  EXPECT_THAT(error_with("<net dev=\"a1\"/>", "<net dev=\"a1\"/><net dev=\"a1\"/>"),
              HasSubstr("one each"));
  EXPECT_EQ(error_with("<net dev=\"a0\"/>", ""), "ok");
  EXPECT_THAT(error_with("</channel>", "</channel><channel><net dev=\"0\"/></channel>"),
              HasSubstr("element \"channel\": holds no gpu"));
}

TEST(GraphXml, AGpuOccursOnceInARing) {
  EXPECT_THAT(error_with("<gpu dev=\"1\"/>", "<gpu dev=\"1\"/><gpu dev=\"1\"/>"),
              HasSubstr("gpu 1 occurs twice in a ring"));
}

TEST(GraphXml, WhatDoesNotBelongHereIsAnError) {
  EXPECT_THAT(error_with("<channel>", "<ring/><channel>"),
              HasSubstr("element \"ring\": expected <channel> here"));
  EXPECT_THAT(error_with("<channel>", "<channel>text"), HasSubstr("\"text\" does not belong"));
  EXPECT_THAT(error_with("<gpu dev=\"1\"/>", "<gpu dev=\"1\"><net/></gpu>"),
              HasSubstr("nothing may stand in here"));
  EXPECT_THAT(error_with("<graph id", "<tree/><graph id"), HasSubstr("expected <graph> here"));
  EXPECT_THAT(error_of("<system version='1'/>"), HasSubstr("expected \"graphs\""));
  EXPECT_THAT(error_of(kRing.substr(0, kRing.size() - 12)), HasSubstr("truncated"));
}

TEST(GraphXml, IdsDiffer) {
  const size_t begin = kRing.find("<graph id"), end = kRing.find("</graphs>");
  std::string text = kRing;
  EXPECT_THAT(error_of(text.insert(end, kRing.substr(begin, end - begin))),
              HasSubstr("another graph has the same id"));
}

TEST(GraphXml, AFileThatIsMissingIsNamed) {
  EXPECT_EQ(read_graph_xml("/nowhere/graph.xml").status().message(),
            "/nowhere/graph.xml: cannot read this file: No such file or directory");
  const auto graphs = read_graph_xml(testing::corpus_folder() / "graph.xml");
  EXPECT_TRUE(graphs.ok()) << graphs.status().message();
}

TEST(GraphXml, GraphsMadeAtRandomReadBackAsWritten) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* types[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"};
  for (int round = 0; round < 300; ++round) {
    SearchedGraphs graphs;
    for (int id = 0; id < below(6); ++id) {
      SearchedGraph& graph = graphs.graphs.emplace_back();
      graph.id = id;
      graph.pattern = static_cast<GraphPattern>(1 + below(6));
      graph.crossnic = below(3);
      graph.speed_intra = below(1000) / 7.0;
      graph.speed_inter = below(1000) * 1e-3;
      if (below(2) == 0) graph.latency_inter = below(9);
      graph.type_intra = types[below(10)];
      graph.type_inter = types[below(10)];
      graph.same_channels = below(2) == 0;
      graph.channels.resize(static_cast<size_t>(below(4)));
      for (GraphChannel& channel : graph.channels) {
        for (int i = below(3); i > 0; --i) channel.nets.push_back(uint64_t{random()} << below(32));
        for (int gpu = 0; gpu <= below(8); ++gpu)
          channel.gpus.push_back({gpu, below(2) == 0 ? std::optional(below(64)) : std::nullopt});
      }
    }
    const Result<SearchedGraphs> read = parse_graph_xml(write_graph_xml(graphs), "graph.xml");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read.value(), graphs);
  }
}

}  // namespace
}  // namespace tessera::topology
