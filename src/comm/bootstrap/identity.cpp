#include "comm/bootstrap/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "base/keyed_hash.h"
#include "topology/host_identity.h"

namespace tessera::bootstrap {
namespace {

// Reads the beginning of a small file and ends it with a zero. False when it cannot be read or is
// empty.
bool read_start(const char* path, char* buffer, size_t bytes) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  const ssize_t n = ::read(file.get(), buffer, bytes - 1);
  if (n <= 0) return false;
  buffer[n] = '\0';
  return true;
}

// 0 where /proc is masked: then all processes look alike, which an attempt to share memory later
// finds out.
uint64_t namespace_inode(const char* path) {
  struct stat info = {};
  return ::stat(path, &info) == 0 ? static_cast<uint64_t>(info.st_ino) : 0;
}

void copy_host_name(char* out, size_t bytes) {
  std::memset(out, 0, bytes);
  if (::gethostname(out, bytes - 1) != 0) std::snprintf(out, bytes, "unknown");
  out[bytes - 1] = '\0';
}

}  // namespace

uint64_t own_pid_namespace() { return namespace_inode("/proc/self/ns/pid"); }

uint64_t process_token(int pid, uint64_t pid_namespace, uint64_t start_time) {
  return short_hash(fmt::format("{} {} {}", pid, pid_namespace, start_time));
}

std::optional<ProcessState> look_at_process(int pid) {
  char path[32];
  char text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  if (!read_start(path, text, sizeof text)) return std::nullopt;
  // "pid (name) state ppid ...": the name may hold anything, so count from its last parenthesis.
  // Start time is field 22.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == '\0') return std::nullopt;
  ProcessState state;
  state.ended = at[2] == 'Z' || at[2] == 'X';
  state.stopped = at[2] == 'T' || at[2] == 't';
  for (int field = 2; field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at == nullptr) return std::nullopt;
  }
  state.start_time = std::strtoull(at + 1, nullptr, 10);
  return state;
}

Member describe_self(int rank, const std::string& host_id) {
  Member member;
  member.rank = rank;
  member.pid = ::getpid();
  member.host = short_hash(host_id.empty() ? topology::host_token() : host_id);
  member.pid_namespace = own_pid_namespace();
  const std::optional<ProcessState> state = look_at_process(member.pid);
  member.process = process_token(member.pid, member.pid_namespace, state ? state->start_time : 0);
  copy_host_name(member.host_name, sizeof member.host_name);
  return member;
}

}  // namespace tessera::bootstrap
