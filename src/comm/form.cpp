#include "comm/form.h"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "comm/bootstrap/keyed_hash.h"
#include "comm/communicator.h"
#include "comm/exchange.h"
#include "comm/idle.h"
#include "sync/barrier.h"
#include "transports/cma/cma.h"

namespace tessera {
namespace {

constexpr uint64_t kSegmentTag = ~uint64_t{0};

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
void choose_patience(Core& core, int cores) {
  const bool enough_cores = core.ranks <= cores;
  core.site = {core.ranks, !enough_cores, cores};
  core.spins = core.config.spin >= 0 ? core.config.spin : (enough_cores ? 100 : 3);
  core.patience = enough_cores ? 0 : 200;
  core.yields = 60;
}

// Memory for everything before the arenas, before anybody touches it.
Status commit_areas(const Fd& fd, int ranks) {
  const SegmentView layout(nullptr, ranks, arena_bytes(ranks));
  return shm::commit(fd, 0, layout.arena_offset(0));
}

// From rank 0, as long as it lives.
Result<Fd> receive_segment(Core& core, const Liveness& liveness, Deadline deadline) {
  for (;;) {
    const Deadline soon = Deadline::after(
        std::min<std::chrono::nanoseconds>(deadline.left(), std::chrono::milliseconds(100)));
    Result<Fd> received = core.mailbox->receive(0, kSegmentTag, soon);
    if (received.ok() || received.status().code() != Code::kTimeout || deadline.passed())
      return received;
    if (liveness.dead(0)) {
      return Status::error(Code::kRemote,
                           "rank {}: the process of rank 0 ended during initialisation", core.rank);
    }
  }
}

Status share_segment(Core& core, const Liveness& liveness, Deadline deadline) {
  Fd fd;
  if (core.rank == 0) {
    Result<Fd> made = shm::create(SegmentView::bytes(core.ranks, arena_bytes(core.ranks)));
    if (!made.ok()) return made.status();
    fd = std::move(made).value();
    if (Status s = commit_areas(fd, core.ranks); !s.ok()) return s;
    for (int peer = 1; peer < core.ranks; ++peer) {
      if (Status s = core.mailbox->send(core.socket_names[peer], fd.get(), kSegmentTag, deadline);
          !s.ok())
        return s;
    }
  } else {
    Result<Fd> received = receive_segment(core, liveness, deadline);
    if (!received.ok()) return received.status();
    fd = std::move(received).value();
  }
  Result<std::shared_ptr<shm::Segment>> segment = shm::attach(std::move(fd));
  if (!segment.ok()) return segment.status();
  core.segment = std::move(segment).value();
  core.view = SegmentView(core.segment->base(), core.ranks, arena_bytes(core.ranks));
  if (core.segment->bytes() < SegmentView::bytes(core.ranks, arena_bytes(core.ranks)))
    return Status::error(Code::kInternal, "shared segment is smaller than its layout");
  for (int rank = 0; rank < core.ranks; ++rank)
    core.doorbells.push_back(&core.view.rank(rank).doorbell);
  return {};
}

// What ranks tell each other once the segment is there.
struct Greeting {
  uint64_t probe_address;
  uint64_t single_copy;
  cpu_set_t cores;
};
static_assert(sizeof(Greeting) <= sizeof(SetupBox::payload));

Status make_tuners(Core& core) {
  Result<std::unique_ptr<TunerPlugin>> plugin =
      TunerPlugin::create(core.tuning.plugin, core.id, core.ranks);
  if (!plugin.ok()) return plugin.status();
  Site pair = core.site;
  pair.ranks = 2;
  Result<Tuner> all =
      Tuner::create(core.site, core.config, core.tuning.profile, std::move(plugin).value());
  if (!all.ok()) return all.status();
  Result<Tuner> two = Tuner::create(pair, core.config, nullptr);
  if (!two.ok()) return two.status();
  core.tuner = std::make_unique<Tuner>(std::move(all).value());
  core.pair_tuner = std::make_unique<Tuner>(std::move(two).value());
  return {};
}

Status probe_machine(Core& core, Exchange& exchange, Deadline deadline) {
  static uint64_t word = cma::kProbeWord;  // written only with its own value, by peers
  std::vector<int> everyone(core.ranks);
  for (int rank = 0; rank < core.ranks; ++rank) everyone[rank] = rank;
  Greeting mine{reinterpret_cast<uint64_t>(&word), 0, usable_cores()};
  Result<std::vector<Greeting>> all = exchange.all_gather(everyone, mine, "init", deadline);
  if (!all.ok()) return all.status();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const Greeting& greeting : all.value()) CPU_OR(&cores, &cores, &greeting.cores);
  choose_patience(core, CPU_COUNT(&cores));
  if (Status s = make_tuners(core); !s.ok()) return s;
  bool possible = core.config.single_copy;
  for (int peer = 0; possible && peer < core.ranks; ++peer) {
    if (!core.same_process(peer))
      possible = cma::probe(core.peers[peer], all.value()[peer].probe_address);
  }
  mine.single_copy = possible ? 1 : 0;
  all = exchange.all_gather(everyone, mine, "init", deadline);
  if (!all.ok()) return all.status();
  core.single_copy = std::all_of(all.value().begin(), all.value().end(),
                                 [](const Greeting& g) { return g.single_copy != 0; });
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
  core->id = bootstrap::short_hash(
      {reinterpret_cast<const char*>(membership.secret.data()), membership.secret.size()});
  choose_patience(*core, 1);
  Result<Liveness> liveness = Liveness::watch(membership.members, rank);
  if (!liveness.ok()) return liveness.status();
  if (Status s = share_segment(*core, liveness.value(), deadline); !s.ok()) return s;
  core->health = std::make_unique<Health>(core->view, rank, core->ranks, options.name,
                                          std::move(liveness).value());
  core->members = std::move(membership.members);
  Exchange exchange(*core);
  if (Status s = probe_machine(*core, exchange, deadline); !s.ok()) return s;
  core->set_up = exchange.counts();
  log::info(rank, "Init COMPLETE: rank {} of {}{}, {}", rank, core->ranks,
            core->one_process ? ", all in one process" : "",
            core->single_copy ? "single copies through the kernel" : "no single copies");
  return core;
}

namespace {

struct ChildHello {
  std::array<uint8_t, 16> secret;  // the first member's counts
  Member member;
};
static_assert(sizeof(ChildHello) <= sizeof(SetupBox::payload));

}  // namespace

Result<std::unique_ptr<Core>> form_child(Core& parent, Exchange& exchange,
                                         const std::vector<int>& members, const char* what,
                                         const CommOptions& options, Deadline deadline) {
  Result<std::unique_ptr<FdMailbox>> mailbox = FdMailbox::create();
  if (!mailbox.ok()) return mailbox.status();
  ChildHello mine{};
  if (getrandom(mine.secret.data(), mine.secret.size(), 0) !=
      static_cast<ssize_t>(mine.secret.size())) {
    return Status::error(Code::kSystem, "getrandom: {}", std::strerror(errno));
  }
  mine.member = parent.members[parent.rank];
  const std::string& name = mailbox.value()->name();
  std::memset(mine.member.socket_name, 0, sizeof(mine.member.socket_name));
  std::memcpy(mine.member.socket_name, name.data(),
              std::min(name.size(), sizeof(mine.member.socket_name) - 1));
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  Result<std::vector<ChildHello>> all = exchange.all_gather(sorted, mine, what, deadline);
  if (!all.ok()) return all.status();

  Membership membership;
  membership.mailbox = std::move(mailbox).value();
  int rank = -1;
  for (size_t i = 0; i < members.size(); ++i) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), members[i]) - sorted.begin();
    const ChildHello& hello = all.value()[static_cast<size_t>(at)];
    if (i == 0) membership.secret = hello.secret;
    membership.members.push_back(hello.member);
    membership.members.back().rank = static_cast<int32_t>(i);
    if (members[i] == parent.rank) rank = static_cast<int>(i);
  }
  return form(std::move(membership), rank, options, parent.tuning, deadline);
}

}  // namespace tessera
