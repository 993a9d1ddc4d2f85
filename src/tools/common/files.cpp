#include "tools/common/files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tessera::tools {

Result<std::string> read_file(const std::string& path) {
  struct stat state {};
  if (stat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode))
    return Status::error(Code::kInvalidArgument, "{}: is a folder", path);
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return Status::error(Code::kInvalidArgument, "{}: {}", path,
                         errno != 0 ? std::strerror(errno) : "cannot be read");
  return text.str();
}

Status write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    const bool done = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return done ? Status() : Status(Code::kSystem, "standard output: cannot be written");
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file ? Status() : Status::error(Code::kSystem, "{}: {}", path, std::strerror(errno));
}

Status check_writable(const std::string& path) {
  if (path == "-") return {};
  const bool there = access(path.c_str(), F_OK) == 0;
  errno = 0;
  if (!std::ofstream(path, std::ios::binary | std::ios::app)) {
    return Status::error(Code::kSystem, "{}: cannot be written: {}", path,
                         errno != 0 ? std::strerror(errno) : "unknown reason");
  }
  if (!there) unlink(path.c_str());
  return {};
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
  const std::string command = "dot -Tsvg";
  std::string quoted;
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  std::FILE* pipe = popen((command + " -o '" + quoted + "'").c_str(), "w");
  if (pipe == nullptr) return Status::error(Code::kSystem, "dot: {}", std::strerror(errno));
  const bool sent = std::fwrite(dot.data(), 1, dot.size(), pipe) == dot.size();
  const int status = pclose(pipe);
  if (sent && status == 0) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    return Status(Code::kSystem,
                  "dot is not installed (Debian: graphviz); --dot FILE writes what "
                  "it would draw");
  return Status::error(Code::kSystem, "{}: dot could not draw it", path);
}

}  // namespace tessera::tools
