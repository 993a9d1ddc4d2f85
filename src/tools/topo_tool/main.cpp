// tessera-topo: shows a machine, the ranks on it, the paths between them, and the rings and trees
// that were found; reads and writes descriptions.
//
// Exit codes: 0 done; 1 something failed; 2 wrong arguments.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <utility>

#include "command_line/help.h"
#include "command_line/print.h"
#include "plan/limits.h"
#include "tools/common/files.h"
#include "tools/common/warnings.h"
#include "topology/describe.h"
#include "topology/draw.h"
#include "topology/graph_of.h"
#include "topology/graph_xml.h"
#include "topology/nccl_xml.h"
#include "topology/search.h"
#include "topology/searched.h"

namespace {

using namespace tessera;

struct Options {
  std::string from, svg, dot, nccl, hwloc, graphs, read_graphs;
  int hosts = 1, ranks = 0;
  bool no_cores = false, quiet = false;
};

int fail(const Status& status) {
  command_line::print(stderr, "tessera-topo: {}\n", status.message());
  return 1;
}

// Whatever files were asked for.
Status write_files(const Options& options, const topology::Described& described,
                   const topology::Graph& graph, const topology::Layout& layout) {
  if (!options.nccl.empty()) {
    if (Status s = tools::write_file(options.nccl, topology::write_nccl_xml(described.machine));
        !s.ok())
      return s;
  }
  if (!options.hwloc.empty()) {
    if (!described.from_hwloc)
      return Status(
          Code::kInvalidArgument,
          "--write-hwloc: this description did not come by hwloc, whose objects it lacks");
    if (Status s = tools::write_file(options.hwloc, described.hwloc_xml); !s.ok()) return s;
  }
  if (!options.graphs.empty()) {
    const std::string text = topology::write_graph_xml(topology::searched_graphs(graph, layout));
    if (Status s = tools::write_file(options.graphs, text); !s.ok()) return s;
  }
  const std::string dot = topology::to_dot(graph, &layout);
  if (!options.dot.empty()) {
    if (Status s = tools::write_file(options.dot, dot); !s.ok()) return s;
  }
  return options.svg.empty() ? Status() : tools::draw_svg(dot, options.svg);
}

// Every output is a file of its own, and the formats of machines have one host.
Status check_outputs(const Options& options) {
  if (options.hosts > 1 && !(options.nccl.empty() && options.hwloc.empty()))
    return Status::error(Code::kInvalidArgument,
                         "{} writes one host, and --hosts {} makes several of it: leave one out",
                         options.nccl.empty() ? "--write-hwloc" : "--write-nccl", options.hosts);
  const std::pair<const char*, const std::string&> outputs[] = {{"--svg", options.svg},
                                                                {"--dot", options.dot},
                                                                {"--write-nccl", options.nccl},
                                                                {"--write-hwloc", options.hwloc},
                                                                {"--write-graph", options.graphs}};
  for (const auto& [name, file] : outputs) {
    for (const auto& [other_name, other] : outputs) {
      if (&file == &other) break;
      if (tools::same_file(file, other))
        return Status::error(Code::kInvalidArgument, "{} and {} name the same file", other_name,
                             name);
    }
  }
  return options.svg.empty() ? Status() : tools::check_svg(options.svg);
}

int show(const Options& options) {
  Result<topology::Described> described = topology::describe_machine(options.from);
  if (!described.ok()) return fail(described.status());
  const topology::Machine& machine = described->machine;
  tools::print_warnings(machine);
  topology::GraphOptions graph_options;
  graph_options.cores = !options.no_cores;
  topology::Graph graph = topology::graph_of(machine, graph_options);
  if (options.hosts > 1) graph = topology::replicate(graph, options.hosts);
  Result<std::vector<int>> nodes = topology::place_ranks(graph, options.ranks);
  if (!nodes.ok()) return fail(nodes.status());
  if (nodes->size() > kMaxRanks) {
    return fail(Status::error(Code::kInvalidArgument,
                              "the machine has room for {} ranks, {} are the most: --ranks",
                              nodes->size(), kMaxRanks));
  }
  Result<topology::Layout> layout = topology::search(graph, nodes.value());
  if (!layout.ok()) return fail(layout.status());
  if (!options.read_graphs.empty()) {
    Result<topology::SearchedGraphs> graphs = topology::read_graph_xml(options.read_graphs);
    if (!graphs.ok()) return fail(graphs.status());
    Result<topology::Layout> given =
        topology::layout_of(graph, nodes.value(), graphs.value(), options.read_graphs);
    if (!given.ok()) return fail(given.status());
    layout = std::move(given);
  }
  for (std::string& note : topology::notes_on_places(graph, nodes.value()))
    layout->notes.push_back(std::move(note));
  if (!options.quiet) command_line::print("{}", topology::to_text(graph, &layout.value()));
  if (Status s = write_files(options, described.value(), graph, layout.value()); !s.ok())
    return fail(s);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Shows a machine as tessera sees it: devices and links, ranks, the paths between them, and "
      "the rings and trees over them."};
  command_line::explain_well(app);
  app.add_option("--from", options.from,
                 "a description instead of this machine: NCCL or RCCL topology XML, hwloc XML, or "
                 "an hwloc synthetic text such as \"pack:2 numa:1 core:8 pu:1\"")
      ->default_str("this machine, whatever NCCL_TOPO_FILE says")
      ->check(command_line::not_empty());
  app.add_option("--hosts", options.hosts, "so many copies of it, joined by a network")
      ->capture_default_str()
      ->check(command_line::between(1, 128));
  app.add_option("--ranks", options.ranks, "how many ranks")
      ->default_str("as stated, or one for each GPU, else core")
      ->check(command_line::between(1, kMaxRanks));
  app.add_flag("--no-cores", options.no_cores, "NUMA nodes only, no cores and caches");
  app.add_option("--svg", options.svg, "draw it (needs Graphviz's dot)");
  app.add_option("--dot", options.dot, "write Graphviz's text instead");
  app.add_option("--write-nccl", options.nccl,
                 "write it as NCCL topology XML; - for the terminal; of one host");
  app.add_option("--write-hwloc", options.hwloc, "write it as hwloc XML; of one host");
  app.add_option("--write-graph", options.graphs, "write rings and trees as an NCCL graph file");
  app.add_option("--graph", options.read_graphs, "show these rings instead of searching");
  app.add_flag("--quiet", options.quiet, "print nothing but warnings");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  if (const Status s = check_outputs(options); !s.ok()) {
    fail(s);
    return s.code() == Code::kInvalidArgument ? 2 : 1;
  }
  return tools::finish(show(options));
}
