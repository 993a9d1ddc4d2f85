#include "common/session.h"

#include <thread>

#include "common/outcome.h"

namespace tessera::perf {

Session::Session(const Options& options, World& world, size_t buffer_bytes)
    : options_(options),
      world_(world),
      team_(world, options.threads),
      watchdog_(std::chrono::seconds(options.timeout_s), options.threads),
      buffer_bytes_(buffer_bytes),
      ranks_(world.group_processes() * options.threads * options.gpus),
      states_(static_cast<size_t>(options.threads * options.gpus)) {
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].rank = world.group_process() * options.threads * options.gpus + static_cast<int>(i);
  }
  set_timeout_query([this] { return watchdog_.expired(); });
}

std::span<RankState> Session::of_thread(int thread) {
  const auto gpus = static_cast<size_t>(options_.gpus);
  return std::span(states_).subspan(static_cast<size_t>(thread) * gpus, gpus);
}

void Session::in_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 1; t < options_.threads; ++t) threads.emplace_back(body, t);
  body(0);
  for (std::thread& thread : threads) thread.join();
}

void Session::start() {
  ncclUniqueId id;
  if (world_.group_process() == 0) require(ncclGetUniqueId(&id));
  world_.group_broadcast(&id, sizeof(id));
  if (!options_.parallel_init) create(states_, id);
  in_threads([&](int thread) {
    if (options_.parallel_init) create(of_thread(thread), id);
    allocate(of_thread(thread));
    register_buffers(of_thread(thread));
  });
  std::vector<ncclComm_t> comms;
  for (const RankState& state : states_) comms.push_back(state.comm);
  watchdog_.watch(std::move(comms));
}

void Session::create(std::span<RankState> states, const ncclUniqueId& id) {
  require(ncclGroupStart());
  for (RankState& state : states) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (options_.cta_policy >= 0) config.CTAPolicy = options_.cta_policy;
    require(ncclCommInitRankConfig(&state.comm, ranks_, id, state.rank, &config));
  }
  require(ncclGroupEnd());
}

void Session::allocate(std::span<RankState> states) {
  const size_t bytes =
      buffer_bytes_ + static_cast<size_t>(options_.unalign) * 8;  // of the largest type
  for (RankState& state : states) {
    state.send = Buffer(options_.buffers, bytes);
    state.recv = Buffer(options_.buffers, bytes);
  }
}

void Session::register_buffers(std::span<RankState> states) {
  const int mode = options_.local_register;
  if (mode == 0) return;
  const bool grouped =
      mode == 2 &&
      states.size() > 1;  // windows are collective: one thread must not wait for itself
  if (grouped) require(ncclGroupStart());
  for (RankState& state : states) {
    const Buffer* buffers[2] = {&state.send, &state.recv};
    for (int b = 0; b < 2; ++b) {
      if (mode == 1) {
        require(ncclCommRegister(state.comm, buffers[b]->base(), buffers[b]->allocated(),
                                 &state.handles[b]));
      } else {
        require(ncclCommWindowRegister(state.comm, buffers[b]->base(), buffers[b]->allocated(),
                                       &state.windows[b], NCCL_WIN_COLL_SYMMETRIC));
      }
    }
  }
  if (grouped) require(ncclGroupEnd());
}

void Session::deregister_buffers(std::span<RankState> states) {
  const int mode = options_.local_register;
  const bool grouped = mode == 2 && states.size() > 1;
  if (grouped) require(ncclGroupStart());
  for (RankState& state : states) {
    for (int b = 0; b < 2; ++b) {
      if (mode == 1) require(ncclCommDeregister(state.comm, state.handles[b]));
      if (mode == 2) require(ncclCommWindowDeregister(state.comm, state.windows[b]));
    }
  }
  if (grouped) require(ncclGroupEnd());
}

void Session::finish() {
  in_threads([&](int thread) { deregister_buffers(of_thread(thread)); });
  watchdog_.watch({});
  for (RankState& state : states_) {
    require(ncclCommDestroy(state.comm));
    state.send = Buffer();
    state.recv = Buffer();
  }
}

}  // namespace tessera::perf
