// What links carry where a description does not say it: the one place with such numbers.
//
// Bandwidths in GB/s per direction, as NCCL and RCCL assume them for the same hardware; latencies
// in us are round figures for one crossing. All are starting points that measurements replace.
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>

#include "topology/machine.h"

namespace tessera::topology {

// A bandwidth and, where something had to be assumed, what and why; note empty: looked up.
struct Speed {
  double bandwidth = 0;
  std::string note;
};

inline constexpr double kLocalBandwidth = 5000;  // within a device
inline constexpr double kPcieUnknown = 12;       // generation 3, 16 lanes
inline constexpr double kNetworkUnknown = 1.25;  // 10 Gb/s
inline constexpr double kCoreBandwidth = 20;     // what one core copies
inline constexpr double kCacheBandwidth = 200;   // a shared cache, all cores together
inline constexpr double kMemoryBandwidth = 100;  // the memory of a NUMA node
inline constexpr double kC2cUnknown = 450;

inline constexpr double kNvlinkLatency = 0.6;  // device to device; half of it to a switch
inline constexpr double kXgmiLatency = 0.8;
inline constexpr double kC2cLatency = 0.5;
inline constexpr double kCacheLatency = 0.02;
inline constexpr double kMemoryLatency = 0.05;
inline constexpr double kPcieLatency = 0.5;
inline constexpr double kSmpLatency = 0.15;
inline constexpr double kNetworkLatency = 1.0;  // port to fabric; from host to host twice

// The share of a device's links that a switch of the NVLink kind delivers by the number of peers at
// a time, k = 1 first. That it falls is published; how far depends on the machine.
std::span<const double> default_fan_out();

Speed nvlink_speed(const Stated<int>& compute_capability);  // of one link
Speed xgmi_speed(const std::string& gcn);                   // of one link
// bandwidth 0: not known. Needs both speed and width; either alone is completed by generation 3 or
// 16 lanes.
Speed pcie_speed(const Stated<double>& gts, const Stated<int>& width);
Speed network_speed(const Stated<double>& megabits);

// Family numbers come in two encodings: 143, 175 and 191 are 23, 25 and 26.
int plain_family(int family);
// Between sockets of this kind. Unknown newer models take the value of the newest known one of
// their vendor, unknown vendors a neutral one.
Speed smp_speed(const Cpu& cpu);

}  // namespace tessera::topology
