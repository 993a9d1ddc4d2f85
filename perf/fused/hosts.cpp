#include "fused/hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace perf::fused {

void enter_host(const std::vector<int>& pids, int rank, int ranks) {
  if (pids.empty()) return;
  const size_t host = static_cast<size_t>(rank) * pids.size() / static_cast<size_t>(ranks);
  const std::string path = "/proc/" + std::to_string(pids[host]) + "/ns/net";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
    std::fprintf(stderr, "rank %d cannot enter %s: %s\n", rank, path.c_str(), std::strerror(errno));
    std::exit(1);
  }
  close(fd);
}

}  // namespace perf::fused
