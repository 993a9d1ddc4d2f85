// Topology and graph files that a communicator reads and writes.
#include "comm/topology_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "comm/ranks.h"
#include "topology/hwloc_topology.h"
#include "topology/hwloc_write.h"
#include "topology/nccl_xml.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kMachine = R"(<system version="1">
  <cpu numaid="0" affinity="000f" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="80" gdr="1"/>
    </pci>
    <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80" gdr="1"/>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="00f0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:81:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="2" sm="80" gdr="1"/>
    </pci>
  </cpu>
</system>
)";

std::string rings(const std::string& channel) {
  return R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="12" speedinter="12")"
         R"( latencyinter="0" typeintra="PIX" typeinter="PIX" samechannels="1">
    <channel>)" +
         channel + R"(</channel>
  </graph>
</graphs>
)";
}

class TopologyFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tessera-files-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    return {(std::istreambuf_iterator<char>(file)), {}};
  }

  // Of all ranks, each with the options that `change` has made of common ones.
  static std::vector<Status> create(int ranks, const std::function<void(int, Config&)>& change) {
    const CommOptions options = test::quick_options();
    const Result<UniqueId> id = create_unique_id(options.config);
    EXPECT_TRUE(id.ok());
    std::vector<Status> ends(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        CommOptions own = options;
        change(rank, own.config);
        ends[static_cast<size_t>(rank)] =
            Communicator::create(id.value(), ranks, rank, own).status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ends;
  }

  static std::string refusal(const std::function<void(Config&)>& change) {
    const std::vector<Status> ends = create(1, [&](int, Config& config) { change(config); });
    EXPECT_FALSE(ends.front().ok());
    return ends.front().ok() ? "" : ends.front().message();
  }

  std::string folder_;
};

TEST_F(TopologyFilesTest, TheMachineOfTheFileIsDumpedByTheRankAskedFor) {
  const std::string file = write("machine.xml", kMachine);
  for (const Status& end : create(3, [&](int rank, Config&config) {
         config.topology_file = file;
         config.topology_dump_rank = 1;
         config.topology_dump = path(fmt::format("dump{}.xml", rank));
       }))
    EXPECT_TRUE(end.ok()) << end.message();
  EXPECT_FALSE(std::filesystem::exists(path("dump0.xml")));
  EXPECT_FALSE(std::filesystem::exists(path("dump2.xml")));
  Result<topology::Machine> dumped = topology::read_nccl_xml(path("dump1.xml"));
  ASSERT_TRUE(dumped.ok()) << dumped.status().message();
  EXPECT_EQ(difference(dumped.value(), topology::read_nccl_xml(file).value()), "");
}

TEST_F(TopologyFilesTest, TheFileMayBeHwlocs) {
  const Result<topology::HwlocTopology> synthetic =
      topology::HwlocTopology::synthetic("pack:2 numa:1 core:3 pu:1");
  ASSERT_TRUE(synthetic.ok());
  const Result<std::string> text = topology::write_hwloc_xml(synthetic.value());
  ASSERT_TRUE(text.ok());
  const std::string file = write("hwloc.xml", text.value());
  for (const Status& end : create(2, [&](int, Config& config) {
         config.topology_file = file;
         config.topology_dump = path("dump.xml");
       }))
    EXPECT_TRUE(end.ok()) << end.message();
  Result<topology::Machine> dumped = topology::read_nccl_xml(path("dump.xml"));
  ASSERT_TRUE(dumped.ok()) << dumped.status().message();
  EXPECT_EQ(dumped->cpus.size(), 2U);
}

TEST_F(TopologyFilesTest, WithoutAFileThisMachineIsDumped) {
  const auto ends =
      create(2, [&](int, Config& config) { config.topology_dump = path("here.xml"); });
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << end.message();
  Result<topology::Machine> dumped = topology::read_nccl_xml(path("here.xml"));
  ASSERT_TRUE(dumped.ok()) << dumped.status().message();
  EXPECT_FALSE(dumped->cpus.empty());
  EXPECT_EQ(dumped->version.or_else(0), 1);
}

