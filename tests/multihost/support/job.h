// Ranks as processes on the hosts of a Network.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "comm/communicator.h"
#include "multihost/support/network.h"

namespace tessera::multihost {

// What became of a rank.
struct Ending {
  bool hung = false;    // it was still there when waiting for it ended; it has been killed then
  bool killed = false;  // by a signal
  std::string text;     // what its body returned
  // When the body returned, from the latest Job::mark() on.
  std::chrono::milliseconds after{0};
};

// Memory that the processes and the test share.
struct Board {
  static constexpr int kMostRanks = 16;

  std::atomic<int> id_made;             // -1: it could not be made
  std::atomic<int> tried;               // ranks that have a communicator or were refused one
  std::atomic<int> rounds[kMostRanks];  // that the rank has finished
  std::atomic<int> enough;  // the rank that reads it first decides for all, see traffic.h
  UniqueId id;
};

class Job {
 public:
  // A rank's part; "" when all was well. Runs in the rank's process.
  using Body = std::function<std::string(Communicator&, Board&)>;
  using OptionsOf = std::function<CommOptions(int rank)>;
  using Clock = std::chrono::steady_clock;

  // Starts a process for each entry of `host_of`. The id is made by rank 0. A communicator that
  // cannot be made ends the rank with the text "create: ...". Wrong results that gtest notices in
  // a rank end it with a text, too.
  Job(const Network& network, const std::vector<int>& host_of, const OptionsOf& options,
      const Body& body);
  Job(const Network& network, const std::vector<int>& host_of, const CommOptions& options,
      const Body& body);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int ranks() const { return static_cast<int>(processes_.size()); }
  Board& board() { return *board_; }

  // Until all ranks have finished so many rounds, or one has ended. False: that took too long, and
  // the test has failed.
  bool await_rounds(int rounds);
  // A fault happens now.
  void mark() { mark_ = Clock::now(); }
  void send_signal(int rank, int signal);
  // By rank. Waits until all ranks but those stopped have ended, at most so long; kills the rest.
  std::vector<Ending> endings(std::chrono::seconds at_most);

 private:
  struct Process {
    pid_t pid = -1;
    Fd report;
    std::string said;
    bool stopped = false;
    bool over = false;
  };

  bool somebody_ended() const;
  void collect(Process& process, Ending& ending);

  std::unique_ptr<Board, void (*)(Board*)> board_;
  std::vector<Process> processes_;
  Clock::time_point mark_ = Clock::now();
};

}  // namespace tessera::multihost
