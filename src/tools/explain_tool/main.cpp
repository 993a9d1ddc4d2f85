// tessera-explain: what a call would run as, every candidate with its estimate, and why the winner
// wins.
//
// Exit codes: 0 done; 1 something failed; 2 wrong arguments.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/log.h"
#include "command_line/help.h"
#include "command_line/print.h"
#include "tools/common/files.h"
#include "tools/common/names.h"
#include "tools/common/progress.h"
#include "tools/common/sizes.h"
#include "tools/explain_tool/site.h"
#include "tuner/rules.h"
#include "tuner/tuner.h"

namespace {

using namespace tessera;

struct Options {
  std::string collective;
  size_t message = 0;
  tools::Where where;
  bool plain = false;
};

int fail(const std::string& text, int code = 1) {
  command_line::print(stderr, "tessera-explain: {}\n", text);
  return code;
}

struct Row {
  Candidate candidate;
  Estimate estimate;
  std::string why_not;
};

// With the slices that it runs in.
std::string in_full(const Tuner& tuner, Candidate candidate) {
  if (candidate.protocol == Protocol::kStaged &&
      candidate.algorithm->collective != Collective::kBarrier)
    candidate.slot_bytes = tuner.choice_of_bulk(candidate).slot_bytes;
  return describe(candidate);
}

// All candidates, each followed by the same in other slices that were measured.
std::vector<Candidate> listed(const Tuner& tuner, Collective collective) {
  std::vector<Candidate> all;
  for (const Candidate& candidate : candidates(collective, tuner.site())) {
    all.push_back(candidate);
    const std::vector<Candidate> others = tuner.measured_slices(candidate);
    all.insert(all.end(), others.begin(), others.end());
  }
  return all;
}

// How ranks reach each other's buffers at the site, as communicators find out.
Access access_of(const Options& options, const Config& config, const Site& site) {
  if (!config.emulate.empty()) return Access::kNone;
  if (site.hosts == 1 && !options.plain && config.share_memory) return Access::kMapped;
  if (!config.single_copy) return Access::kNone;
  return site.hosts > 1 ? Access::kPut : Access::kSingleCopy;
}

const char* in_words(Access access) {
  constexpr const char* kWords[] = {"beyond reach", "of plain memory", "mapped by peers",
                                    "reached by puts"};
  return kWords[static_cast<int>(access)];
}

// The least estimate first; of those that are shown as equal, the one that runs.
std::vector<Row> rows(Tuner& tuner, Collective collective, size_t block, Access access,
                      const Candidate& chosen) {
  std::vector<Row> all;
  const size_t cap = low_latency_cap(collective, tuner.site());
  const std::vector<Candidate> asked = listed(tuner, collective);
  tools::Progress progress;
  for (const Candidate& candidate : asked) {
    progress.show("estimating {} of {}: {}", all.size() + 1, asked.size(), describe(candidate));
    Row row{candidate, tuner.estimator().estimate(candidate, block), {}};
    if (const std::string wish = tuner.excluded(candidate); !wish.empty())
      row.why_not = "excluded by " + wish;
    else if (!reaches(candidate, access))
      row.why_not = fmt::format("buffers are {}", in_words(access));
    else if (candidate.protocol == Protocol::kLowLatency && block > cap && candidate != chosen)
      row.why_not = fmt::format("blocks above {} bytes would take too much memory", cap);
    all.push_back(std::move(row));
  }
  const auto order = [&](const Row& row) {
    return std::tuple(!row.why_not.empty(), std::llround(row.estimate.microseconds * 100),
                      row.candidate != chosen);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Row& a, const Row& b) { return order(a) < order(b); });
  return all;
}

std::string up_to(size_t largest) {
  if (largest == std::numeric_limits<size_t>::max()) return "blocks of all sizes";
  return fmt::format("blocks up to {} bytes", largest);
}

// What the call runs as, and why.
Result<std::pair<Candidate, std::string>> winner(Tuner& tuner, Collective collective, size_t block,
                                                 Access access, const Profile* profile) {
  Result<const std::vector<Tuner::Eager>*> ranges = tuner.eager(collective);
  if (!ranges.ok()) return ranges.status();
  const bool measured = profile != nullptr && tuner.estimator().knows(collective);
  size_t eager_limit = 0;
  for (const Tuner::Eager& range : *ranges.value()) {
    if (block <= range.largest)
      return std::pair(range.candidate,
                       measured ? std::string("least estimated time; runs without meeting first")
                                : fmt::format("a rule decided, not the estimates (docs/tuning.md): "
                                              "{} run without meeting first",
                                              up_to(range.largest)));
    eager_limit = range.largest;
  }
  Result<Candidate> bulk = tuner.bulk({collective, block, access, has_root(collective)});
  if (!bulk.ok()) return bulk.status();
  const std::string above = fmt::format("above {} bytes per block ranks meet first", eager_limit);
  return std::pair(
      bulk.value(),
      above + (measured
                   ? "; of those, the least estimated time"
                   : "; which of those runs, a rule decided, not the estimates (docs/tuning.md)"));
}

