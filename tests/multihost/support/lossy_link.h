// A stretch of cable that loses and delays Ethernet frames, in both directions:
//
//   interface `left` --- a thread of the test, which drops or holds back --- interface `right`
//
// Both are TAP devices of one namespace. The kernel hands them whole frames as a wire would carry
// them: no larger than the MTU, with checksums.
// Source: Linux, Documentation/networking/tuntap.rst.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "base/fd.h"
#include "multihost/support/network_namespace.h"

namespace tessera::multihost {

struct Quality {
  double loss = 0;                     // share of frames that vanish, each at random for itself
  std::chrono::microseconds delay{0};  // of those that do not; they stay in order
};

class LossyLink {
 public:
  // Empty, or why there can be none here.
  static std::string obstacle();

  // Makes the two interfaces, which are gone when this object and the processes forked meanwhile
  // are. Frames vanish by the dice of `seed`. A failure is one of the test.
  LossyLink(const NetworkNamespace& where, const std::string& left, const std::string& right,
            uint32_t seed);
  ~LossyLink();
  LossyLink(const LossyLink&) = delete;
  LossyLink& operator=(const LossyLink&) = delete;

  // From now on. Frames on the way keep their delay. Any thread.
  void set(const Quality& quality);
  // Frames that have vanished. Any thread.
  uint64_t lost() const { return lost_; }

 private:
  void carry(uint32_t seed);

  Fd left_, right_;
  Fd stop_;
  std::atomic<double> loss_{0};
  std::atomic<std::chrono::microseconds> delay_{};
  std::atomic<uint64_t> lost_{0};
  std::thread carrier_;
};

}  // namespace tessera::multihost
