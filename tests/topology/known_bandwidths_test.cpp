// Rings on machines whose ring bandwidth with NCCL is known: links per GPU times what NCCL counts
// for one, or the narrowest part of the way through the host.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "topology/graph_of.h"
#include "topology/nccl_xml.h"
#include "topology/search.h"
#include "topology/support/files.h"

namespace tessera::topology {
namespace {

constexpr const char* kSkylake = R"(arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85")";

std::string bus_id(int gpu) { return fmt::format("0000:{:02x}:00.0", 0x10 + gpu); }

// 8 GPUs, four on each of two sockets, each under its own x16 port; `links` is what a gpu element
// holds.
template <class Links>
std::string eight_gpus(int capability, const char* gts, const Links& links) {
  std::string text = "<system version=\"1\">";
  for (int socket = 0; socket < 2; ++socket) {
    text += fmt::format("<cpu numaid=\"{}\" affinity=\"{}\" {}>", socket, socket == 0 ? "0f" : "f0",
                        kSkylake);
    for (int gpu = 4 * socket; gpu < 4 * socket + 4; ++gpu) {
      text += fmt::format(
          "<pci busid=\"{}\" class=\"0x030200\" link_speed=\"{} GT/s PCIe\" link_width=\"16\">"
          "<gpu dev=\"{}\" sm=\"{}\" rank=\"{}\" gdr=\"1\">{}</gpu></pci>",
          bus_id(gpu), gts, gpu, capability, gpu, links(gpu));
    }
    text += "</cpu>";
  }
  return text + "</system>";
}

std::string switched(int capability, int links) {
  return eight_gpus(capability, "16.0", [&](int) {
    return fmt::format("<nvlink target=\"fffffff:ffff:ff\" count=\"{}\" tclass=\"0x068000\"/>",
                       links);
  });
}

// Links from GPU to GPU by a table.
std::string meshed(int capability, const std::array<std::array<int, 8>, 8>& table) {
  return eight_gpus(capability, "8.0", [&](int gpu) {
    std::string text;
    for (int peer = 0; peer < 8; ++peer) {
      if (table[gpu][peer] == 0) continue;
      text += fmt::format("<nvlink target=\"{}\" count=\"{}\" tclass=\"0x030200\"/>", bus_id(peer),
                          table[gpu][peer]);
    }
    return text;
  });
}

double ring_bandwidth(const Machine& machine) {
  const Graph graph = graph_of(machine);
  const Result<Layout> layout = search(graph, graph.of_kind(NodeKind::kGpu));
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  return layout.ok() ? layout->ring_bandwidth : 0;
}

double ring_bandwidth(const std::string& text) { return ring_bandwidth(testing::parsed(text)); }

void expect_close(double found, double known) { EXPECT_NEAR(found, known, 0.1 * known); }

TEST(KnownBandwidths, OfEightGpusOnNvSwitchesAreTheirLinksTogether) {
  expect_close(ring_bandwidth(switched(70, 6)), 6 * 20);       // V100
  expect_close(ring_bandwidth(switched(80, 12)), 12 * 20);     // A100
  expect_close(ring_bandwidth(switched(90, 18)), 18 * 20.6);   // H100
  expect_close(ring_bandwidth(switched(100, 18)), 18 * 40.1);  // B200
}

TEST(KnownBandwidths, OfEightV100InAHybridCubeMeshAreSixLinks) {
  expect_close(ring_bandwidth(meshed(70, {{{0, 1, 1, 2, 2, 0, 0, 0},
                                           {1, 0, 2, 1, 0, 2, 0, 0},
                                           {1, 2, 0, 2, 0, 0, 1, 0},
                                           {2, 1, 2, 0, 0, 0, 0, 1},
                                           {2, 0, 0, 0, 0, 1, 1, 2},
                                           {0, 2, 0, 0, 1, 0, 2, 1},
                                           {0, 0, 1, 0, 1, 2, 0, 2},
                                           {0, 0, 0, 1, 2, 1, 2, 0}}})),
               6 * 20);
}

TEST(KnownBandwidths, OfEightP100InACubeMeshAreFourLinks) {
  expect_close(ring_bandwidth(meshed(60, {{{0, 1, 1, 1, 1, 0, 0, 0},
                                           {1, 0, 1, 1, 0, 1, 0, 0},
                                           {1, 1, 0, 1, 0, 0, 1, 0},
                                           {1, 1, 1, 0, 0, 0, 0, 1},
                                           {1, 0, 0, 0, 0, 1, 1, 1},
                                           {0, 1, 0, 0, 1, 0, 1, 1},
                                           {0, 0, 1, 0, 1, 1, 0, 1},
                                           {0, 0, 0, 1, 1, 1, 1, 0}}})),
               4 * 18);
}

TEST(KnownBandwidths, WithoutLinksAreThoseBetweenTheSockets) {
  expect_close(ring_bandwidth(eight_gpus(70, "8.0", [](int) { return std::string(); })), 10);
}

TEST(KnownBandwidths, OfARecordedH100MachineAreEighteenLinks) {
  const auto folder = testing::shared_folder();
  if (folder.empty())
    GTEST_SKIP() << "no files of real machines here; TESSERA_SHARED names their folder";
  const Result<Machine> machine = read_nccl_xml((folder / "oci-h100-bm.xml").string());
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  expect_close(ring_bandwidth(machine.value()), 18 * 20.6);
}

}  // namespace
}  // namespace tessera::topology
