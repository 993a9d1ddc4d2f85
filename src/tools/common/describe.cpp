#include "tools/common/describe.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "topology/graph_of.h"
#include "topology/hwloc_read.h"
#include "topology/hwloc_write.h"
#include "topology/nccl_xml.h"

namespace tessera::tools {
namespace {

// The name of the root element, as far as a look at the text can tell.
std::string root_of(const std::string& text) {
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos; ++at) {
    if (text.compare(at, 4, "<!--") == 0) {
      at = text.find("-->", at);
      if (at == std::string::npos) break;
      continue;
    }
    if (at + 1 < text.size() && (text[at + 1] == '?' || text[at + 1] == '!')) continue;
    const size_t end = text.find_first_of(" \t\r\n/>", at + 1);
    return text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
  }
  return {};
}

Result<Described> by_hwloc(Result<topology::HwlocTopology> topology) {
  if (!topology.ok()) return topology.status();
  Described described;
  described.machine = topology::machine_of(topology.value());
  described.from_hwloc = true;
  Result<std::string> xml = topology::write_hwloc_xml(topology.value());
  if (!xml.ok()) return xml.status();
  described.hwloc_xml = std::move(xml).value();
  return described;
}

}  // namespace

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

Result<Described> describe_machine(const std::string& from) {
  if (from.empty()) return by_hwloc(topology::HwlocTopology::this_machine());
  struct stat state {};
  const bool file = stat(from.c_str(), &state) == 0;
  if (!file && from.find(':') != std::string::npos && from.find('/') == std::string::npos)
    return by_hwloc(topology::HwlocTopology::synthetic(from));
  Result<std::string> text = read_file(from);
  if (!text.ok()) return text.status();
  if (root_of(text.value()) == "topology")
    return by_hwloc(topology::HwlocTopology::from_file(from));
  Result<topology::Machine> machine = topology::read_nccl_xml(from);
  if (!machine.ok()) return machine.status();
  return Described{std::move(machine).value(), false, {}};
}

Result<std::vector<int>> place_ranks(const topology::Graph& graph, int ranks) {
  std::vector<int> places = topology::stated_ranks(graph);
  for (const auto kind :
       {topology::NodeKind::kGpu, topology::NodeKind::kCore, topology::NodeKind::kCpu}) {
    if (places.empty()) places = graph.of_kind(kind);
  }
  if (places.empty())
    return Status(Code::kInvalidArgument,
                  "the description has no GPU, core or NUMA node to sit on");
  const size_t count = ranks == 0 ? places.size() : static_cast<size_t>(ranks);
  std::vector<int> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(places[i % places.size()]);
  return nodes;
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
