#include "topology/support/files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "topology/nccl_xml.h"
#include "topology/nccl_xml_check.h"

namespace tessera::topology::testing {

namespace fs = std::filesystem;

fs::path shared_folder() {
  const char* shared = std::getenv("TESSERA_SHARED");
  const fs::path top =
      shared != nullptr ? fs::path(shared) : fs::path(TESSERA_SOURCE_DIR "/../shared");
  for (const fs::path& folder : {top / "topologies", top})
    if (fs::exists(folder / "azure-ncv4.xml")) return folder;
  return {};
}

std::vector<fs::path> shared_nccl_files() {
  std::vector<fs::path> files;
  if (shared_folder().empty()) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(shared_folder()))
    if (entry.path().extension() == ".xml" &&
        !entry.path().filename().string().starts_with("hwloc"))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

fs::path corpus_folder() { return TESSERA_SOURCE_DIR "/tests/topology/corpus"; }

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Machine parsed(const std::string& text) {
  Result<Machine> machine = parse_nccl_xml(text, "test.xml");
  EXPECT_TRUE(machine.ok()) << machine.status().message();
  return machine.ok() ? std::move(machine.value()) : Machine();
}

std::string parse_error(const std::string& text) {
  const Result<Machine> machine = parse_nccl_xml(text, "test.xml");
  if (machine.ok()) return "ok";
  EXPECT_EQ(machine.status().code(), Code::kInvalidArgument);
  return machine.status().message();
}

std::string on_one_cpu(const std::string& body) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"ff\">\n" + body +
         "\n</cpu></system>\n";
}

int warnings_with(const Machine& machine, const std::string& text) {
  return static_cast<int>(std::count_if(
      machine.warnings.begin(), machine.warnings.end(),
      [&](const Warning& warning) { return warning.text.find(text) != std::string::npos; }));
}

std::string warnings_of(const Machine& machine) {
  std::string all;
  for (const Warning& warning : machine.warnings)
    all += std::to_string(warning.line) + ": " + warning.text + "\n";
  return all;
}

namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return below(100) < percent; }

  template <class T>
  Stated<T> stated(T value) {
    if (chance(15)) return {};
    if (chance(10)) return {std::nullopt, chance(50) ? "" : "no <\"value\"> & 'none'\n"};
    return {value, std::nullopt};
  }
  Attributes others() {
    Attributes list;
    for (int i = below(3); i > 0; --i)
      list.push_back(
          {"own-" + std::to_string(i), chance(30) ? "" : "a\tb & c" + std::to_string(below(9))});
    return list;
  }
  std::string text(const char* value) { return chance(30) ? "" : value; }
  BusId bus_id() {
    return {chance(50) ? 0 : static_cast<uint32_t>(engine_()), static_cast<uint8_t>(below(256)),
            static_cast<uint8_t>(below(32)), static_cast<uint8_t>(below(8))};
  }

 private:
  std::mt19937 engine_;
};

void add_nic(Machine& m, Random& random, int cpu, int pci) {
  const int nic = static_cast<int>(m.nics.size());
  m.nics.push_back({cpu, pci, random.others(), {}});
  for (int i = random.below(4); i > 0; --i) {
    Net net;
    net.nic = nic;
    net.name = random.text("mlx5_0");
    net.device = random.stated(random.below(100));
    net.port = random.stated(random.below(4));
    net.megabits = random.stated(random.chance(50) ? 400000.0 : 0.5 + random.below(1000));
    net.guid = random.stated(uint64_t{0xf00d00000000} + static_cast<unsigned>(random.below(5)));
    net.direct_rdma = random.stated(random.chance(50));
    net.latency_us = random.stated(random.below(100) / 7.0);
    net.max_connections = random.stated(random.below(100000));
    net.collectives = random.stated(random.chance(50));
    net.others = random.others();
    m.nets.push_back(net);
  }
}

