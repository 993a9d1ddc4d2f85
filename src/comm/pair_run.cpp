#include "comm/pair_run.h"

#include "comm/call_record.h"
#include "tuner/rules.h"

namespace tessera {
namespace {

// How a pair's region is divided.
constexpr size_t kEagerBytes = 64 * 1024;
constexpr size_t kStagedBytes = 160 * 1024;
constexpr size_t kDirectBytes = kPairRegionBytes - kEagerBytes - kStagedBytes;
constexpr size_t kOffsets[] = {0, kEagerBytes, kEagerBytes + kStagedBytes};
constexpr size_t kSizes[] = {kEagerBytes, kStagedBytes, kDirectBytes};

}  // namespace

PairRun::PairRun(Core& core, PlanStore& plans, Sharing& sharing, int peer, bool receives)
    : CallRun(core, sharing),
      plans_(plans),
      tuner_(core.tuner_of_pair(peer)),
      peer_(peer),
      receives_(receives) {
  const PairArea& theirs = core.view.pair(core.rank, peer);
  party_ = {peer, receives ? &theirs.send_board : &theirs.receive_board};
  const int members[2] = {receives ? peer : core.rank, receives ? core.rank : peer};
  names_.assign(members, members + 2);
  for (int side = 0; side < 2; ++side) {
    const int other = members[1 - side];
    // by the other end and the own role
    const size_t index = static_cast<size_t>(other) * 2 + side;
    std::byte* base = core.view.arena(members[side]) + index * kPairRegionBytes;
    for (int protocol = 0; protocol < kProtocols; ++protocol)
      regions_[protocol][side] = base + kOffsets[protocol];
    ways_[side] = core.ways[members[side]];
  }
}

Status PairRun::begin(const Call& call) {
  call_ = call;
  status_ = {};
  record_ = next_record(record_, call);
  PairArea& mine = core_.view.pair(peer_, core_.rank);
  CallLog& log = receives_ ? mine.receives : mine.sends;
  log.write(record_.number, record_);
  core_.share(peer_, log.written(record_.number).data(), log.written(record_.number).size());
  const size_t bytes = call.count * size_of(call.type);
  inputs_[0] = space_.place(const_cast<void*>(call.send));
  outputs_[1] = space_.place(call.recv);
  Result<const std::vector<Tuner::Eager>*> ranges = tuner_.eager(Collective::kSendRecv);
  if (!ranges.ok()) return status_ = ranges.status();
  for (const Tuner::Eager& range : *ranges.value()) {
    if (bytes > range.largest) continue;
    trace(range.candidate, range.choice);
    return status_ = start(range.choice, kEager);
  }
  if (receives_ && core_.elsewhere(peer_)) core_.ports->expect(peer_, call.recv, bytes);
  rendezvous_.start(receives_ ? mine.receive_board : mine.send_board, ++announcements_,
                    {&party_, 1}, peer_, record_, sharing_.note(call.send, bytes),
                    sharing_.note(call.recv, bytes), 0);
  stage_ = Stage::kRendezvous;
  return {};
}

Status PairRun::start(const Choice& choice, Protocol protocol) {
  Result<const Program*> linked = plans_.pair_program(choice, receives_ ? 1 : 0);
  if (!linked.ok()) return linked.status();
  const Program& program = *linked.value();
  if (region_bytes(program) > kSizes[protocol]) {
    return Status::error(Code::kInvalidUsage,
                         "{}: send/recv slots of {} bytes do not fit; lower TESSERA_LL_MAX or "
                         "TESSERA_SLICE_BYTES",
                         core_.health->who(), choice.slot_bytes);
  }
  if (!committed_[protocol]) {
    for (int side = 0; side < 2; ++side) {
      if (core_.elsewhere(names_[side])) continue;
      const std::byte* region = regions_[protocol][side];
      const auto offset = static_cast<size_t>(region - core_.segment->base());
      if (Status s = core_.segment->commit(offset, region_bytes(program)); !s.ok()) return s;
    }
    committed_[protocol] = true;
  }
  const auto element_bytes = static_cast<uint32_t>(size_of(call_.type));
  const Slices slices = slices_of(program, call_.count, element_bytes);
  space_.reserve(program.max_operands);
  space_.bind(ways_, ways_[receives_ ? 0 : 1].port != nullptr, {}, element_bytes,
              streamed_from(call_.collective, core_.site, call_.count * element_bytes, false));
  seen_[protocol].resize(program.waits.size());
  run_.start(program,
             {regions_[protocol], inputs_, outputs_, seen_[protocol].data(), next_pass_[protocol],
              record_.fingerprint, call_.count, slices.elements, slices.passes, element_bytes});
  next_pass_[protocol] += slices.passes;
  stage_ = Stage::kRunning;
  return {};
}

Status PairRun::start_bulk() {
  BulkCall bulk;
  bulk.collective = Collective::kSendRecv;
  bulk.block_bytes = call_.count * size_of(call_.type);
  bulk.access = core_.access_to(peer_, rendezvous_.all_shareable() || core_.same_process(peer_));
  Result<Candidate> candidate = tuner_.bulk(bulk);
  if (!candidate.ok()) return candidate.status();
  const Choice choice = tuner_.choice_of_bulk(candidate.value());
  trace(candidate.value(), choice);
  if (choice.algorithm->reach != Reach::kDirect) return start(choice, kStaged);
  if (Status s = visit_.begin(); !s.ok()) return s;
  const Announcement& theirs = rendezvous_.announcement(0);
  if (receives_) {
    inputs_[0] = sharing_.place(peer_, theirs.input);
  } else {
    outputs_[1] = core_.elsewhere(peer_) ? host::Place{kPairMemory, host::kBehindPort}
                                         : sharing_.place(peer_, theirs.output);
  }
  return start(choice, kDirect);
}

Status PairRun::mismatch() {
  if (Status s = disagreement(); !s.ok()) return s;
  return Status::error(Code::kInvalidUsage, "{}: {}: rank {} sent another message",
                       core_.health->who(), describe(record_), peer_);
}

Status PairRun::disagreement() const {
  const PairArea& theirs = core_.view.pair(core_.rank, peer_);
  const PairArea& mine = core_.view.pair(peer_, core_.rank);
  const std::string text =
      first_difference(core_.rank, receives_ ? mine.receives : mine.sends, peer_,
                       receives_ ? theirs.sends : theirs.receives, record_.number);
  if (text.empty()) return {};
  return Status::error(Code::kInvalidUsage,
                       "{}: {}: {}. Both ends of a transfer must pass the same count and type",
                       core_.health->who(), describe(record_), text);
}

Status PairRun::diagnose(bool overdue) {
  if (Status s = disagreement(); !s.ok()) return s;
  const PairArea& theirs = core_.view.pair(core_.rank, peer_);
  const bool left = core_.view.rank(peer_).left.raised();  // looked at before what it did
  const uint64_t last = (receives_ ? theirs.sends : theirs.receives).last();
  if (last < record_.number && left) {
    return Status::error(Code::kRemote, "{}: {}: rank {} has destroyed its communicator",
                         core_.health->who(), describe(record_), peer_);
  }
  if (!overdue) return {};
  if (last < record_.number) {
    return Status::error(
        Code::kInvalidUsage,
        "{}: {} {} rank {}: no matching {} within {} ms; that rank made {} of them "
        "so far",
        core_.health->who(), describe(record_), receives_ ? "from" : "to", peer_,
        receives_ ? "send" : "receive", core_.config.timeout.count(), last);
  }
  return Status::error(
      Code::kTimeout, "{}: {} {} rank {} made no progress for {} ms: {}", core_.health->who(),
      describe(record_), receives_ ? "from" : "to", peer_, core_.config.timeout.count(),
      stage_ == Stage::kRendezvous ? "its buffer is not announced" : run_.blocked(space_, names_));
}

}  // namespace tessera
