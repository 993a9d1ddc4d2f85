// tessera-explain: what a call would run as, every candidate with its estimate, and why the winner
// wins.
//
// Exit codes: 0 done; 1 something failed; 2 wrong arguments.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/log.h"
#include "tools/common/layout.h"
#include "tools/common/names.h"
#include "tuner/rules.h"
#include "tuner/tuner.h"

namespace {

using namespace tessera;

struct Options {
  std::string collective, hosts;
  size_t message = 0;
  int ranks = 0;
  int cores = 0;
  bool plain = false;
};

int fail(const std::string& text, int code = 1) {
  fmt::print(stderr, "tessera-explain: {}\n", text);
  return code;
}

struct Row {
  Candidate candidate;
  Estimate estimate;
  std::string why_not;
};

std::vector<Row> rows(Tuner& tuner, Collective collective, size_t block, Access access) {
  std::vector<Row> all;
  const size_t cap = low_latency_cap(collective, tuner.site());
  for (const Candidate& candidate : candidates(collective, tuner.site())) {
    Row row{candidate, tuner.estimator().estimate(candidate, block), {}};
    if (const std::string wish = tuner.excluded(candidate); !wish.empty())
      row.why_not = "excluded by " + wish;
    else if (!reaches(candidate, access))
      row.why_not = access == Access::kMapped ? "buffers are mapped" : "buffers are not mapped";
    else if (candidate.protocol == Protocol::kLowLatency && block > cap)
      row.why_not = fmt::format("blocks above {} bytes would take too much memory", cap);
    all.push_back(std::move(row));
  }
  std::sort(all.begin(), all.end(), [](const Row& a, const Row& b) {
    return std::pair(!a.why_not.empty(), a.estimate.microseconds) <
           std::pair(!b.why_not.empty(), b.estimate.microseconds);
  });
  return all;
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
                       measured
                           ? std::string("least estimated time; runs without meeting first")
                           : fmt::format("rule: blocks up to {} bytes run without meeting first",
                                         range.largest));
    eager_limit = range.largest;
  }
  Result<Candidate> bulk = tuner.bulk({collective, block, access, has_root(collective)});
  if (!bulk.ok()) return bulk.status();
  const std::string above = fmt::format("above {} bytes per block ranks meet first", eager_limit);
  return std::pair(bulk.value(),
                   measured ? above + "; of those, the least estimated time" : "rule: " + above);
}

// `layout` may be empty: one host.
Site site_of(const Options& options, std::vector<int> layout) {
  Site site;
  site.ranks = options.ranks;
  site.hosts = count_hosts(layout);
  site.cores = options.cores * site.hosts;
  site.crowded = site.ranks > site.cores;
  site.host_of = std::move(layout);
  return site;
}

// What estimates rest on.
std::string basis(const Site& site, const Profile* profile) {
  if (site.hosts > 1)
    return "several hosts: rules decide, and estimates are the model's; profiles are of one host";
  return profile != nullptr ? "profile of " + profile->about
                            : "no profile: rules decide, and estimates are the model's; "
                              "tessera-tune makes one";
}

int explain(Options options) {
  const auto collective = tools::collective_named(options.collective);
  if (!collective)
    return fail(fmt::format("no collective is called \"{}\"", options.collective), 2);
  Result<std::vector<int>> layout = std::vector<int>();
  if (!options.hosts.empty()) layout = tools::layout_named(options.hosts);
  if (!layout.ok()) return fail(layout.status().message(), 2);
  if (!layout->empty()) options.ranks = static_cast<int>(layout->size());
  Result<Config> config = Config::from_environment();
  if (!config.ok()) return fail(config.status().message());
  Result<std::shared_ptr<const Profile>> profile = find_profile(config.value());
  if (!profile.ok()) return fail(profile.status().message());
  const Site site = site_of(options, std::move(layout).value());
  Result<Tuner> tuner = Tuner::create(site, config.value(), profile.value());
  if (!tuner.ok()) return fail(tuner.status().message());
  const size_t block = std::max<size_t>(block_of(*collective, options.ranks, options.message), 4);
  const Access access = site.hosts > 1  ? Access::kNone
                        : options.plain ? Access::kSingleCopy
                                        : Access::kMapped;
  auto chosen = winner(tuner.value(), *collective, block, access, profile.value().get());
  if (!chosen.ok()) return fail(chosen.status().message());

  fmt::print("{} of {} bytes, {} ranks on {} cores{}, buffers {}: blocks of {} bytes\n",
             to_string(*collective), options.message, site.ranks, site.cores,
             site.hosts > 1 ? fmt::format(" of {} hosts", site.hosts) : "",
             site.hosts > 1  ? "beyond reach"
             : options.plain ? "of plain memory"
                             : "mapped by peers",
             block);
  fmt::print("{}\n\n", basis(site, profile.value().get()));
  fmt::print("  {:<32} {:>12}  {:<12}  {}\n", "candidate", "estimate us", "known from", "cost");
  for (const Row& row : rows(tuner.value(), *collective, block, access)) {
    fmt::print("{} {:<32} {:>12.2f}  {:<12}  {}\n", row.candidate == chosen->first ? '*' : ' ',
               describe(row.candidate), row.estimate.microseconds, to_string(row.estimate.source),
               row.why_not.empty() ? std::string(row.candidate.algorithm->cost) : row.why_not);
  }
  fmt::print("\n* {}: {}\n", describe(chosen->first), chosen->second);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  options.ranks = options.cores;
  CLI::App app{
      "Shows what a call would run as: every candidate with its estimated time, and why the winner "
      "wins."};
  app.add_option("collective", options.collective, "allreduce, allgather, broadcast, ...")
      ->required();
  app.add_option("size", options.message, "bytes as the perf tests count them: 64, 4KiB, 1MiB")
      ->required()
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--ranks", options.ranks, "ranks on this host (its cores)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--hosts", options.hosts,
                 "several hosts: the host of each rank, 0,0,1,1, or hosts and ranks of each, 2x4");
  app.add_option("--cores", options.cores, "cores of a host (this machine's)")
      ->check(CLI::Range(1, 65536));
  app.add_flag("--plain", options.plain, "buffers come from malloc, not from ncclMemAlloc");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return explain(std::move(options));
}
