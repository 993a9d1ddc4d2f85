// Displays of management controllers and of emulators: no one computes on them.
#pragma once

#include <cstdint>

namespace tessera::topology {

// By PCI vendor and device.
constexpr bool is_console_display(uint64_t vendor, uint64_t device) {
  constexpr uint64_t kAspeed = 0x1a03, kMatrox = 0x102b, kAti = 0x1002, kQemu = 0x1234;
  return vendor == kAspeed || vendor == kMatrox ||
         (vendor == kAti && device == 0x515e) ||  // ES1000
         (vendor == kQemu && device == 0x1111);
}

}  // namespace tessera::topology
