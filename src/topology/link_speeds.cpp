#include "topology/link_speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tessera::topology {
namespace {

// From the least compute capability up.
struct NvlinkEntry {
  int least = 0;
  double bandwidth = 0;
};
constexpr std::array<NvlinkEntry, 6> kNvlink = {
    {{60, 18}, {70, 20}, {80, 20}, {86, 12}, {90, 20.6}, {100, 40.1}}};

// By the start of the architecture's name, without "gfx"; old files write 910 for 90a.
struct XgmiEntry {
  const char* prefix;
  double bandwidth;
};
constexpr std::array<XgmiEntry, 5> kXgmi = {
    {{"906", 24}, {"908", 24}, {"90a", 36}, {"910", 36}, {"94", 48}}};
constexpr double kXgmiNewest = 48;

// Intel's model numbers do not grow with time, so each known one is listed.
struct IntelEntry {
  int model;
  double bandwidth;
};
constexpr double kQpi = 6, kSkylakeUpi = 10, kSapphireUpi = 22, kEmeraldUpi = 40;
constexpr std::array<IntelEntry, 5> kIntel = {{{85, kSkylakeUpi},
                                               {106, kSkylakeUpi},
                                               {108, kSkylakeUpi},
                                               {143, kSapphireUpi},
                                               {207, kEmeraldUpi}}};
constexpr int kFirstWithUpi = 85;  // all older models have QPI
constexpr double kAmd = 16, kZhaoxin = 6, kZhaoxinYongfeng = 9, kPower9 = 32, kArm = 6;
constexpr double kNeutral = 10;

constexpr std::array<double, 7> kFanOut = {1.0, 0.97, 0.94, 0.92, 0.90, 0.88, 0.86};

Speed intel(const Cpu& cpu) {
  if (!cpu.model.given()) {
    return {kSkylakeUpi, fmt::format("the Intel CPU's model is not stated: {} GB/s between sockets",
                                     kSkylakeUpi)};
  }
  const int family = cpu.family.or_else(6), model = *cpu.model.value;
  if (family == 6) {
    if (model < kFirstWithUpi) return {kQpi, ""};
    for (const IntelEntry& entry : kIntel) {
      if (entry.model == model) return {entry.bandwidth, ""};
    }
  }
  return {kEmeraldUpi, fmt::format("Intel CPU family {} model {} is not in the table: {} GB/s "
                                   "between sockets as the newest known model has",
                                   family, model, kEmeraldUpi)};
}

Speed amd(const Cpu& cpu) {
  const int family = plain_family(cpu.family.or_else(0));
  if (family == 23 || family == 25 || family == 26) return {kAmd, ""};
  return {kAmd, fmt::format("AMD CPU family {} is not in the table: {} GB/s between sockets as the "
                            "newest known family has",
                            family, kAmd)};
}

}  // namespace

std::span<const double> default_fan_out() { return kFanOut; }

Speed nvlink_speed(const Stated<int>& compute_capability) {
  if (!compute_capability.given()) {
    return {20, "the GPUs' compute capability is not stated: 20 GB/s per NVLink"};
  }
  double bandwidth = 0;
  for (const NvlinkEntry& entry : kNvlink) {
    if (entry.least <= *compute_capability.value) bandwidth = entry.bandwidth;
  }
  if (*compute_capability.value == 87 || *compute_capability.value == 89) bandwidth = 20;
  if (bandwidth > 0) return {bandwidth, ""};
  return {20, fmt::format("compute capability {} is not in the table: 20 GB/s per NVLink",
                          *compute_capability.value)};
}

Speed xgmi_speed(const std::string& gcn) {
  const std::string number = gcn.starts_with("gfx") ? gcn.substr(3) : gcn;
  for (const XgmiEntry& entry : kXgmi) {
    if (number.starts_with(entry.prefix)) return {entry.bandwidth, ""};
  }
  if (gcn.empty()) return {24, "the GPUs' architecture is not stated: 24 GB/s per xGMI link"};
  return {kXgmiNewest,
          fmt::format("architecture {} is not in the table: {} GB/s per xGMI link as the newest "
                      "known one has",
                      gcn, kXgmiNewest)};
}

Speed pcie_speed(const Stated<double>& gts, const Stated<int>& width) {
  const bool has_speed = gts.given() && *gts.value > 0;
  const bool has_width = width.given() && *width.value > 0;
  if (!has_speed && !has_width) return {0, ""};
  // What a lane delivers, in eightieths of GB/s, by generation
  constexpr std::array<std::pair<double, double>, 6> kLanes = {
      {{2.5, 15}, {5, 30}, {8, 60}, {16, 120}, {32, 240}, {64, 480}}};
  double lane = 60;
  if (has_speed) {
    lane = kLanes[0].second;
    for (const auto& [rate, value] : kLanes) {
      if (rate <= *gts.value) lane = value;
    }
  }
  const int lanes = has_width ? *width.value : 16;
  Speed speed{lanes * lane / 80, ""};
  if (!has_speed) speed.note = "PCIe speed is not stated for all devices: 8 GT/s per lane";
  if (!has_width) speed.note = "PCIe width is not stated for all devices: 16 lanes";
  return speed;
}

Speed network_speed(const Stated<double>& megabits) {
  if (megabits.given() && *megabits.value > 0) return {*megabits.value / 8000, ""};
  return {kNetworkUnknown, "its speed is not stated: 10 Gb/s"};
}

int plain_family(int family) {
  switch (family) {
    case 143:
      return 23;
    case 175:
      return 25;
    case 191:
      return 26;
    default:
      return family;
  }
}

Speed smp_speed(const Cpu& cpu) {
  if (cpu.arch == "arm64" || cpu.arch == "aarch64") return {kArm, ""};
  if (cpu.arch.starts_with("ppc64")) return {kPower9, ""};
  if (cpu.vendor == "GenuineIntel") return intel(cpu);
  if (cpu.vendor == "AuthenticAMD" || cpu.vendor == "HygonGenuine") return amd(cpu);
  if (cpu.vendor == "CentaurHauls" || cpu.vendor.find("Shanghai") != std::string::npos) {
    return {cpu.family.or_else(0) == 7 && cpu.model.or_else(0) == 91 ? kZhaoxinYongfeng : kZhaoxin,
            ""};
  }
  return {kNeutral, fmt::format("the CPU's vendor{} is not in the table: {} GB/s between sockets",
                                cpu.vendor.empty() ? "" : " " + cpu.vendor, kNeutral)};
}

}  // namespace tessera::topology
