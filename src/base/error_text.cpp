#include "base/error_text.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace tessera {
namespace {

std::string hint(int error) {
  rlimit limit{};
  switch (error) {
    case EMFILE:
      ::getrlimit(RLIMIT_NOFILE, &limit);
      return fmt::format(
          ": this process may have {} descriptors (RLIMIT_NOFILE); raise the limit (ulimit -n)",
          limit.rlim_cur);
    case ENFILE:
      return ": all processes of this host together have as many as it allows; end some, or raise "
             "fs.file-max (sysctl)";
    case ENOMEM:
      ::getrlimit(RLIMIT_AS, &limit);
      if (limit.rlim_cur != RLIM_INFINITY) {
        return fmt::format(
            ": this process may have {} MiB of addresses (RLIMIT_AS); raise the limit (ulimit -v)",
            limit.rlim_cur >> 20);
      }
      return ": free memory, or raise the memory limit of this job; a process that has very many "
             "mappings may need a higher vm.max_map_count (sysctl)";
    default:
      return {};
  }
}

}  // namespace

std::string error_text(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer) +
         hint(error);  // the GNU one: it returns a text
}

bool ran_out(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace tessera
