// tessera-sim: simulates plans on machines that need not be here.
//
// Standard output is the same for the same arguments; what is under way, and how long it took, goes
// to standard error. Exit codes: 0 done; 1 something failed; 2 wrong arguments.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "command_line/help.h"
#include "command_line/print.h"
#include "plan/json.h"
#include "plan/limits.h"
#include "simulator/timeline.h"
#include "tools/common/files.h"
#include "tools/common/names.h"
#include "tools/sim_tool/report.h"
#include "tools/sim_tool/run.h"

namespace {

using namespace tessera;

struct Options {
  std::string collective, algorithm, from, plan, cost, trace, svg;
  tools::Call call;
  int hosts = 1, ranks = 0;
  bool list = false, quiet = false, sized = false, rooted = false;
  bool found_order = false;
};

int fail(const std::string& text, int code = 1) {
  command_line::print(stderr, "tessera-sim: {}\n", text);
  return code;
}
int fail(const Status& status) { return fail(status.message()); }

Result<simulator::Cost> cost_of(const std::string& file) {
  if (file.empty()) return simulator::Cost{};
  const Result<std::string> text = tools::read_file(file);
  if (!text.ok()) return text.status();
  Result<simulator::Cost> cost = simulator::load_cost(text.value());
  if (cost.ok()) return cost;
  return Status::error(cost.status().code(), "{}: {}", file, cost.status().message());
}

const Algorithm* algorithm_of(Collective collective, const std::string& name) {
  const Algorithm* found = find_algorithm(collective, name, Reach::kStaged);
  return found != nullptr ? found : find_algorithm(collective, name, Reach::kDirect);
}

int simulate_one(const Options& options, const tools::Site& site, const simulator::Cost& cost,
                 const simulator::Source& source, Reach reach) {
  const bool pictures = !options.trace.empty() || !options.svg.empty();
  const tools::Detail detail = pictures ? tools::Detail::kTimeline : tools::Detail::kCriticalPath;
  const Result<simulator::Outcome> outcome =
      tools::run(site, source, tools::message_of(options.call, site.ranks(), reach), cost, detail);
  if (!outcome.ok()) return fail(outcome.status());
  if (!options.quiet)
    command_line::print("{}", tools::report(site, options.call, source, outcome.value()));
  if (!options.trace.empty()) {
    const std::string text = simulator::to_trace_json(*outcome->timeline, source, site.graph);
    if (Status s = tools::write_file(options.trace, text); !s.ok()) return fail(s);
  }
  if (!options.svg.empty()) {
    const std::string text = simulator::to_svg(*outcome->timeline, source, site.graph);
    if (Status s = tools::write_file(options.svg, text); !s.ok()) return fail(s);
  }
  return 0;
}

// Why an algorithm is not in the table; empty: it is.
std::string left_out(const Algorithm& algorithm, const tools::Call& call, const tools::Site& site) {
  const int hosts = count_hosts(site.host_of);
  if ((algorithm.across_hosts || algorithm.puts) && hosts < 2) return "for ranks on several hosts";
  if (!algorithm.supports(site.ranks(), hosts))
    return fmt::format("not for {} ranks", site.ranks());
  if (algorithm.reach == Reach::kDirect && !algorithm.puts && site.graph.hosts > 1)
    return "ranks of other hosts do not reach the buffers";
  const double parts = tools::parts_of(algorithm, call, site);
  if (parts > tools::most_parts(algorithm))
    return fmt::format("about {:.0f} million steps and peers: too many to simulate", parts / 1e6);
  if (!algorithm.rotates && parts > tools::kMostTableParts)
    return fmt::format("about {:.0f} million steps and peers: only by --algorithm {}", parts / 1e6,
                       algorithm.name);
  return {};
}

int simulate_all(const Options& options, const tools::Site& site, const simulator::Cost& cost) {
  std::vector<tools::Row> rows;
  for (const Algorithm& algorithm : algorithms(options.call.collective)) {
    tools::Row row{std::string(algorithm.name), tools::to_word(algorithm.reach), {}, {}};
    row.why_not = left_out(algorithm, options.call, site);
    if (row.why_not.empty()) {
      const auto source = tools::source_of(algorithm, options.call, site);
      if (!source.ok()) return fail(source.status());
      Result<simulator::Outcome> outcome = tools::run(
          site, source.value(), tools::message_of(options.call, site.ranks(), algorithm.reach),
          cost, tools::Detail::kNone);
      if (!outcome.ok()) return fail(outcome.status());
      row.outcome = std::move(outcome).value();
    }
    rows.push_back(std::move(row));
  }
  if (!options.quiet) command_line::print("{}", tools::table(site, options.call, std::move(rows)));
  return 0;
}

Status check_root(const Options& options, int ranks) {
  const Collective collective = options.call.collective;
  if (options.rooted && !has_root(collective))
    return Status::error(Code::kInvalidArgument, "--root: {} has no root", to_string(collective));
  if (!has_root(collective) || options.call.root < ranks) return {};
  return Status::error(Code::kInvalidArgument, "root {} does not exist among {} ranks",
                       options.call.root, ranks);
}

// The files that are asked for can be written.
int check_files(const Options& options) {
  if (!options.trace.empty() && tools::same_file(options.trace, options.svg))
    return fail("--trace and --svg name the same file", 2);
  if (!options.trace.empty()) {
    if (const Status s = tools::check_writable(options.trace); !s.ok()) return fail(s);
  }
  if (options.svg.empty()) return 0;
  const Status s = tools::check_svg(options.svg);
  return s.ok() ? 0 : fail(s.message(), s.code() == Code::kInvalidArgument ? 2 : 1);
}

int simulate(Options options) {
  if (options.call.slice > 0 && options.call.slice < sizeof(float))
    return fail("--slice: an element has 4 bytes", 2);
  const Collective collective = options.call.collective;
  const Algorithm* algorithm = nullptr;
  if (!options.algorithm.empty()) {
    algorithm = algorithm_of(collective, options.algorithm);
    if (algorithm == nullptr) {
      return fail(fmt::format("{} has no algorithm \"{}\"; --list names all", to_string(collective),
                              options.algorithm),
                  2);
    }
    if (algorithm->reach == Reach::kDirect && options.call.slice > 0)
      return fail("--slice: direct plans move a message in one pass", 2);
  }
  const Result<simulator::Cost> cost = cost_of(options.cost);
  if (!cost.ok()) return fail(cost.status());
  std::optional<simulator::Source> given;
  if (!options.plan.empty()) {
    Result<simulator::Source> source = tools::source_of(options.plan, options.call);
    if (!source.ok()) return fail(source.status());
    given = std::move(source).value();
    if (options.ranks == 0) options.ranks = given->ranks();
  }
  if (collective == Collective::kSendRecv && options.ranks == 0) options.ranks = 2;
  const auto site =
      tools::make_site(options.from, options.hosts, options.ranks, options.found_order);
  if (!site.ok())
    return fail(site.status().message(), site.status().code() == Code::kInvalidArgument ? 2 : 1);
  const tools::Site& here = *site.value();
  if (here.ranks() > kMaxRanks) {
    return fail(fmt::format("the machine has room for {} ranks, {} are the most: --ranks",
                            here.ranks(), kMaxRanks));
  }
  if (const Status s = check_root(options, here.ranks()); !s.ok()) return fail(s.message(), 2);
  if (given) return simulate_one(options, here, cost.value(), *given, Reach::kStaged);
  if (algorithm == nullptr) return simulate_all(options, here, cost.value());
  const auto source = tools::source_of(*algorithm, options.call, here);
  if (!source.ok()) return fail(source.status());
  return simulate_one(options, here, cost.value(), source.value(), algorithm->reach);
}

void add_options(CLI::App& app, Options& options) {
  command_line::explain_well(app);
  app.add_option("collective", options.collective, "all-reduce, allgather, broadcast, ...");
  app.add_option("size", options.call.bytes, "bytes as the perf tests count them")
      ->transform(command_line::byte_size())
      ->each([&options](const std::string&) { options.sized = true; });
  CLI::Option* algorithm = app.add_option("--algorithm", options.algorithm, "this one in detail")
                               ->default_str("all of them, fastest first");
  app.add_option("--from", options.from,
                 "a description instead of this machine: NCCL or RCCL topology XML, hwloc XML, or "
                 "an hwloc synthetic text such as \"pack:2 numa:1 core:8 pu:1\"")
      ->default_str("this machine, whatever NCCL_TOPO_FILE says")
      ->check(command_line::not_empty());
  app.add_option("--hosts", options.hosts, "so many copies of it, joined by a network")
      ->capture_default_str()
      ->check(command_line::between(1, kMaxRanks));
  app.add_option("--ranks", options.ranks, "how many ranks")
      ->default_str("as stated, or one for each GPU, else core")
      ->check(command_line::between(1, kMaxRanks));
  app.add_option("--slice", options.call.slice, "of a block, what one pass moves")
      ->default_str("all")
      ->transform(command_line::byte_size());
  CLI::Option* root = app.add_option("--root", options.call.root, "where the collective has one")
                          ->capture_default_str()
                          ->check(command_line::between(0, kMaxRanks - 1))
                          ->each([&options](const std::string&) { options.rooted = true; });
  CLI::Option* chunks =
      app.add_option("--chunks", options.call.chunks, "per block of pipelined trees and chains")
          ->default_str("one for 256 KiB, at most 32")
          ->check(command_line::between(1, 4096));
  app.add_option("--plan", options.plan,
                 "a plan in JSON form, as tessera-plan writes it; instead of --algorithm, --root "
                 "and --chunks")
      ->excludes(algorithm)
      ->excludes(root)
      ->excludes(chunks);
  app.add_option("--cost", options.cost, "what ranks' own work costs, as JSON")
      ->default_str("built-in values");
  app.add_option("--trace", options.trace, "write the timeline for ui.perfetto.dev");
  app.add_option("--svg", options.svg, "draw the timeline");
  app.add_flag("--quiet", options.quiet, "print nothing but warnings");
  app.add_flag("--found-order", options.found_order,
               "number the ranks along the first ring that a search finds, as communicators take "
               "them on the machine of NCCL_TOPO_FILE");
  app.add_flag("--list", options.list, "name the algorithms, with their cost lines");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Simulates a collective on a machine that need not be here: how long it takes, which links "
      "are busy, and what it waits for."};
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  const bool named = !options.collective.empty();
  const Result<Collective> collective = tools::collective_named(options.collective);
  if (named && !collective.ok()) return fail(collective.status().message(), 2);
  if (options.list) {
    command_line::print("{}", tools::list_algorithms(named ? &collective.value() : nullptr));
    return tools::finish(0);
  }
  if (!named) return fail("which collective? --help explains, --list names them", 2);
  if (!options.sized && collective.value() != Collective::kBarrier)
    return fail("of which size? --help explains", 2);
  const bool pictures = !options.trace.empty() || !options.svg.empty();
  if (pictures && options.algorithm.empty() && options.plan.empty())
    return fail("--trace and --svg need one simulation: --algorithm or --plan", 2);
  if (const int code = check_files(options); code != 0) return code;
  options.call.collective = collective.value();
  return tools::finish(simulate(std::move(options)));
}