TEST_F(TopologyFilesTest, RingsAndTreesThatWereFoundAreDumpedAndReadBack) {
  for (const int ranks : {1, 2, 5}) {  // five ranks share cores, here or elsewhere
    const std::string dump = path(fmt::format("graph{}.xml", ranks));
    for (const Status& end : create(ranks, [&](int, Config& config) { config.graph_dump = dump; }))
      EXPECT_TRUE(end.ok()) << end.message();
    for (const Status& end : create(ranks, [&](int, Config& config) {
           config.graph_file = dump;
           config.graph_dump = path("again.xml");
         }))
      EXPECT_TRUE(end.ok()) << end.message();
    const auto first = topology::read_graph_xml(dump),
               again = topology::read_graph_xml(path("again.xml"));
    ASSERT_TRUE(first.ok() && again.ok()) << first.status().message() << again.status().message();
    EXPECT_EQ(first->graphs.front().channels, again->graphs.front().channels);
  }
}

TEST_F(TopologyFilesTest, TheRingsOfTheFileAreUsed) {
  const std::string machine = write("machine.xml", kMachine);
  const std::string graph =
      write("graph.xml", rings(R"(<gpu dev="1"/><gpu dev="0"/><gpu dev="2"/>)"));
  for (const Status& end : create(3, [&](int, Config& config) {
         config.topology_file = machine;
         config.graph_file = graph;
         config.graph_dump = path("dump.xml");
       }))
    EXPECT_TRUE(end.ok()) << end.message();
  const auto dumped = topology::read_graph_xml(path("dump.xml"));
  ASSERT_TRUE(dumped.ok()) << dumped.status().message();
  std::vector<int> order;
  for (const auto& gpu : dumped->graphs.front().channels.front().gpus) order.push_back(gpu.device);
  EXPECT_EQ(order, (std::vector<int>{1, 0, 2}));
}

TEST_F(TopologyFilesTest, AFileThatIsMissingIsAnErrorThatNamesVariableAndFile) {
  const std::string absent = path("absent.xml");
  EXPECT_THAT(refusal([&](Config& config) { config.topology_file = absent; }),
              AllOf(HasSubstr("NCCL_TOPO_FILE"), HasSubstr(absent), HasSubstr("No such file")));
  EXPECT_THAT(refusal([&](Config& config) { config.graph_file = absent; }),
              AllOf(HasSubstr("NCCL_GRAPH_FILE"), HasSubstr(absent), HasSubstr("No such file")));
}

TEST_F(TopologyFilesTest, AFaultyFileIsAnErrorThatNamesFileLineAndAttribute) {
  std::string text = kMachine;
  text.erase(text.find("\"0x030200", text.find("0000:02:00.0")), 1);  // class=0x030200"
  const std::string machine = write("machine.xml", text);
  EXPECT_THAT(refusal([&](Config& config) { config.topology_file = machine; }),
              AllOf(HasSubstr("NCCL_TOPO_FILE"), HasSubstr(machine + ":6"),
                    HasSubstr("attribute \"class\"")));
  const std::string graph = write("graph.xml", rings(R"(<gpu dev="zero"/>)"));
  EXPECT_THAT(refusal([&](Config& config) { config.graph_file = graph; }),
              AllOf(HasSubstr("NCCL_GRAPH_FILE"), HasSubstr(graph + ":3"), HasSubstr("dev")));
}

TEST_F(TopologyFilesTest, AGraphFileMustHoldEveryRankOnce) {
  const auto refused = [&](const char* channel) {
    const std::string graph = write("graph.xml", rings(channel));
    const auto ends = create(2, [&](int, Config& config) { config.graph_file = graph; });
    EXPECT_EQ(ends[0].message(), ends[1].message());
    return ends[0].message();
  };
  EXPECT_THAT(refused(R"(<gpu dev="0"/><gpu dev="7"/>)"), HasSubstr("device 7 is no rank"));
  EXPECT_THAT(refused(R"(<gpu dev="0"/><gpu dev="0"/>)"), HasSubstr("gpu 0 occurs twice"));
  EXPECT_THAT(refused(R"(<gpu dev="0" rank="1"/><gpu dev="1" rank="1"/>)"),
              HasSubstr("rank 0 is there 0 times"));
  EXPECT_THAT(refused(R"(<gpu dev="1"/>)"), HasSubstr("rank 0 is there 0 times"));
}

