#include "comm/form.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/keyed_hash.h"
#include "base/log.h"
#include "comm/communicator.h"
#include "comm/exchange.h"
#include "comm/hand_over.h"
#include "comm/idle.h"
#include "comm/network.h"
#include "sync/barrier.h"
#include "transports/cma/cma.h"
#include "transports/emulated/description.h"
#include "tuner/emulated_site.h"

namespace tessera {
namespace {

// Cores that this process may use; empty when the kernel does not say.
cpu_set_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) CPU_ZERO(&set);
  return set;
}

// Where every rank can have a core of its own, waiting ranks spin for some microseconds between
// yields (the scheduler may have put two on one core all the same); else they give the core away
// almost at once (I10).
void choose_patience(Core& core, bool enough_cores, int cores) {
  core.site = {core.ranks, !enough_cores, cores};
  core.spins = core.config.spin >= 0 ? core.config.spin : (enough_cores ? 100 : 3);
  core.patience = enough_cores ? 0 : 200;
  core.yields = 60;
  if (!core.ports) return;
  core.spins = core.patience = 0;  // a look at a port is one at all counters
  core.looks = core.config.spin >= 0 ? 1 + core.config.spin / 10 : enough_cores ? 16 : 1;
}

// Memory for everything before the arenas, before anybody touches it.
Status commit_areas(const Fd& fd, int ranks) {
  const SegmentView layout(nullptr, ranks, arena_bytes(ranks));
  return shm::commit(fd, 0, layout.arena_offset(0));
}

size_t segment_bytes(const Core& core) {
  return SegmentView::bytes(core.ranks, arena_bytes(core.ranks)) + emulation_bytes(core);
}

Status map_segment(Core& core, Fd fd) {
  Result<std::shared_ptr<shm::Segment>> segment = shm::attach(std::move(fd));
  if (!segment.ok()) return segment.status();
  if (segment.value()->bytes() < segment_bytes(core))
    return Status::error(Code::kInternal, "shared segment is smaller than its layout");
  core.segment = std::move(segment).value();
  std::vector<std::byte*> bases;
  for (int rank = 0; rank < core.ranks; ++rank)
    bases.push_back(core.elsewhere(rank) ? core.ports->mirror() : core.segment->base());
  core.view = SegmentView(core.segment->base(), bases, arena_bytes(core.ranks));
  for (int rank = 0; rank < core.ranks; ++rank)
    core.ways.push_back({&core.view.rank(rank).doorbell});
  if (core.ports) core.ports->set_segment(core.segment->base());
  return {};
}

// The host's first rank makes the segment and passes it on.
Status share_segment(Core& core, HandOver& hand_over) {
  const int first = core.neighbours().front();
  if (core.rank != first) {
    Result<Fd> received = hand_over.receive(first, kSegmentTag);
    return received.ok() ? map_segment(core, std::move(received).value()) : received.status();
  }
  Result<Fd> made = shm::create(segment_bytes(core));
  if (!made.ok()) return made.status();
  if (Status s = commit_areas(made.value(), core.ranks); !s.ok()) return s;
  const Status sent = hand_over.send_to_neighbours(made.value(), kSegmentTag);
  const Status mapped = map_segment(core, std::move(made).value());
  return mapped.ok() ? sent : mapped;
}

// What ranks tell each other once the segment is there.
struct Greeting {
  uint64_t probe_address;
  uint64_t single_copy;
  NodeLink network;
  Seat seat;
  cpu_set_t cores;
  Code fault;  // that the rank cannot go on, and why
  char reason[200];
};
static_assert(sizeof(Greeting) <= sizeof(SetupBox::payload));

void complain(Greeting& greeting, const Status& status) {
  greeting.fault = status.code();
  const size_t length = std::min(status.message().size(), sizeof(greeting.reason) - 1);
  std::memcpy(greeting.reason, status.message().data(), length);
}

// What the first rank that cannot go on has said.
Status complaint(const std::vector<Greeting>& greetings, int rank) {
  for (size_t from = 0; from < greetings.size(); ++from) {
    const Greeting& greeting = greetings[from];
    if (greeting.fault == Code::kOk) continue;
    return Status::error(greeting.fault, "rank {}: rank {} cannot take part: {}", rank, from,
                         greeting.reason);
  }
  return {};
}

