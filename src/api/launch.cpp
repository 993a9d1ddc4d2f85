#include "api/launch.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "api/batch.h"
#include "api/errors.h"
#include "api/handles.h"
#include "api/streams.h"

namespace tessera::api {
namespace {

using StreamPtr = std::shared_ptr<Stream>;

// One communicator of the group.
struct Party {
  std::shared_ptr<CommState> state;
  std::vector<Work> works;
  std::vector<StreamPtr> streams;  // asynchronous ones, in the order of first use
  bool synchronous = false;        // some call is on stream 0 or a foreign stream
  bool reports() const { return !state->blocking() && streams.empty(); }
};

using Parties = std::map<ncclComm_t, Party>;  // by handle, so that locks are taken in one order

Result<Parties> sort_by_communicator(std::span<const Collected> items) {
  Parties parties;
  for (const Collected& item : items) {
    Party& party = parties[item.handle];
    party.state = item.state;
    party.works.push_back({item.state->comm.get(), item.call});
    if (!is_stream_handle(item.stream)) {
      party.synchronous = true;
      continue;
    }
    Result<StreamPtr> stream = find_stream(item.stream);
    if (!stream.ok()) return stream.status();
    if (std::find(party.streams.begin(), party.streams.end(), stream.value()) ==
        party.streams.end())
      party.streams.push_back(std::move(stream).value());
  }
  return parties;
}

Result<std::vector<CommLock>> lock_all(const Parties& parties) {
  std::vector<CommLock> locks;
  locks.reserve(parties.size());
  for (const auto& [handle, party] : parties) {
    Result<CommLock> lock = CommLock::acquire(handle, "ncclGroupEnd");
    if (!lock.ok()) return lock.status();
    if (Status status = check_usable(*lock.value(), "ncclGroupEnd"); !status.ok()) return status;
    locks.push_back(std::move(lock).value());
  }
  return locks;
}

void append(Batch* batch, const Party& party) {
  batch->works.insert(batch->works.end(), party.works.begin(), party.works.end());
  batch->add_member(party.state, party.reports());
}

// The streams a communicator names besides its first: their earlier tasks come before the batch.
void join_streams_before(const Parties& parties) {
  std::vector<std::pair<StreamPtr, std::shared_ptr<Stream::Mark>>> waits;
  for (const auto& [handle, party] : parties)
    for (size_t i = 1; i < party.streams.size(); ++i)
      waits.emplace_back(party.streams[0], party.streams[i]->mark());
  for (auto& [stream, mark] : waits) stream->wait_for(std::move(mark));
}

// ... and their later tasks after it. Returns the marks that the calling thread has to wait for.
std::vector<std::shared_ptr<Stream::Mark>> join_streams_after(const Parties& parties) {
  std::vector<std::shared_ptr<Stream::Mark>> own;
  std::vector<std::pair<StreamPtr, std::shared_ptr<Stream::Mark>>> waits;
  for (const auto& [handle, party] : parties) {
    if (party.streams.empty()) continue;
    if (party.synchronous && party.state->blocking()) own.push_back(party.streams[0]->mark());
    for (size_t i = 1; i < party.streams.size(); ++i)
      waits.emplace_back(party.streams[i], party.streams[0]->mark());
  }
  for (auto& [stream, mark] : waits) stream->wait_for(std::move(mark));
  return own;
}

Status run_here(const std::vector<const Party*>& parties) {
  std::vector<Work> works;
  std::vector<std::pair<Turns*, uint64_t>> turns;
  for (const Party* party : parties) {
    works.insert(works.end(), party->works.begin(), party->works.end());
    if (party->state->ordered) turns.emplace_back(&party->state->turns, party->state->turns.take());
  }
  if (works.empty()) return {};
  std::deque<Turn> held;  // ends with the scope, whatever happens
  for (const auto& [turn, ticket] : turns) held.emplace_back(turn, ticket);
  return execute(works);
}

// Whether all is on one blocking communicator and stream 0.
bool alone(std::span<const Collected> items) {
  const Collected& first = items.front();
  return first.state->blocking() &&
         std::all_of(items.begin(), items.end(), [&](const Collected& item) {
           return item.handle == first.handle && !is_stream_handle(item.stream);
         });
}

// Such a group, again and again: no allocation once the list is long enough.
Status run_alone(std::span<const Collected> items) {
  Result<CommLock> lock = CommLock::acquire(items.front().handle, "ncclGroupEnd");
  if (!lock.ok()) return lock.status();
  CommState& state = *lock.value();
  if (Status status = check_usable(state, "ncclGroupEnd"); !status.ok()) return status;
  thread_local std::vector<Work> spare;
  std::vector<Work> works = std::exchange(spare, {});  // a plugin may call groups of its own
  works.clear();
  for (const Collected& item : items) works.push_back({state.comm.get(), item.call});
  std::optional<Turn> turn;
  if (state.ordered) turn.emplace(&state.turns);
  Status status = execute(works);
  spare.swap(works);
  return status;
}

}  // namespace

Status match_own_sends(std::span<const Collected> items) {
  struct Queues {
    std::vector<const Call*> sends, receives;
    const CommState* state;
  };
  std::map<ncclComm_t, Queues> all;
  for (const Collected& item : items) {
    if (!to_itself(item.call, *item.state)) continue;
    Queues& queues = all[item.handle];
    queues.state = item.state.get();
    (item.call.receives ? queues.receives : queues.sends).push_back(&item.call);
  }
  for (const auto& [handle, queues] : all) {
    if (queues.sends.size() != queues.receives.size())
      return fail(Code::kInvalidUsage,
                  "ncclGroupEnd on {}: {} sends to the own rank but {} receives from it; each "
                  "needs its counterpart in the same group",
                  queues.state->label(), queues.sends.size(), queues.receives.size());
    for (size_t i = 0; i < queues.sends.size(); ++i) {
      const Call& send = *queues.sends[i];
      const Call& receive = *queues.receives[i];
      if (send.count * size_of(send.type) == receive.count * size_of(receive.type)) continue;
      return fail(Code::kInvalidUsage,
                  "ncclGroupEnd on {}: send {} to the own rank has {} {}, its receive {} {}",
                  queues.state->label(), i, send.count, to_string(send.type), receive.count,
                  to_string(receive.type));
    }
  }
  return {};
}

Status launch(std::span<const Collected> items) {
  if (items.empty()) return {};
  if (alone(items)) return run_alone(items);
  Result<Parties> parties = sort_by_communicator(items);
  if (!parties.ok()) return parties.status();
  Result<std::vector<CommLock>> locks = lock_all(parties.value());
  if (!locks.ok()) return locks.status();

  join_streams_before(parties.value());
  std::map<Stream*, Batch> batches;
  std::vector<const Party*> here;
  bool in_background = false;
  for (const auto& [handle, party] : parties.value()) {
    if (party.streams.empty() && party.state->blocking()) {
      here.push_back(&party);
      continue;
    }
    in_background |= party.reports();
    Stream* const stream = party.reports() ? party.state->worker.get() : party.streams[0].get();
    append(&batches[stream], party);
  }
  for (auto& [stream, batch] : batches) enqueue(*stream, std::move(batch));
  const auto marks = join_streams_after(parties.value());
  const Status status = run_here(here);
  for (const auto& mark : marks) await(*mark);
  if (!status.ok()) return status;
  return in_background ? in_progress() : Status();
}

}  // namespace tessera::api
