// Ranks as threads of the test: each with a communicator of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"

namespace tessera::test {

inline CommOptions quick_options(int timeout_ms = 20'000) {
  CommOptions options;
  options.config.timeout = std::chrono::milliseconds(timeout_ms);
  return options;
}

// Runs body(communicator) on `ranks` threads and waits for all. `hosts`: by rank, the host that it
// pretends to run on; empty: all on this one.
inline void run_ranks(int ranks, const CommOptions& options,
                      const std::function<void(Communicator&)>& body,
                      const std::vector<int>& hosts = {}) {
  Result<UniqueId> id = create_unique_id(options.config);
  ASSERT_TRUE(id.ok()) << id.status().message();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      CommOptions own = options;
      if (!hosts.empty()) own.config.host_id = "host " + std::to_string(hosts[rank]);
      Result<std::unique_ptr<Communicator>> comm =
          Communicator::create(id.value(), ranks, rank, own);
      ASSERT_TRUE(comm.ok()) << comm.status().message();
      body(*comm.value());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline Status run(Communicator& comm, const Call& call) {
  const Work work{&comm, call};
  return execute({&work, 1});
}

inline Call all_reduce(const void* send, void* recv, size_t count) {
  Call call;
  call.collective = Collective::kAllReduce;
  call.send = send;
  call.recv = recv;
  call.count = count;
  return call;
}

}  // namespace tessera::test