Status emulate(Core& core, bool several_hosts) {
  if (several_hosts) {
    return Status::error(Code::kInvalidUsage,
                         "TESSERA_EMULATE=\"{}\": the ranks run on several hosts; links can be "
                         "emulated between ranks of one host only",
                         core.config.emulate);
  }
  if (core.tuning.emulation != emulated::contents_digest(core.config.emulate)) {
    return Status::error(Code::kInvalidUsage,
                         "TESSERA_EMULATE=\"{}\": the description has changed since the ranks met "
                         "and compared it",
                         core.config.emulate);
  }
  Result<emulated::Links> links = emulated::links_of(core.config.emulate, core.ranks);
  if (!links.ok()) return links.status();
  core.emulated = std::make_shared<const emulated::Links>(std::move(links).value());
  return {};
}

// The slowest of what ranks know of their hosts' links.
void describe_network(const std::vector<Greeting>& greetings, Network& network) {
  network.latency = 0;
  network.bandwidth = greetings.front().network.bandwidth;
  for (const Greeting& greeting : greetings) {
    network.latency = std::max(network.latency, greeting.network.latency);
    network.bandwidth = std::min(network.bandwidth, greeting.network.bandwidth);
  }
}

void take_seats(Core& core, const std::vector<Greeting>& greetings) {
  std::vector<Seat> seats;
  for (const Greeting& greeting : greetings) seats.push_back(greeting.seat);
  seat_ranks(core.site, seats, core.tuning.one_ring);
  if (core.rank == 0 && !core.site.order.empty())
    log::info(core.rank, "rings and trees take the ranks in this order: {}",
              fmt::join(core.site.order, " "));
}

Status make_tuners(Core& core) {
  Result<std::unique_ptr<TunerPlugin>> plugin =
      TunerPlugin::create(core.tuning.plugin, core.id, core.ranks);
  if (!plugin.ok()) return plugin.status();
  Site pair = core.site;
  pair.ranks = 2;
  pair.hosts = 1;
  pair.host_of = pair.order = pair.node_of = {};
  Result<Tuner> all =
      Tuner::create(core.site, core.config, core.tuning.profile, std::move(plugin).value());
  if (!all.ok()) return all.status();
  Result<Tuner> two = Tuner::create(pair, core.config, nullptr);
  if (!two.ok()) return two.status();
  core.tuner = std::make_unique<Tuner>(std::move(all).value());
  core.pair_tuner = std::make_unique<Tuner>(std::move(two).value());
  if (core.site.hosts == 1) return {};
  pair.hosts = 2;
  pair.host_of = {0, 1};
  Result<Tuner> far = Tuner::create(pair, core.config, nullptr);
  if (!far.ok()) return far.status();
  core.far_tuner = std::make_unique<Tuner>(std::move(far).value());
  return {};
}

Status probe_machine(Core& core, SetupExchange& exchange, Deadline deadline) {
  static uint64_t word = cma::kProbeWord;  // written only with its own value, by peers
  std::vector<int> everyone(core.ranks);
  for (int rank = 0; rank < core.ranks; ++rank) everyone[rank] = rank;
  Greeting mine{reinterpret_cast<uint64_t>(&word),
                0,
                core.network,
                core.tuning.seat,
                usable_cores(),
                Code::kOk,
                {}};
  Result<std::vector<Greeting>> all =
      exchange.all_gather(everyone, mine, SetupCall::kInit, deadline);
  if (!all.ok()) return all.status();
  struct Host {
    int number;
    cpu_set_t cores;
    int ranks = 0;
  };
  std::vector<int> host_of;
  std::map<uint64_t, Host> hosts;
  for (int rank = 0; rank < core.ranks; ++rank) {
    auto [at, fresh] =
        hosts.try_emplace(core.members[rank].host, Host{static_cast<int>(hosts.size()), {}, 0});
    host_of.push_back(at->second.number);
    if (fresh) CPU_ZERO(&at->second.cores);
    CPU_OR(&at->second.cores, &at->second.cores, &all.value()[rank].cores);
    ++at->second.ranks;
  }
  bool enough = true;
  int cores = 0;
  for (const auto& [id, host] : hosts) {
    enough = enough && host.ranks <= CPU_COUNT(&host.cores);
    cores += CPU_COUNT(&host.cores);
  }
  choose_patience(core, enough, cores);
  core.site.hosts = static_cast<int>(hosts.size());
  if (hosts.size() > 1) {
    core.site.host_of = std::move(host_of);
    describe_network(all.value(), core.site.network);
  }
  if (core.emulated) describe_emulated(*core.emulated, core.site);
  take_seats(core, all.value());
  const Status tuned = make_tuners(core);  // a plugin may have refused this rank only
  if (!tuned.ok()) complain(mine, tuned);
  bool possible = core.config.single_copy;
  for (int peer = 0; possible && peer < core.ranks; ++peer) {
    if (!core.same_process(peer) && !core.elsewhere(peer))
      possible = cma::probe(core.peers[peer], all.value()[peer].probe_address);
  }
  mine.single_copy = possible ? 1 : 0;
  all = exchange.all_gather(everyone, mine, SetupCall::kInit, deadline);
  if (!tuned.ok()) return tuned;
  if (!all.ok()) return all.status();
  if (Status s = complaint(all.value(), core.rank); !s.ok()) return s;
  core.single_copy = std::all_of(all.value().begin(), all.value().end(),
                                 [](const Greeting& g) { return g.single_copy != 0; });
  return {};
}

