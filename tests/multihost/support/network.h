// Hosts joined by networks, all on this machine:
//
//     host 0          host 1
//   eth0  eth1      eth0  eth1       network namespaces, veth pairs
//     |     |         |     |
//   h0r0  h0r1      h1r0  h1r1       ports of the switch
//     |     '----.----|-----'
//     '----.------'   |
//         sw0        sw1             a bridge per rail, in one more namespace
//
// Commands that fail are failures of the test. Everything vanishes with the object.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihost/support/lossy_link.h"
#include "multihost/support/network_namespace.h"

namespace tessera::multihost {

enum class Family { kIpv4, kIpv6 };

class Network {
 public:
  explicit Network(int hosts, int rails = 1, Family family = Family::kIpv4);

  int hosts() const { return static_cast<int>(hosts_.size()); }
  int rails() const { return rails_; }
  const NetworkNamespace& host(int number) const { return hosts_[static_cast<size_t>(number)]; }

  // The carrier is gone at both ends.
  void unplug(int host, int rail = 0);
  void plug(int host, int rail = 0);
  // Both ends look as before, and nothing passes.
  void silence(int host, int rail = 0);
  void unsilence(int host, int rail = 0);
  // The host has no cable any more.
  void remove(int host);
  // A queueing discipline for all that the switch sends to the host.
  void shape(int host, const std::string& discipline, int rail = 0);
  // The cable of the host from now on; the first time, it is replaced by a LossyLink.
  void degrade(int host, const Quality& quality, int rail = 0);
  // What such cables have lost.
  uint64_t lost_frames() const;

 private:
  static std::string port(int host, int rail);
  // What the port is plugged in at.
  std::string bridge(int host, int rail) const;

  int rails_;
  NetworkNamespace switch_;
  std::vector<NetworkNamespace> hosts_;
  std::map<std::pair<int, int>, std::unique_ptr<LossyLink>> lossy_;  // by host and rail
};

}  // namespace tessera::multihost
