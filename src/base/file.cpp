#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error_text.h"
#include "base/fd.h"

namespace tessera {
namespace {

Status cannot_read(const std::string& path, const std::string& why) {
  return Status::error(Code::kSystem, "{}: cannot read this file: {}", path, why);
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t most) {
  // Not blocking, so that a pipe in place of a file is an error and no endless wait.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return cannot_read(path, error_text(errno));
  if (S_ISDIR(status.st_mode)) return cannot_read(path, error_text(EISDIR));
  if (!S_ISREG(status.st_mode)) return cannot_read(path, "it is no regular file");
  std::string text;
  // Sizes in /proc and /sys are not true: read up to the end.
  for (auto size = static_cast<size_t>(status.st_size);;) {
    if (std::max(size, text.size()) > most)
      return Status::error(Code::kInvalidArgument, "{}: larger than {} MiB, the limit", path,
                           most >> 20);
    const size_t had = text.size();
    text.resize(had + std::clamp<size_t>(size, 4096, 1 << 20));
    const ssize_t got = ::read(fd.get(), text.data() + had, text.size() - had);
    if (got < 0 && errno != EINTR) return cannot_read(path, error_text(errno));
    text.resize(had + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
  }
}

}  // namespace tessera
