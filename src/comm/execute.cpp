// Runs works in the caller's thread: the batches of all communicators named make progress together.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <vector>

#include "comm/batch.h"
#include "comm/host_communicator.h"
#include "comm/sleep.h"
#include "comm/watch.h"

namespace tessera {
namespace {

HostCommunicator& host_rank(Communicator* comm) { return *static_cast<HostCommunicator*>(comm); }

// Goes on as far as what has come allows. All that the run posts at once leaves together.
Progress advance(CollectiveRun& run, const Core& core, int spins) {
  constexpr int kMostRounds = 64;  // then the caller looks at the communicator's health
  Progress progress = run.advance(spins);
  int looks = core.looks;
  for (int i = 0; i < kMostRounds && looks > 0 && progress == Progress::kBlocked; ++i) {
    if (core.progress()) {
      progress = run.advance(spins);
    } else {
      --looks;
    }
  }
  return progress;
}

// Until the collective is done or has failed, or the communicator has.
Status wait_for(CollectiveRun& run, Core& core, Progress progress) {
  const Core* const own[] = {&core};
  Idle idle(core.yields);
  std::optional<Watch> watch;  // reads clocks: from the first sleep on
  uint64_t moved = run.moved();
  while (progress == Progress::kBlocked) {
    if (!core.health->good()) return core.health->status();
    core.mark_processor();
    if (core.patience > 0 && run.worth_patience([&](int rank) { return core.is_neighbour(rank); }))
      progress = advance(run, core, core.patience);
    if (progress != Progress::kBlocked) break;
    if (run.moved() != moved) {
      moved = run.moved();
      idle.reset();
    } else if (idle.next() == Idle::Action::kYield) {
      yield_outside(own);
      progress = advance(run, core, core.spins);
    } else {
      sleep_until_rung(own, [&] {
        progress = advance(run, core, 0);
        return progress != Progress::kBlocked || run.moved() != moved || !core.health->good();
      });
      if (progress != Progress::kBlocked) break;
      if (!watch) watch.emplace(core);
      watch->beat();
      Status s = watch->look(run.moved(), [&](bool overdue) { return run.diagnose(overdue); });
      if (!s.ok()) return s;
    }
  }
  core.ring(core.rank);  // whom this thread kept from driving (comm/driven.h)
  return run.status();
}

Status run_collective(HostCommunicator& comm, const Call& call) {
  Core& core = comm.core();
  CollectiveRun& run = comm.collective();
  auto inside = core.enter();
  if (!core.health->good()) return core.health->status();
  if (Status s = run.begin(call); !s.ok()) return core.health->raise(s);
  const Progress progress = advance(run, core, core.spins);
  if (progress == Progress::kDone) return {};
  Status status = wait_for(run, core, progress);
  if (!status.ok()) {
    run.abandon();
    if (inside) inside.unlock();
    await_visitors(core);
  }
  return status;
}

using Batches = std::pmr::vector<Batch*>;

bool advance_all(const Batches& batches) {
  bool moved = false;
  for (Batch* batch : batches) moved = batch->advance() || moved;
  return moved;
}

bool all_done(const Batches& batches) {
  return std::all_of(batches.begin(), batches.end(), [](const Batch* b) { return b->done(); });
}

using Cores = std::pmr::vector<const Core*>;

Cores cores_of(const Batches& batches) {
  Cores cores(batches.get_allocator());
  for (Batch* batch : batches) cores.push_back(&batch->core());
  return cores;
}

void run_batches(const Batches& batches) {
  for (Batch* batch : batches) batch->begin();
  const Core& first = batches.front()->core();
  Idle idle(first.yields);
  Cores cores(batches.get_allocator());  // from the first yield on
  int spun = 0;
  while (!all_done(batches)) {
    if (advance_all(batches)) {
      idle.reset();
      spun = 0;
      continue;
    }
    if (spun++ < first.spins) {
      pause();
      continue;
    }
    if (cores.empty()) cores = cores_of(batches);
    if (idle.next() == Idle::Action::kYield) {
      spun = 0;
      yield_outside(cores);
    } else {
      sleep_until_rung(cores, [&] { return advance_all(batches); });
      for (Batch* batch : batches) batch->look();
    }
  }
}

}  // namespace

Status execute(std::span<const Work> works) {
  if (works.empty()) return {};
  if (works.size() == 1 && works[0].call.collective != Collective::kSendRecv)
    return run_collective(host_rank(works[0].comm), works[0].call);
  std::byte room[32 * sizeof(void*)];  // for the first few communicators; more are allocated
  std::pmr::monotonic_buffer_resource memory(room, sizeof room);
  Batches batches(&memory);
  const auto close = [&](Batches* opened) {  // also when an allocation fails on the way
    for (Batch* batch : *opened)
      if (batch->open()) static_cast<void>(batch->close());
  };
  const std::unique_ptr<Batches, decltype(close)> guard(&batches, close);
  for (const Work& work : works) {
    Batch& batch = host_rank(work.comm).batch();
    if (!batch.open()) batches.push_back(&batch);
    batch.add(work.call);
  }
  std::vector<std::unique_lock<Ports>> inside;
  for (Batch* batch : batches) {
    if (batch->core().ports) inside.push_back(batch->core().enter());
  }
  run_batches(batches);
  for (Batch* batch : batches) batch->core().ring(batch->core().rank);  // as in wait_for()
  Status first;
  std::vector<Core*> failed;
  for (Batch* batch : batches) {
    Status status = batch->close();
    if (status.ok()) continue;
    failed.push_back(&batch->core());
    if (first.ok()) first = std::move(status);
  }
  inside.clear();  // ranks of other hosts learn of errors
  for (Core* core : failed) await_visitors(*core);
  return first;
}

}  // namespace tessera
