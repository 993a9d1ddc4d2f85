#include "tools/common/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/fd.h"
#include "base/file.h"
#include "command_line/print.h"

namespace tessera::tools {

namespace {

constexpr size_t kMostBytes = size_t{1} << 30;

// Not waiting for somebody to read a pipe.
Fd open_to_write(const std::string& path, int flags) {
  constexpr int kMode = 0666;
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, kMode));
  if (fd.valid()) ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

Status cannot_write(const std::string& path) {
  return Status::error(Code::kSystem, "{}: cannot be written: {}", path, std::strerror(errno));
}

// The exit status of a Graphviz program that reads `dot` and writes SVG.
Result<int> pipe_to(const char* engine, const std::string& dot, const std::string& path) {
  std::string quoted;
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const std::string command = fmt::format("{} -Tsvg -o '{}' 2>/dev/null", engine, quoted);
  std::FILE* pipe = popen(command.c_str(), "w");
  if (pipe == nullptr) return Status::error(Code::kSystem, "{}: {}", engine, std::strerror(errno));
  const bool sent = std::fwrite(dot.data(), 1, dot.size(), pipe) == dot.size();
  const int status = pclose(pipe);
  return sent || status != 0 ? status : 1 << 8;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  return tessera::read_file(path, kMostBytes);
}

Status write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    const bool done =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return done ? Status() : cannot_write("standard output");
  }
  const Fd fd = open_to_write(path, O_TRUNC);
  if (!fd.valid()) return cannot_write(path);
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) return cannot_write(path);
    done += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
  return {};
}

Status check_writable(const std::string& path) {
  if (path == "-") return {};
  const bool there = access(path.c_str(), F_OK) == 0;
  if (!open_to_write(path, O_APPEND).valid()) return cannot_write(path);
  if (!there) unlink(path.c_str());
  return {};
}

int finish(int code) { return command_line::output_arrived() || code != 0 ? code : 1; }

bool same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  const fs::path real_a = fs::weakly_canonical(a, error), real_b = fs::weakly_canonical(b, error);
  return real_a == real_b && !fs::is_character_file(real_a, error);
}

Status check_svg(const std::string& path) {
  const size_t dot = path.find_last_of("./");
  std::string suffix = dot != path.npos && path[dot] == '.' ? path.substr(dot + 1) : "";
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* other : {"png", "jpg", "jpeg", "gif", "bmp", "webp", "pdf", "ps", "eps"}) {
    if (suffix == other) {
      return Status::error(Code::kInvalidArgument,
                           "{}: pictures are SVG files, and this name is a {}'s; end it in .svg",
                           path, other);
    }
  }
  return check_writable(path);
}

Status draw_svg(const std::string& dot, const std::string& path) {
  ::signal(SIGPIPE, SIG_IGN);  // a shell that does not find a program ends before it has read
  // Some versions of dot fail on nested groups with many edges between two nodes; fdp does not.
  int status = 0;
  for (const char* engine : {"dot", "fdp"}) {
    const Result<int> ended = pipe_to(engine, dot, path);
    if (!ended.ok()) return ended.status();
    status = ended.value();
    if (status == 0) return {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
      return Status(
          Code::kSystem,
          "dot is not installed (Debian: graphviz); --dot FILE writes what it would draw");
    }
  }
  return Status::error(Code::kSystem,
                       "{}: Graphviz could not draw it; --dot FILE writes what it was given", path);
}

}  // namespace tessera::tools
