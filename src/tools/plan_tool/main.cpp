// tessera-plan: shows, exports and verifies plans.
//
// Exit codes: 0 done; 1 the plan is faulty; 2 wrong arguments; 3 a file could not be read or
// written.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "algorithms/algorithms.h"
#include "command_line/help.h"
#include "command_line/print.h"
#include "plan/json.h"
#include "plan/limits.h"
#include "plan/printer.h"
#include "plan/verifier.h"
#include "tools/common/files.h"
#include "tools/common/layout.h"
#include "tools/common/names.h"
#include "tools/plan_tool/fused.h"

namespace {

using namespace tessera;

constexpr int kDone = 0;
constexpr int kFaulty = 1;
constexpr int kUsage = 2;
constexpr int kFile = 3;

int complain(int code, const std::string& what) {
  command_line::print(stderr, "tessera-plan: {}\n", what);
  return code;
}

const char* to_word(Reach reach) { return reach == Reach::kStaged ? "staged" : "direct"; }

int list() {
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    command_line::print("{}\n", to_string(collective));
    for (const Algorithm& algorithm : algorithms(collective)) {
      command_line::print("  {:<20} {:<7} {}\n", algorithm.name, to_word(algorithm.reach),
                          algorithm.cost);
    }
  }
  command_line::print(
      "\nS bytes, n ranks, m chunks; alpha, beta, gamma: a hop, to move a byte, to reduce one; "
      "\nhierarchical ones: h hosts of l ranks, alpha' and beta' between them\n");
  return kDone;
}

// Verifies the plan and prints it as text or JSON, or draws it.
int present(Plan built, bool json, const std::string& svg) {
  if (!svg.empty()) {
    if (const Status s = tools::check_svg(svg); !s.ok())
      return complain(s.code() == Code::kInvalidArgument ? kUsage : kFile, s.message());
  }
  const Result<VerifiedPlan> verified = verify(std::move(built));
  if (!verified.ok()) return complain(kFaulty, verified.status().message());
  const Plan& plan = verified.value().plan();
  if (!svg.empty()) {
    const Result<std::string> picture = to_svg(plan);
    if (!picture.ok()) return complain(kUsage, picture.status().message());
    const Status written = tools::write_file(svg, picture.value());
    return written.ok() ? kDone : complain(kFile, written.message());
  }
  const Status written = tools::write_file("-", json ? save_json(plan) : to_text(plan));
  return written.ok() ? kDone : complain(kFile, written.message());
}

struct ShowOptions {
  std::string algorithm, collective, svg, reach, hosts;
  AlgorithmParams params = {.ranks = 0, .root = -1, .scratch_depth = 2, .chunks = 4};
  bool json = false;
};

const Algorithm* choose(const ShowOptions& options, Collective collective) {
  for (const Reach reach : {Reach::kStaged, Reach::kDirect}) {
    if (!options.reach.empty() && options.reach != to_word(reach)) continue;
    const Algorithm* found = find_algorithm(collective, options.algorithm, reach);
    if (found != nullptr) return found;
  }
  return nullptr;
}

// Ranks and layout, of which one may follow from the other.
Status place(ShowOptions& options) {
  AlgorithmParams& params = options.params;
  if (options.hosts.empty()) return {};
  Result<std::vector<int>> layout = tools::layout_named(options.hosts);
  if (!layout.ok()) return layout.status();
  params.host_of = std::move(layout).value();
  const int ranks = static_cast<int>(params.host_of.size());
  if (params.ranks != 0 && params.ranks != ranks) {
    return Status::error(Code::kInvalidArgument, "--hosts {} places {} ranks, --ranks says {}",
                         options.hosts, ranks, params.ranks);
  }
  params.ranks = ranks;
  return {};
}

Status choose_root(AlgorithmParams& params, Collective collective) {
  if (!has_root(collective)) {
    return params.root < 0 ? Status()
                           : Status::error(Code::kInvalidArgument, "--root: {} has no root",
                                           to_string(collective));
  }
  if (params.root < 0) params.root = 0;
  if (params.root < params.ranks) return {};
  return Status::error(Code::kInvalidArgument, "root {} does not exist among {} ranks", params.root,
                       params.ranks);
}

