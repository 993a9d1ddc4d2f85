#include "multihost/support/network.h"

#include <fmt/format.h>

namespace tessera::multihost {
namespace {

// Interfaces that a test adds come before in the lists of the kernel.
constexpr int kFirstIndex = 1000;

}  // namespace

Network::Network(int hosts, int rails, Family family)
    : rails_(rails), hosts_(static_cast<size_t>(hosts)) {
  std::string wiring;
  for (int rail = 0; rail < rails; ++rail)
    wiring += fmt::format("link add sw{0} type bridge\nlink set sw{0} up\n", rail);
  for (int h = 0; h < hosts; ++h) {
    for (int rail = 0; rail < rails; ++rail) {
      wiring += fmt::format(
          "link add {0} type veth peer name eth{1} index {3} netns {2}\nlink set {0} master sw{1} "
          "up\n",
          port(h, rail), rail, host(h).path(), kFirstIndex + rail);
    }
  }
  switch_.ip(wiring);
  for (int h = 0; h < hosts; ++h) {
    std::string addresses;
    for (int rail = 0; rail < rails; ++rail) {
      addresses += family == Family::kIpv4
                       ? fmt::format("addr add 10.7.{0}.{1}/24 dev eth{0}\n", rail, h + 1)
                       : fmt::format("addr add fd07:{0}::{1}/64 dev eth{0} nodad\n", rail, h + 1);
      addresses += fmt::format("link set eth{} up\n", rail);
    }
    host(h).ip(addresses);
  }
  for (const NetworkNamespace& host : hosts_) {
    for (int rail = 0; rail < rails; ++rail) host.await_carrier(fmt::format("eth{}", rail));
  }
}

std::string Network::port(int host, int rail) { return fmt::format("h{}r{}", host, rail); }

std::string Network::bridge(int host, int rail) const {
  return lossy_.contains({host, rail}) ? fmt::format("way{}", port(host, rail))
                                       : fmt::format("sw{}", rail);
}

void Network::unplug(int host, int rail) {
  switch_.ip(fmt::format("link set {} down\n", port(host, rail)));
}

void Network::plug(int host, int rail) {
  switch_.ip(fmt::format("link set {} up\n", port(host, rail)));
}

void Network::silence(int host, int rail) {
  switch_.ip(fmt::format("link set {} nomaster\n", port(host, rail)));
}

void Network::unsilence(int host, int rail) {
  switch_.ip(fmt::format("link set {} master {}\n", port(host, rail), bridge(host, rail)));
}

void Network::remove(int host) {
  for (int rail = 0; rail < rails_; ++rail)
    switch_.ip(fmt::format("link del {}\n", port(host, rail)));
}

void Network::shape(int host, const std::string& discipline, int rail) {
  switch_.tc(fmt::format("qdisc add dev {} root {}\n", port(host, rail), discipline));
}

void Network::degrade(int host, const Quality& quality, int rail) {
  std::unique_ptr<LossyLink>& link = lossy_[{host, rail}];
  if (link == nullptr) {
    const std::string name = port(host, rail), near = "near" + name, far = "far" + name;
    link = std::make_unique<LossyLink>(switch_, near, far, static_cast<uint32_t>(host + rail + 1));
    switch_.ip(
        fmt::format("link add {0} type bridge\nlink set {0} up\n"
                    "link set {1} master {0} up\nlink set {2} master {0}\n"
                    "link set {3} master sw{4} up\n",
                    bridge(host, rail), near, name, far, rail));
  }
  link->set(quality);
}

uint64_t Network::lost_frames() const {
  uint64_t lost = 0;
  for (const auto& [where, link] : lossy_) lost += link->lost();
  return lost;
}

}  // namespace tessera::multihost