PeerLink random_link(Random& random) {
  PeerLink link;
  if (random.chance(90)) {
    const BusId id = random.bus_id();
    if (random.chance(85)) {
      link.target = to_string(id);
      link.target_id = {id, std::nullopt};
    } else {
      link.target = "fffffff:ffff:ff";
      link.target_id = {std::nullopt, link.target};
    }
  }
  link.target_class = random.stated(static_cast<uint32_t>(random.chance(50) ? 0x068000 : 0x030200));
  link.count = random.stated(1 + random.below(18));
  link.megabytes = random.stated(random.below(1000) * 0.25);
  link.others = random.others();
  return link;
}

void add_gpu(Machine& m, Random& random, int pci) {
  Gpu gpu;
  gpu.pci = pci;
  gpu.device = random.stated(random.below(16));
  gpu.rank = random.stated(random.below(16));
  gpu.compute_capability = random.stated(90);
  gpu.gcn = random.text("gfx942");
  gpu.direct_rdma = random.stated(random.chance(50));
  gpu.others = random.others();
  for (int i = random.below(4); i > 0; --i) {
    PeerLink link = random_link(random);
    link.kind = static_cast<PeerLinkKind>(random.below(3));
    link.gpu = static_cast<int>(m.gpus.size());
    link.pci = pci;
    m.peer_links.push_back(link);
  }
  m.gpus.push_back(gpu);
}

void add_pci(Machine& m, Random& random, int cpu, int parent, int depth) {
  const int index = static_cast<int>(m.pcis.size());
  Pci pci;
  pci.cpu = cpu;
  pci.parent = parent;
  pci.bus_id = random.stated(random.bus_id());
  const uint32_t classes[] = {0x060400, 0x030200, 0x120000, 0x020000, 0x010802};
  pci.pci_class = random.stated(classes[random.below(5)]);
  pci.vendor = random.text("0x10de");
  pci.device = random.text("0x2330");
  pci.subsystem_vendor = random.text("0x10de");
  pci.subsystem_device = random.text("0x16c1");
  const double speeds[] = {2.5, 5, 8, 16, 32, 64};
  pci.link_gts = random.stated(speeds[random.below(6)]);
  pci.link_width = random.stated(1 << random.below(5));
  pci.others = random.others();
  m.pcis.push_back(pci);
  for (int i = random.below(4); i > 0; --i) {
    switch (random.below(4)) {
      case 0:
        if (depth < 4) add_pci(m, random, cpu, index, depth + 1);
        break;
      case 1:
        add_gpu(m, random, index);
        break;
      case 2:
        add_nic(m, random, cpu, index);
        break;
      default:
        m.peer_links.push_back(random_link(random));
        m.peer_links.back().kind = PeerLinkKind::kPciSwitch;
        m.peer_links.back().pci = index;
    }
  }
}

}  // namespace

Machine random_machine(unsigned seed) {
  Random random(seed);
  Machine m;
  m.version = {1 + random.below(2), std::nullopt};
  m.others = random.others();
  const int hosts = 1 + random.below(3);
  for (int host = 0; host < hosts; ++host) {
    m.hosts.emplace_back();
    if (hosts > 1) m.hosts.back().id = "0xf1e4069fb3f6c40" + std::to_string(host);
    for (int i = 1 + random.below(3); i > 0; --i) {
      const int index = static_cast<int>(m.cpus.size());
      Cpu cpu;
      cpu.host = host;
      cpu.numa = random.stated(static_cast<int64_t>(random.below(20) - 1));
      CpuSet set;
      for (int k = random.below(20); k > 0; --k) set.add(random.below(300));
      cpu.affinity = random.stated(set);
      cpu.arch = random.text("x86_64");
      cpu.vendor = random.text("  Shanghai  ");
      cpu.family = random.stated(6);
      cpu.model = random.stated(143);
      cpu.others = random.others();
      m.cpus.push_back(cpu);
      for (int k = random.below(4); k > 0; --k) {
        if (random.chance(20))
          add_nic(m, random, index, -1);
        else
          add_pci(m, random, index, -1, 0);
      }
    }
  }
  m.peer_links_stated = !m.gpus.empty() || !m.peer_links.empty();
  classify_pcis(m);
  return m;
}

}  // namespace tessera::topology::testing