// One rule, with and without a description of the machine (topology/searched.h).
TEST_F(TopologyFilesTest, AGraphFileWithAWrongRankOrDeviceIsAnErrorWithItsLine) {
  const std::string machine = write("machine.xml", kMachine);
  const auto refused = [&](const char* channel, bool described) {
    const std::string graph = write("graph.xml", rings(channel));
    const auto ends = create(3, [&](int, Config& config) {
      config.graph_file = graph;
      if (described) config.topology_file = machine;
    });
    return ends[0].ok() ? "" : ends[0].message();
  };
  for (const bool described : {false, true}) {
    EXPECT_THAT(
        refused("<gpu dev='0' rank='0'/>\n<gpu dev='1' rank='9'/><gpu dev='2'/>", described),
        HasSubstr("graph.xml:4: rank 9 is no rank; the ranks are 0 to 2"));
    EXPECT_THAT(
        refused("<gpu dev='0' rank='0'/>\n<gpu dev='7' rank='1'/><gpu dev='2'/>", described),
        HasSubstr("graph.xml:4: rank 1 does not sit on device 7"));
    EXPECT_THAT(refused("<gpu dev='0'/>\n<gpu dev='7'/><gpu dev='2'/>", described),
                HasSubstr("graph.xml:4: device 7 is no rank's"));
    EXPECT_EQ(refused("<gpu dev='1' rank='1'/><gpu dev='0'/><gpu dev='2'/>", described), "");
  }
  EXPECT_THAT(refused("<gpu dev='1' rank='0'/><gpu dev='0' rank='1'/><gpu dev='2'/>", true),
              HasSubstr("rank 0 does not sit on device 1, but on 0"));
  EXPECT_EQ(refused("<gpu dev='0' rank='0'/><gpu dev='0' rank='1'/><gpu dev='1' rank='2'/>", false),
            "");  // of ranks that share cores
}

// As tessera-topo does it.
TEST_F(TopologyFilesTest, RanksOfAFileSitOnItsGpusAlsoWhereItHasCores) {
  const std::string machine = write("machine.xml", R"(<topology version="2.0">
  <object type="Machine" cpuset="0xf" nodeset="0x1">
    <object type="NUMANode" os_index="0" cpuset="0xf" nodeset="0x1"/>
    <object type="Core" os_index="0" cpuset="0x3" nodeset="0x1">
      <object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/>
    </object>
    <object type="Core" os_index="1" cpuset="0xc" nodeset="0x1">
      <object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/>
    </object>
    <object type="PCIDev" pci_busid="0000:01:00.0" pci_type="0302 [10de:2330] [0000:0000] 00"/>
    <object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0302 [10de:2330] [0000:0000] 00"/>
  </object></topology>)");
  const auto type_of_hops = [&](int ranks) {
    for (const Status& end : create(ranks, [&](int, Config& config) {
           config.topology_file = machine;
           config.graph_dump = path("graph.xml");
         }))
      EXPECT_TRUE(end.ok()) << end.message();
    const auto graphs = topology::read_graph_xml(path("graph.xml"));
    EXPECT_TRUE(graphs.ok()) << graphs.status().message();
    return graphs.ok() ? graphs->graphs.front().speed_intra : 0;
  };
  EXPECT_EQ(type_of_hops(2), 12);  // over PCIe
  EXPECT_GT(type_of_hops(4), 12);  // more ranks than GPUs: between cores
}

TEST_F(TopologyFilesTest, TwoDumpsIntoOneFileAreRefused) {
  EXPECT_THAT(refusal([&](Config& config) {
                config.topology_dump = path("dump.xml");
                config.graph_dump = folder_ + "/./dump.xml";
              }),
              AllOf(HasSubstr("NCCL_TOPO_DUMP_FILE"), HasSubstr("NCCL_GRAPH_DUMP_FILE"),
                    HasSubstr("the same file")));
  EXPECT_FALSE(std::filesystem::exists(path("dump.xml")));
}