// Of a core that knows its members. Who cannot go on once the segment is there tells the others.
Status assemble(Core& core, Membership membership, const std::string& name, Deadline deadline) {
  Result<Liveness> liveness = Liveness::watch(core.members, core.rank);
  if (!liveness.ok()) return liveness.status();
  HandOver hand_over(core, liveness.value(), deadline);
  Status status = share_segment(core, hand_over);
  if (!core.segment) return status;
  if (core.emulated) open_emulated_ports(core);
  if (status.ok() && core.ports && core.ports->any_elsewhere())
    status = open_ports(core, std::move(membership), hand_over, deadline);
  core.health = std::make_unique<Health>(core.view, core.rank, core.ranks, name,
                                         std::move(liveness).value(), core.ports.get());
  if (!status.ok()) return core.health->raise(status);
  SetupExchange exchange(core);
  if (Status s = probe_machine(core, exchange, deadline); !s.ok()) return s;
  core.set_up = exchange.counts();
  return {};
}

}  // namespace

Result<std::unique_ptr<Core>> form(Membership membership, int rank, const CommOptions& options,
                                   Tuning tuning, Deadline deadline) {
  if (!register_for_barriers())
    log::info(rank, "the kernel has no barriers for other processes: sleepers look more often");
  auto core = std::make_unique<Core>();
  core->config = options.config;
  core->tuning = std::move(tuning);
  core->rank = rank;
  core->ranks = static_cast<int>(membership.members.size());
  core->one_process = true;
  for (const Member& member : membership.members) {
    core->peers.push_back({member.rank, member.pid, member.process});
    core->socket_names.emplace_back(member.socket_name);
    core->one_process = core->one_process && member.process == membership.members[0].process;
  }
  core->mailbox = std::move(membership.mailbox);
  core->mailbox->set_secret(membership.secret, rank);
  core->id = short_hash(
      {reinterpret_cast<const char*>(membership.secret.data()), membership.secret.size()});
  core->members = std::move(membership.members);
  choose_patience(*core, core->ranks == 1, 1);
  const std::vector<bool> others = elsewhere(core->members, rank);
  const bool several_hosts = std::find(others.begin(), others.end(), true) != others.end();
  if (!core->config.emulate.empty()) {
    if (Status s = emulate(*core, several_hosts); !s.ok()) return s;
  }
  if (several_hosts || core->emulated) {
    Result<std::unique_ptr<Ports>> ports = Ports::create(rank, others, arena_bytes(core->ranks));
    if (!ports.ok()) return ports.status();
    core->ports = std::move(ports).value();
  }
  if (Status s = assemble(*core, std::move(membership), options.name, deadline); !s.ok()) return s;
  log::info(rank, "Init COMPLETE: rank {} of {}{}, {}", rank, core->ranks,
            core->one_process ? ", all in one process" : "",
            core->single_copy ? "single copies through the kernel" : "no single copies");
  return core;
}

}  // namespace tessera
