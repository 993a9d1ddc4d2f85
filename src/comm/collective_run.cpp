#include "comm/collective_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/log.h"
#include "comm/call_record.h"
#include "plan/shape.h"
#include "tuner/rules.h"

namespace tessera {

CollectiveRun::CollectiveRun(Core& core, PlanStore& plans, Sharing& sharing)
    : CallRun(core, sharing),
      plans_(plans),
      reduction_(core.ranks),
      inputs_(core.ranks),
      outputs_(core.ranks) {
  names_.resize(core.ranks);
  std::iota(names_.begin(), names_.end(), 0);
  for (int rank = 0; rank < core.ranks; ++rank) {
    if (rank != core.rank) parties_.push_back({rank, &core.view.rank(rank).board});
  }
  for (int c = 0; c < kCollectives; ++c)
    eager_[c].resize(Tuner::kEagerChoices *
                     (has_root(static_cast<Collective>(c)) ? core.ranks : 1));
}

// A call that differs from the last one in its buffers only.
bool CollectiveRun::repeats(const Call& call) const {
  return repeatable_ != nullptr && call.collective == call_.collective &&
         call.count == call_.count && call.type == call_.type && call.op == call_.op &&
         call.root == call_.root && call.scalar == call_.scalar;
}

Status CollectiveRun::begin(const Call& call) {
  if (repeats(call)) {
    call_.send = call.send;
    call_.recv = call.recv;
    record_ = repeated_record(record_);
    write_record();
    trace(repeated_as_->candidate, repeated_as_->choice);
    set_own_buffers();
    run_.restart(repeatable_->next_pass, record_.fingerprint);
    repeatable_->next_pass += run_.passes();
    stage_ = Stage::kRunning;
    return {};
  }
  repeatable_ = nullptr;
  call_ = call;
  status_ = {};
  record_ = next_record(record_, call);
  const size_t block_bytes = call.count * size_of(call.type);
  if (block_bytes == 0 && call.collective != Collective::kBarrier) {
    write_record();
    run_.start({}, {});  // nothing to do; peers see the call by its record
    return {};
  }
  set_own_buffers();
  Result<const Tuner::Eager*> eager = core_.tuner->eager(call.collective, block_bytes);
  if (core_.tuner->asks_plugin() && eager.ok() && eager.value() != nullptr)
    record_ = with_way(record_, way_of(eager.value()->candidate, eager.value()->choice));
  write_record();
  if (!eager.ok()) return status_ = eager.status();
  if (eager.value() != nullptr)
    status_ = begin_eager(*eager.value());
  else
    begin_bulk();
  return status_;
}

void CollectiveRun::write_record() {
  CallLog& log = core_.area().calls;
  log.write(record_.number, record_);
  core_.share(log.written(record_.number).data(), log.written(record_.number).size());
}

void CollectiveRun::set_own_buffers() {
  inputs_[core_.rank] = space_.place(const_cast<void*>(call_.send));
  outputs_[core_.rank] = space_.place(call_.recv);
}

Status CollectiveRun::begin_eager(const Tuner::Eager& eager) {
  const int root = has_root(call_.collective) ? call_.root : 0;
  LinkedPlan*& plan =
      eager_[static_cast<size_t>(call_.collective)][root * Tuner::kEagerChoices + eager.number];
  if (plan == nullptr) {
    Result<LinkedPlan*> linked =
        plans_.get(eager.choice, has_root(call_.collective) ? call_.root : -1);
    if (!linked.ok()) return linked.status();
    plan = linked.value();
  }
  trace(eager.candidate, eager.choice);
  start(*plan);
  repeatable_ = plan;
  repeated_as_ = &eager;
  return {};
}

void CollectiveRun::begin_bulk() {
  const size_t block = call_.count * size_of(call_.type);
  const int in = input_blocks(call_.collective, core_.ranks, call_.root, core_.rank);
  const int out = output_blocks(call_.collective, core_.ranks, call_.root, core_.rank);
  if (core_.ports) core_.ports->expect(call_.recv, block * out);
  rendezvous_.start(core_.area().board, ++announcements_, parties_, -1, record_,
                    sharing_.note(in > 0 ? call_.send : nullptr, block * in),
                    sharing_.note(out > 0 ? call_.recv : nullptr, block * out), call_.scalar);
  stage_ = Stage::kRendezvous;
}

// True if the root's buffers, as all ranks know them, are not in place.
bool CollectiveRun::root_copies() const {
  if (!has_root(call_.collective)) return false;
  const Announcement* root = &rendezvous_.mine();
  for (size_t i = 0; i < parties_.size(); ++i) {
    if (parties_[i].rank == call_.root) root = &rendezvous_.announcement(i);
  }
  return root->input.address != root->output.address;
}

Status CollectiveRun::start_bulk() {
  BulkCall bulk;
  bulk.collective = call_.collective;
  bulk.block_bytes = call_.count * size_of(call_.type);
  bulk.access = core_.access(rendezvous_.all_shareable());
  bulk.root_copies = root_copies();
  Result<Candidate> candidate = core_.tuner->bulk(bulk);
  if (!candidate.ok()) return candidate.status();
  const Choice choice = core_.tuner->choice_of_bulk(bulk, candidate.value());
  Result<LinkedPlan*> plan = plans_.get(choice, has_root(call_.collective) ? call_.root : -1);
  if (!plan.ok()) return plan.status();
  if (core_.tuner->asks_plugin()) {
    record_ = with_way(record_, way_of(candidate.value(), choice));
    write_record();
  }
  trace(candidate.value(), choice);
  if (choice.algorithm->reach == Reach::kDirect) {
    if (Status s = visit_.begin(); !s.ok()) return s;
    for (size_t i = 0; i < parties_.size(); ++i) {
      if (core_.elsewhere(parties_[i].rank)) {
        outputs_[parties_[i].rank] = {kUserMemory, host::kBehindPort};
        continue;
      }
      const Announcement& theirs = rendezvous_.announcement(i);
      inputs_[parties_[i].rank] = sharing_.place(parties_[i].rank, theirs.input);
      outputs_[parties_[i].rank] = sharing_.place(parties_[i].rank, theirs.output);
    }
  }
  start(*plan.value());
  for (size_t i = 0; i < parties_.size(); ++i)
    reduction_.set_scalar(parties_[i].rank, rendezvous_.announcement(i).scalar);
  return {};
}

// True if the input lies in the output.
bool CollectiveRun::in_place(size_t output_bytes) const {
  const auto input = reinterpret_cast<uintptr_t>(call_.send);
  const auto output = reinterpret_cast<uintptr_t>(call_.recv);
  return input >= output && input - output < output_bytes;
}

void CollectiveRun::start(LinkedPlan& plan) {
  const Program& program = plan.program;
  const auto element_bytes = static_cast<uint32_t>(size_of(call_.type));
  const Slices slices = slices_of(program, call_.count, element_bytes);
  space_.reserve(program.max_operands);
  const size_t output_bytes = call_.count * element_bytes *
                              output_blocks(call_.collective, core_.ranks, call_.root, core_.rank);
  space_.bind(core_.ways.data(), core_.ports != nullptr, reduction_.prepare(call_, core_.ranks),
              element_bytes,
              streamed_from(call_.collective, core_.site, output_bytes, in_place(output_bytes)));
  run_.start(program, {plan.regions.data(), inputs_.data(), outputs_.data(), plan.seen.data(),
                       plan.next_pass, record_.fingerprint, call_.count, slices.elements,
                       slices.passes, element_bytes});
  plan.next_pass += slices.passes;
  stage_ = Stage::kRunning;
}

// A put or an announcement carried another fingerprint: find out what its sender called.
Status CollectiveRun::mismatch() {
  for (const Party& party : parties_) {
    if (Status s = disagreement(party.rank); !s.ok()) return s;
  }
  return Status::error(Code::kInvalidUsage,
                       "{}: {}: another rank made other calls before; all ranks must make the same "
                       "calls in the same order",
                       core_.health->who(), describe(record_));
}

Status CollectiveRun::disagreement(int peer) const {
  const std::string text = first_difference(core_.rank, core_.area().calls, peer,
                                            core_.view.rank(peer).calls, record_.number);
  if (text.empty()) return {};
  return Status::error(Code::kInvalidUsage,
                       "{}: {}. All ranks must make the same calls in the same order",
                       core_.health->who(), text);
}

Status CollectiveRun::diagnose(bool overdue) {
  int slowest = -1;  // whom the others that are behind may wait for
  uint64_t fewest = record_.number;
  for (const Party& party : parties_) {
    if (Status s = disagreement(party.rank); !s.ok()) return s;
    const RankArea& area = core_.view.rank(party.rank);
    // Who ended may have made the call before: the log is looked at after its end was seen.
    const bool left = area.left.raised(), finalizing = area.finalizing.raised();
    const uint64_t last = area.calls.last();
    if (last >= record_.number) continue;
    if (left) {
      return Status::error(Code::kRemote, "{}: {}: rank {} has destroyed its communicator",
                           core_.health->who(), describe(record_), party.rank);
    }
    if (finalizing) {
      return Status::error(Code::kInvalidUsage,
                           "{}: {}: rank {} has finalized the communicator after {} calls",
                           core_.health->who(), describe(record_), party.rank, last);
    }
    if (last < fewest) {
      fewest = last;
      slowest = party.rank;
    }
  }
  if (!overdue) return {};
  if (slowest >= 0) {
    const std::optional<CallRecord> theirs = core_.view.rank(slowest).calls.read(fewest);
    return Status::error(
        Code::kInvalidUsage,
        "{}: rank {} calls {}, rank {} has not called it within {} ms; its last call was {}",
        core_.health->who(), core_.rank, describe(record_), slowest, core_.config.timeout.count(),
        theirs ? describe(*theirs) : "none");
  }
  const std::string where =
      stage_ == Stage::kRendezvous
          ? fmt::format("rank {} has not announced its buffers", rendezvous_.missing())
          : run_.blocked(space_, names_);
  return Status::error(Code::kTimeout, "{}: {} made no progress for {} ms: {}", core_.health->who(),
                       describe(record_), core_.config.timeout.count(), where);
}

}  // namespace tessera
