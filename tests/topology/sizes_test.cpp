// Machines of many parts are laid out in seconds, or refused with what is too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "topology/describe.h"
#include "topology/graph_of.h"
#include "topology/search.h"

namespace tessera::topology {
namespace {

using ::testing::HasSubstr;

// Generous: what is quadratic takes minutes.
constexpr std::chrono::seconds kLimit(60);

void expect_laid_out(const Result<Machine>& machine, size_t ranks) {
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  const auto begin = std::chrono::steady_clock::now();
  const Graph graph = graph_of(machine.value());
  const Result<std::vector<int>> nodes = place_ranks(graph, 0);
  ASSERT_TRUE(nodes.ok());
  EXPECT_EQ(nodes->size(), ranks);
  const Result<Layout> layout = search(graph, nodes.value());
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLimit);
}

std::string devices(int count, const char* pci_class) {
  std::string text = "<system version='1'><cpu numaid='0' affinity='f'>";
  for (int i = 0; i < count; ++i)
    text +=
        fmt::format("<pci busid='{:04x}:{:02x}:00.0' class='{}'/>\n", i >> 8, i & 255, pci_class);
  return text + "</cpu></system>";
}

std::string cpus(int count) {
  std::string text = "<system version='1'>";
  for (int i = 0; i < count; ++i) text += fmt::format("<cpu numaid='{}'/>\n", i);
  return text + "</system>";
}

TEST(Sizes, HundredsOfNumaNodesAreLaidOut) {
  const Result<Described> described = describe_machine("pack:512 numa:1 core:2 pu:1");
  ASSERT_TRUE(described.ok()) << described.status().message();
  expect_laid_out(described->machine, 1024);
}

TEST(Sizes, AThousandCpusOfAFileAreLaidOut) {
  expect_laid_out(parse_machine(cpus(1000), "cpus.xml"), 1000);
}

TEST(Sizes, ThousandsOfNicsAreLaidOut) {
  expect_laid_out(parse_machine(devices(4096, "0x020000"), "nics.xml"), 1);
}

TEST(Sizes, WhatIsTooMuchIsNamed) {
  EXPECT_THAT(parse_machine(devices(50'000, "0x020000"), "nics.xml").status().message(),
              HasSubstr("nics.xml: describes 50000 GPUs and NICs; a description may have 4096"));
  EXPECT_THAT(parse_machine(cpus(1025), "cpus.xml").status().message(),
              HasSubstr("cpus.xml: describes 1025 CPUs; a description may have 1024"));
}

}  // namespace
}  // namespace tessera::topology