TEST_F(TopologyFilesTest, ADumpThatNoRankWritesIsWarnedOf) {
  const std::string machine = write("machine.xml", kMachine);
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  for (const Status& end : create(2, [&](int, Config& config) {
         config.topology_file = machine;
         config.topology_dump = path("dump.xml");
         config.topology_dump_rank = 2;
         config.graph_dump = path("graph.xml");
       }))
    EXPECT_TRUE(end.ok()) << end.message();
  const std::string said =
      ::testing::internal::GetCapturedStderr() + ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(said, HasSubstr("NCCL_TOPO_DUMP_FILE_RANK=2: the ranks are 0 to 1"));
  EXPECT_FALSE(std::filesystem::exists(path("dump.xml")));
  EXPECT_TRUE(std::filesystem::exists(path("graph.xml")));
}

TEST_F(TopologyFilesTest, ADescriptionOfTooManyDevicesIsRefusedAtOnce) {
  std::string text = "<system version='1'><cpu numaid='0' affinity='f'>\n";
  for (int i = 0; i < 50'000; ++i)
    text += fmt::format("<pci busid='{:04x}:{:02x}:00.0' class='0x020000'/>\n", i >> 8, i & 255);
  const std::string file = write("many.xml", text + "</cpu></system>");
  EXPECT_THAT(refusal([&](Config& config) { config.topology_file = file; }),
              AllOf(HasSubstr("NCCL_TOPO_FILE"), HasSubstr("many.xml"),
                    HasSubstr("describes 50000 GPUs and NICs; a description may have 4096")));
}

TEST_F(TopologyFilesTest, ADumpThatCannotBeWrittenIsAnErrorWithThePath) {
  const std::string dump = path("no/such/folder.xml");
  EXPECT_THAT(refusal([&](Config& config) { config.topology_dump = dump; }),
              AllOf(HasSubstr("NCCL_TOPO_DUMP_FILE"), HasSubstr(dump)));
  EXPECT_THAT(refusal([&](Config& config) { config.graph_dump = dump; }),
              AllOf(HasSubstr("NCCL_GRAPH_DUMP_FILE"), HasSubstr(dump)));
  EXPECT_THAT(refusal([&](Config& config) { config.topology_dump = folder_; }),
              AllOf(HasSubstr("NCCL_TOPO_DUMP_FILE"), HasSubstr(folder_)));
}

TEST_F(TopologyFilesTest, WhatIsNoRegularFileIsWrittenToAndNotReplaced) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Fd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  ASSERT_TRUE(reader.valid());
  const std::string machine = write("machine.xml", kMachine);
  for (const Status& end : create(1, [&](int, Config& config) {
         config.topology_file = machine;
         config.topology_dump = pipe;
       }))
    EXPECT_TRUE(end.ok()) << end.message();
  char start[8] = {};
  EXPECT_EQ(::read(reader.get(), start, 7), 7);
  EXPECT_STREQ(start, "<system");
}

TEST_F(TopologyFilesTest, RanksWithDifferentFilesAreToldInWhatTheyDiffer) {
  const std::string file = write("machine.xml", kMachine);
  for (const Status& end : create(2, [&](int rank, Config&config) {
         if (rank == 1) config.topology_file = file;
       })) {
    EXPECT_EQ(end.code(), Code::kInvalidUsage);
    EXPECT_THAT(end.message(), AllOf(HasSubstr("NCCL_TOPO_FILE (contents)"), HasSubstr("none"),
                                     HasSubstr("2 CPUs, 3 GPUs, 0 ports")));
  }
  const std::string up = write("up.xml", rings(R"(<gpu dev="0"/><gpu dev="1"/>)"));
  const std::string down = write("down.xml", rings(R"(<gpu dev="1"/><gpu dev="0"/>)"));
  for (const Status& end :
       create(2, [&](int rank, Config&config) { config.graph_file = rank == 0 ? up : down; })) {
    EXPECT_EQ(end.code(), Code::kInvalidUsage);
    EXPECT_THAT(end.message(), HasSubstr("NCCL_GRAPH_FILE (contents)"));
  }
}

TEST_F(TopologyFilesTest, NothingIsReadOrFoundWhereNothingIsAskedFor) {
  const std::vector<int> order(64);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    const Result<TopologyFiles> files = TopologyFiles::read(Config{});
    ASSERT_TRUE(files.ok());
    EXPECT_EQ(files->topology_digest(), "none");
    EXPECT_TRUE(files->dump(Config{}, 0, order).ok());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

}  // namespace
}  // namespace tessera
