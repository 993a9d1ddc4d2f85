// Ranks in the guest: a process each, on hosts of their own, which reach each other by RDMA over the
// wire between rxe0 and rxe1 and by TCP over loopback (job.sh).
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "base/log.h"
#include "comm/checks.h"
#include "comm/processes.h"

namespace tessera::test {

inline CommOptions rdma_options() {
  CommOptions options;
  options.config.timeout = std::chrono::seconds(40);
  options.config.socket_ifname = "lo";
  options.config.ib_timeout = 14;  // 67 ms
  options.config.ib_retries = 3;
  return options;
}

class Hosts {
 public:
  explicit Hosts(int ranks) : ranks_(ranks) {
    char name[] = "/tmp/ranksXXXXXX";
    folder_ = ::mkdtemp(name);
    ::chmod(folder_.c_str(), 0777);
  }

  // Of all ranks; a rank's host and device are set besides.
  CommOptions options = rdma_options();
  std::function<void(int rank, CommOptions&)> adjust;

  std::vector<Ending> run(const std::function<std::string(Communicator&)>& body) {
    return run_processes(ranks_, options, body, [&](int rank, CommOptions& own) {
      own.config.host_id = "host " + std::to_string(rank);
      own.config.ib_hca = "=rxe" + std::to_string(rank % 2);
      if (adjust) adjust(rank, own);
      log::configure(log::Level::kInfo, log_file(rank));
    });
  }
  // Runs checks that use gtest's assertions; all ranks must end well.
  void check(const std::function<void(Communicator&)>& body) {
    const std::vector<Ending> endings = run([&](Communicator& comm) -> std::string {
      body(comm);
      if (testing::Test::HasFailure()) return "see above";
      const Status status = comm.finalize();
      return status.ok() ? "" : status.message();
    });
    for (int rank = 0; rank < ranks_; ++rank) {
      EXPECT_EQ(endings[rank].exit_code, 0) << "rank " << rank << ": " << endings[rank].text << "\n"
                                            << log_of(rank);
    }
  }

  std::string log_of(int rank) const {
    std::ifstream file(log_file(rank));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  std::string log_file(int rank) const { return folder_ + "/rank" + std::to_string(rank); }

  int ranks_;
  std::string folder_;
};

}  // namespace tessera::test
