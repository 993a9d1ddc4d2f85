#include "base/log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "base/error_text.h"
#include "base/fd.h"
#include "base/of_process.h"

namespace tessera::log {
namespace {

constexpr size_t kLastWarningBytes = 1023;

struct State {
  std::mutex mutex;
  Level level = Level::kWarn;
  std::string path;  // expanded; empty: standard error
  Fd file;
  std::string last_warning;
};

State& state() { return of_process<State, &State::mutex>(); }

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

std::string expand(const std::string& file) {
  std::string path;
  for (size_t i = 0; i < file.size(); ++i) {
    const char next = i + 1 < file.size() ? file[i + 1] : '\0';
    if (file[i] != '%') {
      path += file[i];
    } else if (next == 'h') {
      path += host_name();
      ++i;
    } else if (next == 'p') {
      path += fmt::format("{}", ::getpid());
      ++i;
    } else {
      path += '%';
      if (next == '%') ++i;
    }
  }
  return path;
}

// One write call per line keeps the lines of several processes apart. A log that cannot be written
// is no error of the caller.
void put(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t n = ::write(fd, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    line.remove_prefix(static_cast<size_t>(n));
  }
}

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string line_of(Level level, int rank, std::string_view text,
                    const std::source_location& where) {
  if (level == Level::kVersion) return fmt::format("{}\n", text);
  const std::string origin =
      fmt::format("{}:{}:{} [{}]", host_name(), ::getpid(), ::syscall(SYS_gettid), rank);
  if (level == Level::kWarn) {
    return fmt::format("\n{} {}:{} NCCL WARN {}\n", origin, base_name(where.file_name()),
                       where.line(), text);
  }
  return fmt::format("{} NCCL {} {}\n", origin, level == Level::kTrace ? "TRACE" : "INFO", text);
}

}  // namespace

void configure(Level level, const std::string& file) {
  const std::string path = expand(file);
  std::string trouble;
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    s.level = level;
    if (path == s.path) return;
    s.file.reset();
    s.path = path;
    if (path.empty()) return;
    // Appending, so that processes that share one file do not overwrite each other.
    s.file = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (s.file.valid()) return;
    trouble = fmt::format("NCCL_DEBUG_FILE: cannot open {}: {}; logging to standard error", path,
                          error_text(errno));
    s.path.clear();
  }
  warn_text(-1, trouble);
}

Level level() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.level;
}

void write(Level level, int rank, std::string_view text, const std::source_location& where) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (level == Level::kNone || level > s.level) return;
  put(s.file.valid() ? s.file.get() : STDERR_FILENO, line_of(level, rank, text, where));
}

std::string last_warning() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.last_warning;
}

void warn_text(int rank, std::string_view text, const std::source_location& where) {
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    s.last_warning = text.substr(0, kLastWarningBytes);
  }
  write(Level::kWarn, rank, text, where);
}

}  // namespace tessera::log
