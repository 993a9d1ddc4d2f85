// Ranks as processes: forked children, each with a communicator of its own. The parent hosts the
// rendezvous.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/late.h"

namespace tessera::test {

// What a rank's process ended with.
struct Ending {
  bool killed = false;
  int exit_code = -1;  // 0: body returned an empty text
  std::string text;    // what body returned
};

// Runs body in `ranks` processes; body returns what went wrong ("" for nothing). A body that never
// returns is killed by the test's time-out.
inline std::vector<Ending> run_children(
    int ranks, const Config& config,
    const std::function<std::string(int rank, const UniqueId&)>& body) {
  std::vector<Ending> endings(ranks);
  Late<UniqueId> id;
  std::vector<pid_t> pids;
  std::vector<int> pipes;
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      close(ends[0]);
      const std::string text = body(rank, id.take().value_or(UniqueId{}));
      const ssize_t written = write(ends[1], text.data(), text.size());
      _exit(text.empty() && written == 0 ? 0 : 1);
    }
    close(ends[1]);
    pids.push_back(pid);
    pipes.push_back(ends[0]);
  }
  const Result<UniqueId> made = create_unique_id(config);
  EXPECT_TRUE(made.ok()) << made.status().message();
  id.give(made.ok() ? made.value() : UniqueId{}, ranks);  // ranks refuse an empty one
  for (int rank = 0; rank < ranks; ++rank) {
    char buffer[2048];
    for (ssize_t n = 0; (n = read(pipes[rank], buffer, sizeof(buffer))) > 0;)
      endings[rank].text.append(buffer, static_cast<size_t>(n));
    close(pipes[rank]);
    int state = 0;
    waitpid(pids[rank], &state, 0);
    endings[rank].killed = WIFSIGNALED(state);
    endings[rank].exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }
  return endings;
}

// The same with a communicator. `adjust`: what a rank's process does first, perhaps to its options.
inline std::vector<Ending> run_processes(
    int ranks, const CommOptions& options, const std::function<std::string(Communicator&)>& body,
    const std::function<void(int rank, CommOptions&)>& adjust = {}) {
  return run_children(ranks, options.config, [&](int rank, const UniqueId& id) {
    CommOptions own = options;
    if (adjust) adjust(rank, own);
    Result<std::unique_ptr<Communicator>> comm = Communicator::create(id, ranks, rank, own);
    return comm.ok() ? body(*comm.value()) : "create: " + comm.status().message();
  });
}

}  // namespace tessera::test