int show(ShowOptions options) {
  const Result<Collective> named = tools::collective_named(options.collective);
  if (!named.ok()) return complain(kUsage, named.status().message());
  const Collective collective = named.value();
  const Algorithm* algorithm = choose(options, collective);
  if (algorithm == nullptr) {
    return complain(kUsage,
                    fmt::format("no algorithm \"{}\" for {}; \"tessera-plan list\" names all",
                                options.algorithm, to_string(collective)));
  }
  if (const Status placed = place(options); !placed.ok()) return complain(kUsage, placed.message());
  const int hosts = count_hosts(options.params.host_of);
  if (!algorithm->supports(options.params.ranks, hosts)) {
    return complain(kUsage, fmt::format("{} does not support {} rank(s) on {} host(s){}",
                                        options.algorithm, options.params.ranks, hosts,
                                        algorithm->across_hosts ? "; see --hosts" : ""));
  }
  if (const Status s = choose_root(options.params, collective); !s.ok())
    return complain(kUsage, s.message());
  return present(algorithm->build(options.params), options.json, options.svg);
}

int show_fused(const tools::FusedOptions& options) {
  Result<Plan> plan = tools::fused_plan_of(options);
  if (!plan.ok()) return complain(kUsage, plan.status().message());
  return present(std::move(plan).value(), options.json, options.svg);
}

int verify_file(const std::string& name) {
  const Result<std::string> text = tools::read_file(name);
  if (!text.ok()) return complain(kFile, text.status().message());
  const Result<Plan> plan = load_json(text.value());
  if (!plan.ok()) return complain(kFaulty, fmt::format("{}: {}", name, plan.status().message()));
  const Result<VerifiedPlan> verified = verify(plan.value());
  if (!verified.ok()) {
    return complain(kFaulty, fmt::format("{}: {}: {}", name, to_string(verified.status().code()),
                                         verified.status().message()));
  }
  command_line::print("{}: plan \"{}\" is a correct {} over {} rank(s)\n", name, plan.value().name,
                      to_string(plan.value().collective), plan.value().ranks);
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows, exports and verifies plans of collectives");
  app.require_subcommand(1);
  command_line::explain_well(app);
  CLI::App* list_command = app.add_subcommand("list", "Name all algorithms, with their cost lines");

  ShowOptions options;
  CLI::App* show_command =
      app.add_subcommand("show", "Print an algorithm's plan, one line per step");
  show_command->add_option("algorithm", options.algorithm, "Such as ring; see list")->required();
  show_command
      ->add_option("--collective", options.collective, "Such as all-reduce, allgather, broadcast")
      ->required();
  CLI::Option* ranks = show_command->add_option("--ranks", options.params.ranks, "How many ranks")
                           ->check(command_line::between(1, kMaxRanks));
  CLI::Option* hosts = show_command->add_option(
      "--hosts", options.hosts, "The host of each rank, 0,0,1,1, or hosts and ranks of each, 2x4");
  show_command->add_option("--root", options.params.root, "Where the collective has one")
      ->default_str("0")
      ->check(command_line::between(0, kMaxRanks - 1));
  show_command->add_option("--reach", options.reach, "How buffers are reached")
      ->default_str("staged if there is such a plan")
      ->check(CLI::IsMember({"staged", "direct"}).description("staged or direct"));
  show_command->add_option("--depth", options.params.scratch_depth, "Copies of scratch")
      ->capture_default_str()
      ->check(command_line::between(1, kMaxScratchDepth));
  show_command->add_option("--chunks", options.params.chunks, "Chunks per block of pipelines")
      ->capture_default_str()
      ->check(command_line::between(1, kMaxChunksPerBlock));
  CLI::Option* json =
      show_command->add_flag("--json", options.json, "Print the loadable JSON form");
  show_command->add_option("--svg", options.svg, "Draw the timeline into this file (- for stdout)")
      ->excludes(json);

  tools::FusedOptions fused;
  CLI::App* fused_command = tools::add_fused_command(app, fused);

  std::string file;
  CLI::App* verify_command = app.add_subcommand("verify", "Verify a plan in JSON form");
  verify_command->add_option("file", file, "The plan's file")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  if (*show_command && ranks->empty() && hosts->empty())
    return complain(kUsage, "how many ranks? give --ranks or --hosts");
  const int code = *list_command     ? list()
                   : *show_command   ? show(std::move(options))
                   : *fused_command  ? show_fused(fused)
                   : *verify_command ? verify_file(file)
                                     : kUsage;
  return tools::finish(code) == code ? code : kFile;
}
