// Files of both kinds, written as a whole.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/fd.h"
#include "topology/graph_xml.h"
#include "topology/nccl_xml.h"

namespace tessera::topology {
namespace {

Status cannot_write(const std::string& path, int error) {
  return Status::error(Code::kSystem, "{}: cannot write this file: {}", path, std::strerror(error));
}

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return cannot_write(path, errno);
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// A device, a pipe: nothing that may be replaced.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

Status save(const std::string& text, const std::string& path) {
  if (is_special(path)) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
    return fd.valid() ? write_all(fd.get(), text, path) : cannot_write(path, errno);
  }
  // Beside the file, because a rename does not cross file systems. A name that is taken belongs to
  // another thread, or is left of a process that died.
  std::string temporary;
  Fd fd;
  for (int i = 0; i < 100 && !fd.valid(); ++i) {
    temporary = fmt::format("{}.{}.{}.tmp", path, ::getpid(), i);
    fd = Fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd.valid() && errno != EEXIST) break;
  }
  if (!fd.valid()) return cannot_write(path, errno);
  Status status = write_all(fd.get(), text, path);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = cannot_write(path, errno);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace

Status save_nccl_xml(const Machine& machine, const std::string& path) {
  return save(write_nccl_xml(machine), path);
}

Status save_graph_xml(const SearchedGraphs& graphs, const std::string& path) {
  return save(write_graph_xml(graphs), path);
}

}  // namespace tessera::topology