// What estimates rest on.
std::string basis(const Site& site, const Profile* profile, bool elsewhere) {
  if (elsewhere)
    return "a described machine: rules decide, and estimates are the model's; profiles are of this "
           "one";
  if (site.hosts > 1)
    return "several hosts: rules decide, and estimates are the model's; profiles are of one host";
  return profile != nullptr ? "profile of " + profile->about
                            : "no profile: rules decide, and estimates are the model's; "
                              "tessera-tune makes one";
}

// What a communicator would ask besides, and is not asked here.
void notes(const Config& config) {
  if (!config.tuner_plugin.empty() && config.tuner_plugin != "none")
    command_line::print("note: communicators ask the tuner plugin {} first; it is not asked here\n",
                        config.tuner_plugin);
}

void heading(const Options& options, Collective collective, const Site& site, Access access,
             size_t block) {
  command_line::print("{} of {} bytes, {} ranks on {} cores{}, buffers {}: blocks of {} bytes\n",
                      to_string(collective), options.message, site.ranks, site.cores,
                      site.hosts > 1 ? fmt::format(" of {} hosts", site.hosts) : "",
                      in_words(access), block);
  command_line::print("{}", tools::rounding_note(collective, site.ranks, options.message, block));
}

int explain(Options options) {
  const Result<Collective> collective = tools::collective_named(options.collective);
  if (!collective.ok()) return fail(collective.status().message(), 2);
  Result<Config> config = Config::from_environment();
  if (!config.ok()) return fail(config.status().message());
  const Result<Site> asked = tools::site_of(options.where, config.value());
  if (!asked.ok())
    return fail(asked.status().message(), asked.status().code() == Code::kInvalidArgument ? 2 : 1);
  const Site& site = asked.value();
  Result<std::shared_ptr<const Profile>> profile = find_profile(config.value());
  if (!profile.ok()) return fail(profile.status().message());
  const bool elsewhere = !options.where.from.empty();
  if (elsewhere) profile = std::shared_ptr<const Profile>();
  Result<Tuner> tuner = Tuner::create(site, config.value(), profile.value());
  if (!tuner.ok()) return fail(tuner.status().message());
  const size_t block =
      std::max(tools::block_bytes(collective.value(), site.ranks, options.message), sizeof(float));
  const Access access = access_of(options, config.value(), site);
  auto chosen = winner(tuner.value(), collective.value(), block, access, profile.value().get());
  if (!chosen.ok()) return fail(chosen.status().message());

  heading(options, collective.value(), site, access, block);
  command_line::print("{}\n", basis(site, profile.value().get(), elsewhere));
  for (const std::string& line : tools::about_links(site, config.value(), elsewhere))
    command_line::print("{}\n", line);
  notes(config.value());
  command_line::print("\n");
  command_line::print("  {:<44} {:>12}  {:<12}  {}\n", "candidate", "estimate us", "known from",
                      "cost");
  for (const Row& row : rows(tuner.value(), collective.value(), block, access, chosen->first)) {
    command_line::print(
        "{} {:<44} {:>12.2f}  {:<12}  {}\n", row.candidate == chosen->first ? '*' : ' ',
        in_full(tuner.value(), row.candidate), row.estimate.microseconds,
        to_string(row.estimate.source),
        row.why_not.empty() ? std::string(row.candidate.algorithm->cost) : row.why_not);
  }
  command_line::print("\n* {}: {}\n", in_full(tuner.value(), chosen->first), chosen->second);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Shows what a call would run as: every candidate with its estimated time, and why the winner "
      "wins."};
  command_line::explain_well(app);
  app.add_option("collective", options.collective, "allreduce, allgather, broadcast, ...")
      ->required();
  app.add_option("size", options.message, "bytes as the perf tests count them")
      ->required()
      ->transform(command_line::byte_size());
  app.add_option("--from", options.where.from,
                 "hosts as a description says instead of this machine: NCCL or RCCL topology XML, "
                 "hwloc XML, or an hwloc synthetic text such as \"pack:2 numa:1 core:8 pu:1\"")
      ->default_str("NCCL_TOPO_FILE's, if it is set")
      ->check(command_line::not_empty());
  app.add_option("--ranks", options.where.ranks, "ranks on this host")
      ->default_str("one for each core, or each place described")
      ->check(command_line::between(1, tools::kMostExplainedRanks));
  app.add_option("--hosts", options.where.hosts,
                 "several hosts: the host of each rank, 0,0,1,1, or hosts and ranks of each, 2x4");
  app.add_option("--cores", options.where.cores, "cores of a host")
      ->default_str("this machine's, or those described")
      ->check(command_line::between(1, 65536));
  app.add_flag("--plain", options.plain, "buffers come from malloc, not from ncclMemAlloc");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return tools::finish(explain(std::move(options)));
}
