#include "comm/host_communicator.h"

#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "comm/form.h"
#include "comm/topology_files.h"
#include "device/host/memory.h"
#include "transports/emulated/description.h"
#include "tuner/wishes.h"

namespace tessera {
namespace {

Result<std::unique_ptr<Communicator>> wrap(Result<std::unique_ptr<Core>> core,
                                           CommOptions options) {
  if (!core.ok()) {
    log::warn(-1, "{}", core.status().message());
    return core.status();
  }
  return std::unique_ptr<Communicator>(
      std::make_unique<HostCommunicator>(std::move(core).value(), std::move(options)));
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const UniqueId& id, int ranks, int rank,
                                                           CommOptions options) {
  if (Status s = Wishes::parse(options.config).status(); !s.ok()) return s;
  const Deadline deadline = Deadline::after(options.config.timeout);
  JoinOptions joining;
  joining.rank = rank;
  joining.ranks = ranks;
  joining.config = options.config;
  Result<std::shared_ptr<const Profile>> profile = find_profile(options.config);
  if (!profile.ok()) return profile.status();
  joining.config.profile_digest = digest(profile.value().get());
  if (rank == 0) {
    log::info(rank, "choices by {}",
              profile.value() == nullptr ? std::string("rules: there is no profile of this machine")
                                         : "the profile of " + profile.value()->about);
  }
  Result<std::shared_ptr<const TunerLibrary>> plugin =
      TunerLibrary::load(options.config.tuner_plugin);
  if (!plugin.ok()) return plugin.status();
  joining.config.plugin_in_use = in_use(plugin.value().get());
  Result<std::shared_ptr<const net_plugin::Library>> net =
      net_plugin::Library::load(options.config.net_plugin, options.config.net);
  if (!net.ok()) return net.status();
  joining.config.net_plugin_in_use = in_use(net.value().get());
  Result<TopologyFiles> files = TopologyFiles::read(options.config);
  if (!files.ok()) return files.status();
  joining.config.topology_digest = files->topology_digest();
  joining.config.graph_digest = files->graph_digest();
  joining.config.emulation_digest = emulated::contents_digest(options.config.emulate);
  Result<Membership> membership = join(id, joining, deadline);
  if (!membership.ok()) return membership.status();
  Tuning tuning{profile.value(), plugin.value(), net.value()};
  Result<Seat> seat = files->seat(options.config, membership->members, rank);
  if (!seat.ok()) return seat.status();
  tuning.seat = seat.value();
  tuning.one_ring = files->has_rings();
  tuning.emulation = joining.config.emulation_digest;
  Result<std::unique_ptr<Core>> core =
      form(std::move(membership).value(), rank, options, std::move(tuning), deadline);
  std::vector<int> order = core.ok() ? core.value()->site.order : std::vector<int>();
  Result<std::unique_ptr<Communicator>> made = wrap(std::move(core), options);
  if (!made.ok()) return made;
  if (order.empty()) {
    order.resize(static_cast<size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
  }
  if (Status s = files->dump(options.config, rank, order); !s.ok()) return s;
  return made;
}

HostCommunicator::HostCommunicator(std::unique_ptr<Core> core, CommOptions options)
    : core_(std::move(core)),
      options_(std::move(options)),
      exchange_(*core_),
      sharing_(*core_),
      plans_(*core_),
      collective_(*core_, plans_, sharing_),
      batch_(*this, *core_),
      pairs_(static_cast<size_t>(core_->ranks) * 2) {}

double HostCommunicator::estimate(const Call& call) {
  Tuner& tuner = call.collective == Collective::kSendRecv ? *core_->pair_tuner : *core_->tuner;
  const size_t block = call.count * size_of(call.type);
  Result<Candidate> chosen = tuner.chosen({call.collective, block, Access::kMapped, false});
  return chosen.ok() && block > 0 ? tuner.estimator().estimate(chosen.value(), block).microseconds
                                  : 0;
}

HostCommunicator::~HostCommunicator() {
  const auto inside = core_->enter();
  core_->area().left.raise();
  core_->share(&core_->area().left, sizeof(Flag));
  core_->ring_all();
  if (core_->ports) core_->ports->flush(std::chrono::seconds(1));
}

PairRun& HostCommunicator::pair(int peer, bool receives) {
  auto& pair = pairs_[static_cast<size_t>(peer) * 2 + (receives ? 1 : 0)];
  if (!pair) pair = std::make_unique<PairRun>(*core_, plans_, sharing_, peer, receives);
  return *pair;
}

std::vector<int> HostCommunicator::everyone() const {
  std::vector<int> ranks(static_cast<size_t>(core_->ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Result<std::unique_ptr<Communicator>> HostCommunicator::split(int color, int key,
                                                              CommOptions options) {
  struct Wish {
    int32_t color, key;
  };
  const Deadline until = deadline();
  Result<std::vector<Wish>> wishes =
      exchange_.all_gather(everyone(), Wish{color, key}, SetupCall::kSplit, until);
  if (!wishes.ok()) return wishes.status();
  if (color < 0) return std::unique_ptr<Communicator>();
  std::vector<int> members;
  for (int rank : everyone()) {
    if (wishes.value()[rank].color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return wishes.value()[a].key < wishes.value()[b].key; });
  return wrap(form_child(*core_, exchange_, members, SetupCall::kForm, options, until), options);
}

Result<std::unique_ptr<Communicator>> HostCommunicator::shrink(std::span<const int> excluded,
                                                               CommOptions options) {
  std::vector<int> members;
  for (int rank : everyone()) {
    if (!std::binary_search(excluded.begin(), excluded.end(), rank)) members.push_back(rank);
  }
  return wrap(form_child(*core_, exchange_, members, SetupCall::kShrink, options, deadline()),
              options);
}

Status HostCommunicator::finalize() {
  if (!core_->health->good()) return core_->health->status();
  core_->area().finalizing.raise();
  {
    const auto inside = core_->enter();
    core_->share(&core_->area().finalizing, sizeof(Flag));
  }
  core_->ring_all();
  const uint64_t mine = collective_.fingerprint();
  Result<std::vector<uint64_t>> all =
      exchange_.all_gather(everyone(), mine, SetupCall::kFinalize, deadline());
  if (!all.ok()) return core_->health->raise(all.status());
  // A disagreement of the last calls that nobody noticed because nobody waited.
  const bool agreed = std::all_of(all.value().begin(), all.value().end(),
                                  [&](uint64_t theirs) { return theirs == mine; });
  return agreed ? Status() : core_->health->raise(collective_.mismatch());
}

Status HostCommunicator::register_window(void* pointer, size_t bytes, uint64_t* out) {
  struct Offer {
    BufferNote note;
    uint64_t bytes;
  };
  const Deadline until = deadline();
  const Offer mine{sharing_.note(pointer, bytes), bytes};
  Result<std::vector<Offer>> all =
      exchange_.all_gather(everyone(), mine, SetupCall::kWindow, until);
  if (!all.ok()) return core_->health->raise(all.status());
  std::vector<bool> given(all.value().size()), taken(all.value().size());
  given[core_->rank] = taken[core_->rank] = true;
  for (bool ready = false; !ready;) {
    ready = true;
    for (int peer = 0; peer < core_->ranks; ++peer) {
      if (peer == core_->rank) continue;
      Result<bool> gave = given[peer] ? Result<bool>(true) : sharing_.give(peer, mine.note);
      Result<bool> took =
          taken[peer] ? Result<bool>(true) : sharing_.take(peer, all.value()[peer].note);
      if (!gave.ok()) return core_->health->raise(gave.status());
      if (!took.ok()) return core_->health->raise(took.status());
      given[peer] = gave.value();
      taken[peer] = took.value();
      ready = ready && gave.value() && took.value();
    }
    if (ready) break;
    if (Status s = core_->health->look(); !s.ok()) return s;
    if (until.passed()) {
      return core_->health->raise(core_->health->explain(Status::error(
          Code::kTimeout, "{}: window registration: a peer's memory did not arrive within {} ms",
          core_->health->who(), options_.config.timeout.count())));
    }
    yield();
  }
  if (!sharing_.shareable(mine.note)) {
    log::info(core_->rank,
              "window of {} bytes at {}: not memory of ncclMemAlloc, so peers cannot map it; "
              "collectives on it work and copy",
              bytes, pointer);
  }
  *out = ++windows_;
  live_windows_[*out] = pointer;
  return {};
}

Status HostCommunicator::deregister_window(uint64_t window) {
  if (live_windows_.erase(window) == 0) {
    return Status::error(Code::kInvalidArgument, "{}: window {} is not registered",
                         core_->health->who(), window);
  }
  // Peers keep the mapping until the memory is freed: unmapping now would need a call of theirs.
  return {};
}

}  // namespace tessera
