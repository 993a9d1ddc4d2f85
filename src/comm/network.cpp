#include "comm/network.h"

#include <strings.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/error_text.h"
#include "base/log.h"
#include "transports/emulated/engine.h"
#include "transports/ib/engine.h"
#include "transports/net_plugin/engine.h"
#include "transports/tcp/connect.h"

namespace tessera {
namespace {

// Through a net plugin, with TCP to arrange it.
Status connect_by_plugin(Core& core, Membership membership, std::span<const tcp::RemotePeer> peers,
                         Deadline deadline, const tcp::Meanwhile& meanwhile) {
  Result<std::unique_ptr<net_plugin::Network>> network =
      net_plugin::Network::open(core.tuning.net, core.rank, core.id);
  if (!network.ok()) return network.status();
  std::vector<net_plugin::PeerName> names;
  for (const tcp::RemotePeer& peer : peers)
    names.push_back({peer.rank, fmt::format("rank {} (host {})", peer.rank, peer.host_name)});
  log::info(core.rank, "{} connects the hosts", network.value()->name());
  Result<std::unique_ptr<net_plugin::Engine>> engine =
      net_plugin::Engine::create(std::move(network).value(), names, *core.ports);
  if (!engine.ok()) return engine.status();
  Result<std::unique_ptr<PortEngine>> tcp =
      tcp::connect(std::move(membership.listener).value(), core.rank, peers, membership.secret,
                   core.config, engine.value()->control(), deadline, meanwhile);
  if (!tcp.ok()) return tcp.status();
  const auto while_connected = [&] { return meanwhile({}); };
  if (Status s = engine.value()->connect(std::move(tcp).value(), deadline, while_connected);
      !s.ok())
    return s;
  core.ports->set_engine(std::move(engine).value());
  return {};
}

Status connect_hosts(Core& core, Membership membership, Deadline deadline,
                     const tcp::Meanwhile& meanwhile) {
  if (!membership.listener.ok()) return membership.listener.status();
  std::vector<tcp::RemotePeer> peers;
  std::vector<ib::PeerName> names;
  for (const Member& member : core.members) {
    if (!core.elsewhere(member.rank)) continue;
    const auto first = member.endpoints.begin();
    peers.push_back({member.rank, member.host_name, {first, first + member.endpoint_count}});
    names.push_back({member.rank, fmt::format("rank {} (host {})", member.rank, member.host_name)});
  }
  if (core.tuning.net != nullptr) {
    return connect_by_plugin(core, std::move(membership), peers, deadline, meanwhile);
  }
  Result<std::unique_ptr<ib::Engine>> created =
      ib::Engine::create(core.rank, core.ranks, core.config, *core.ports);
  if (!created.ok()) return created.status();
  std::unique_ptr<ib::Engine> engine = std::move(created).value();
  Result<std::unique_ptr<PortEngine>> tcp =
      tcp::connect(std::move(membership.listener).value(), core.rank, peers, membership.secret,
                   core.config, engine->control(), deadline, meanwhile);
  if (!tcp.ok()) return tcp.status();
  const auto while_connected = [&] { return meanwhile({}); };
  if (Status s = engine->connect(std::move(tcp).value(), names, deadline, while_connected); !s.ok())
    return s;
  if (!engine->in_use())
    core.network.bandwidth = network_bandwidth(core.members);
  else if (core.tuning.seat.between_hosts.bandwidth > 0)
    core.network = core.tuning.seat.between_hosts;
  core.ports->set_engine(std::move(engine));
  return {};
}

void enter_ways(Core& core) {
  for (int rank = 0; rank < core.ranks; ++rank) {
    core.ways[rank].port = core.ports->port(rank);
    core.ways[rank].base = core.ports->base(rank);
  }
}

// Ranks that wait for other hosts wait in poll(): their neighbours need more than a doorbell.
Status exchange_pokes(Core& core, HandOver& hand_over) {
  Fd own(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!own.valid()) return Status::error(Code::kSystem, "eventfd: {}", error_text(errno));
  if (Status s = hand_over.send_to_neighbours(own, kPokeTag); !s.ok()) return s;
  for (const int peer : core.neighbours()) {
    Result<Fd> poke =
        peer == core.rank ? Result<Fd>(std::move(own)) : hand_over.receive(peer, kPokeTag);
    if (!poke.ok()) return poke.status();
    core.ways[peer].poke = poke->get();
    core.pokes.push_back(std::move(poke).value());
  }
  return {};
}

}  // namespace

std::vector<bool> elsewhere(const std::vector<Member>& members, int rank) {
  std::vector<bool> elsewhere;
  for (const Member& member : members)
    elsewhere.push_back(member.host != members[static_cast<size_t>(rank)].host);
  return elsewhere;
}

double network_bandwidth(const std::vector<Member>& members) {
  constexpr double kBytesPerUsOfMbps = 1.0 / 8;
  double least = Network{}.bandwidth;
  for (const Member& member : members) {
    uint32_t fastest = 0;
    for (int i = 0; i < member.endpoint_count; ++i)
      fastest = std::max(fastest, member.endpoints[i].speed_mbps);
    if (fastest > 0) least = std::min(least, fastest * kBytesPerUsOfMbps);
  }
  return least;
}

size_t emulation_bytes(const Core& core) {
  return core.emulated ? emulated::shared_bytes(*core.emulated) : 0;
}

void open_emulated_ports(Core& core) {
  for (const MemberWay& way : core.ways) core.doorbells.push_back(way.doorbell);
  std::byte* shared = core.view.arena(0) + core.view.arena_bytes() * core.ranks;
  core.ports->set_engine(
      emulated::make_engine(core.emulated, core.rank, shared, core.doorbells, *core.ports));
  enter_ways(core);
}

Status open_ports(Core& core, Membership membership, HandOver& hand_over, Deadline deadline) {
  const auto meanwhile = [&hand_over, others = membership.meanwhile](std::span<const int> missing) {
    if (!others) return hand_over.look();
    const Status status = others(missing);
    return status.ok() ? hand_over.look() : status;
  };
  if (Status s = connect_hosts(core, std::move(membership), deadline, meanwhile); !s.ok()) return s;
  enter_ways(core);
  return exchange_pokes(core, hand_over);
}

}  // namespace tessera
