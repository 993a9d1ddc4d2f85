// A file from the bare machine, used in a guest: what is missing on either side is said.
#include "topology/host_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

Pci device(PciKind kind, const char* id) {
  Pci pci;
  pci.kind = kind;
  pci.cpu = 0;
  pci.bus_id.value = parse_bus_id(id);
  return pci;
}

Machine machine(std::vector<Pci> pcis) {
  Machine machine;
  machine.hosts.resize(1);
  machine.cpus.resize(1);
  machine.pcis = std::move(pcis);
  return machine;
}

const Pci kBridge = device(PciKind::kBridge, "0000:16:00.0");

auto warns(const char* text) { return Field(&Warning::text, text); }

TEST(HostMatch, IdsOfBridgesAreLabels) {
  const Machine file = machine({kBridge, device(PciKind::kGpu, "0000:05:00.0")});
  const HostMatch match = match_host(file, 0, machine({device(PciKind::kGpu, "0000:05:00.0")}));
  EXPECT_TRUE(match.usable);
  EXPECT_THAT(match.warnings, IsEmpty());
}

TEST(HostMatch, EachDeviceThatOneSideLacksIsSaidOnce) {
  const Machine file = machine(
      {kBridge, device(PciKind::kGpu, "0000:05:00.0"), device(PciKind::kNic, "0000:19:00.0")});
  const Machine here =
      machine({device(PciKind::kGpu, "0000:05:00.0"), device(PciKind::kNic, "0000:06:00.0"),
               device(PciKind::kOther, "0000:07:00.0")});
  const HostMatch match = match_host(file, 0, here);
  EXPECT_TRUE(match.usable);
  EXPECT_THAT(match.absent, ElementsAre(2));
  EXPECT_THAT(match.unknown, ElementsAre(1));
  EXPECT_THAT(match.warnings,
              ElementsAre(warns("NIC 0000:19:00.0 is in the file, not on this host"),
                          warns("NIC 0000:06:00.0 is on this host, not in the file")));
}

TEST(HostMatch, AFileOfWhichNoGpuIsHereIsIgnoredAsAWhole) {
  const Machine file =
      machine({device(PciKind::kGpu, "0000:18:00.0"), device(PciKind::kGpu, "0000:1a:00.0"),
               device(PciKind::kNic, "0000:06:00.0")});
  const Machine here =
      machine({device(PciKind::kGpu, "0000:05:00.0"), device(PciKind::kNic, "0000:06:00.0")});
  const HostMatch match = match_host(file, 0, here);
  EXPECT_FALSE(match.usable);
  EXPECT_THAT(match.warnings,
              ElementsAre(warns("none of the 2 GPUs in the file is on this host: the "
                                "file is ignored")));
}

TEST(HostMatch, AFileWithoutGpusIsJudgedByNothing) {
  const HostMatch match =
      match_host(machine({device(PciKind::kNic, "0000:06:00.0")}), 0, machine({}));
  EXPECT_TRUE(match.usable);
  EXPECT_THAT(match.absent, ElementsAre(0));
}

TEST(HostMatch, TheDomainCounts) {
  const Machine file =
      machine({device(PciKind::kGpu, "0001:05:00.0"), device(PciKind::kGpu, "0002:05:00.0")});
  const HostMatch match = match_host(file, 0, machine({device(PciKind::kGpu, "0002:05:00.0")}));
  EXPECT_TRUE(match.usable);
  EXPECT_THAT(match.absent, ElementsAre(0));
}

}  // namespace
}  // namespace tessera::topology
