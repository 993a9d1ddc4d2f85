#include "tools/tune_tool/bench.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "plan/shape.h"

namespace tessera::tune {
namespace {

using Clock = Seat::Clock;

// Microseconds that a batch of several calls takes at most, about: on a busy machine a call may take
// a thousand times as long as when their number was found.
constexpr double kTooLong = 20'000;

Status repeat(const Work& work, int times) {
  for (int i = 0; i < times; ++i) {
    if (Status s = execute({&work, 1}); !s.ok()) return s;
  }
  return {};
}

}  // namespace

Result<Communicator*> Bench::communicator(uint32_t entrant) {
  std::unique_ptr<Communicator>& comm = comms_[entrant];
  if (comm) return comm.get();
  const Config& config = entrants_[entrant].config;
  Result<UniqueId> id = seat_.new_id(config);
  if (!id.ok()) return id.status();
  Result<std::unique_ptr<Communicator>> made =
      Communicator::create(id.value(), seat_.ranks(), seat_.rank(), {config, "tune"});
  if (!made.ok()) return made.status();
  comm = std::move(made).value();
  return comm.get();
}

// Fills in the call, with room for its blocks.
Status Bench::prepare(Call& call, const Batch& batch) {
  call.collective = batch.collective;
  call.root = has_root(batch.collective) ? 0 : -1;
  call.count = batch.block_bytes / sizeof(float);
  Buffers& buffers = entrants_[batch.entrant].shareable ? shareable_ : plain_;
  const auto room = [&](Buffer& buffer, int (*blocks)(Collective, int, int, int)) {
    constexpr size_t kLeast = 64;
    const int count = blocks(batch.collective, seat_.ranks(), call.root, seat_.rank());
    return buffer.reserve(std::max(batch.block_bytes * static_cast<size_t>(count), kLeast));
  };
  if (Status s = room(buffers.input, input_blocks); !s.ok()) return s;
  if (Status s = room(buffers.output, output_blocks); !s.ok()) return s;
  if (input_blocks(batch.collective, seat_.ranks(), call.root, seat_.rank()) > 0)
    call.send = buffers.input.data();
  if (output_blocks(batch.collective, seat_.ranks(), call.root, seat_.rank()) > 0)
    call.recv = buffers.output.data();
  return {};
}

Result<double> Bench::run(const Batch& batch) {
  if (batch.pass != pass_) cores_.take(seat_.rank(), seat_.ranks(), batch.pass);
  pass_ = batch.pass;
  const Result<Communicator*> comm = communicator(batch.entrant);
  if (!comm.ok()) return comm.status();
  Work work{comm.value(), {}};
  if (Status s = prepare(work.call, batch); !s.ok()) return s;
  int calls = batch.calls;
  if (batch.untimed > 0) {
    const Clock::time_point start = Clock::now();
    if (Status s = repeat(work, batch.untimed); !s.ok()) return s;
    const double each = seat_.span(start, Clock::now()) / batch.untimed;
    calls = std::clamp(static_cast<int>(kTooLong / each), 1, calls);
  }
  seat_.meet();
  const Clock::time_point start = Clock::now();
  if (Status s = repeat(work, calls); !s.ok()) return s;
  return seat_.span(start, Clock::now()) / calls;
}

}  // namespace tessera::tune
