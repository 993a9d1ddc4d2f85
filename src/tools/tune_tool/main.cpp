// tessera-tune: measures this machine and saves what it found as a profile, which communicators use
// from then on; or checks how well their choices do.
//
// Exit codes: 0 done; 1 something failed; 2 wrong arguments; 3 a check fell short.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "command_line/help.h"
#include "command_line/print.h"
#include "tools/common/files.h"
#include "tools/common/layout.h"
#include "tools/common/names.h"
#include "tools/common/progress.h"
#include "tools/tune_tool/busy.h"
#include "tools/tune_tool/check.h"
#include "tools/tune_tool/measure.h"
#include "tuner/profile.h"

namespace {

using namespace tessera;
using namespace tessera::tune;

struct Options {
  std::vector<int> ranks{2, 3, 4, 8};
  std::vector<std::string> collectives;
  std::string out;
  size_t largest = size_t{32} << 20;
  double seconds = 0;  // 0: as long as it takes
  bool check = false;
};

constexpr size_t kSmallest = 8;    // bytes of a message
constexpr double kUnhurried = 32;  // seconds of batches that count, if all are measured
constexpr size_t kMostLargest = size_t{1} << 40;

constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kReduceScatter,
                               Collective::kAllGather, Collective::kAllToAll,
                               Collective::kBroadcast, Collective::kReduce,
                               Collective::kGather,    Collective::kScatter};

Result<std::vector<Collective>> chosen(const std::vector<std::string>& names) {
  std::vector<Collective> result;
  for (const Collective collective : kAll) {
    if (names.empty()) result.push_back(collective);
  }
  for (const std::string& name : names) {
    const Result<Collective> found = tools::collective_named(name, kAll);
    if (!found.ok()) return found.status();
    if (std::find(result.begin(), result.end(), found.value()) == result.end())
      result.push_back(found.value());
  }
  return result;
}

// Powers of 4 from 8 bytes, as the perf comparison has them; the same blocks once.
std::vector<size_t> blocks(Collective collective, int ranks, size_t largest) {
  std::vector<size_t> result;
  for (size_t total = kSmallest; total <= largest; total *= 4) {
    const size_t block = block_of(collective, ranks, total);
    if (block > 0 && (result.empty() || block > result.back())) result.push_back(block);
  }
  return result;
}

struct Round {
  int ranks;
  Agenda agenda;
};

// All candidates, each staged one followed by the same in other slices, which are timed with blocks
// for which these make a difference, up to many slices: beyond, each more takes as long as the last.
void add_candidates(Agenda& agenda, const Site& site) {
  constexpr size_t kManySlices = 64;
  for (const Candidate& candidate : candidates(agenda.collective, site)) {
    agenda.candidates.push_back(candidate);
    agenda.spans.push_back({});
    for (const Candidate& other : other_slices(candidate, site, agenda.config)) {
      const size_t slice = one_pass_up_to(other, site, agenda.config);
      if (agenda.block_bytes.back() <= slice) continue;
      agenda.candidates.push_back(other);
      agenda.spans.push_back({slice + 1, kManySlices * slice});
    }
  }
}

// Most times that may be measured.
size_t cells(const Agenda& agenda) {
  size_t count = 0;
  for (const Span& span : agenda.spans) {
    count += static_cast<size_t>(
        std::count_if(agenda.block_bytes.begin(), agenda.block_bytes.end(),
                      [&](size_t block_bytes) { return span.contains(block_bytes); }));
  }
  return count;
}

// What is to be measured, the longest calls first: something, or an error.
Result<std::vector<Round>> rounds(const Options& options, const Config& config) {
  std::vector<Round> all;
  const Result<std::vector<Collective>> collectives = chosen(options.collectives);
  if (!collectives.ok()) return collectives.status();
  const int cores = tools::usable_cores();
  for (const int ranks : std::set<int>(options.ranks.begin(), options.ranks.end())) {
    for (const Collective collective : collectives.value()) {
      Agenda agenda;
      agenda.collective = collective;
      agenda.block_bytes = blocks(collective, ranks, options.largest);
      agenda.config = config;
      if (agenda.block_bytes.empty()) continue;
      add_candidates(agenda, {ranks, ranks > cores, cores});
      all.push_back({ranks, std::move(agenda)});
    }
  }
  if (all.empty()) {
    return Status::error(Code::kInvalidArgument,
                         "--largest {}: nothing to measure; messages are {} bytes and more, shared "
                         "out among the ranks",
                         options.largest, kSmallest);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Round& a, const Round& b) { return a.ranks > b.ranks; });
  return all;
}

using Clock = std::chrono::steady_clock;

// Gives round i its share of the time that is left. Calls take longer with more ranks, about as the
// bytes that move. What took longer than its share is made up for by those that follow.
void share_out(std::vector<Round>& all, size_t i, Clock::time_point end) {
  const auto weight = [](const Round& round) {
    return static_cast<double>(cells(round.agenda)) * round.ranks;
  };
  double left = 0;
  for (size_t j = i; j < all.size(); ++j) left += weight(all[j]);
  const Clock::time_point now = Clock::now();
  const double share = weight(all[i]) / left;
  all[i].agenda.until = now + std::chrono::duration_cast<Clock::duration>(share * (end - now));
}

int fail(const Status& status) {
  command_line::print(stderr, "tessera-tune: {}\n", status.message());
  return status.code() == Code::kInvalidArgument ? 2 : 1;
}

// Where the profile goes. Known to be writable before a minute is spent; missing folders are made.
Result<std::string> target(const Options& options, const Config& config) {
  const std::string path = options.out.empty() ? profile_path(config.cache_home) : options.out;
  if (path.empty()) return Status(Code::kInvalidUsage, "no home folder; use --out FILE");
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) return Status::error(Code::kSystem, "profile {}: {}", path, error.message());
  if (Status s = tools::check_writable(path); !s.ok()) return s;
  return path;
}

// The round's times; shows how far the number-th of so many is.
Result<std::vector<double>> timed(Round& round, tools::Progress& progress, const char* doing,
                                  size_t number, size_t rounds) {
  return Team::run(
      round.ranks, [&](Seat& seat) { return measure(seat, round.agenda); },
      [&](double share) {
        progress.show("{}: {:3.0f} %  {}, {} ranks", doing,
                      100 * (static_cast<double>(number) + share) / static_cast<double>(rounds),
                      to_string(round.agenda.collective), round.ranks);
      });
}

// Returns how many sizes there was no time for.
size_t add_samples(Profile& profile, const Round& round, const std::vector<double>& times) {
  const size_t columns = round.agenda.candidates.size();
  size_t left_out = 0;
  for (size_t size = 0; size < round.agenda.block_bytes.size(); ++size) {
    const size_t before = profile.samples.size();
    for (size_t i = 0; i < columns; ++i) {
      const Candidate& candidate = round.agenda.candidates[i];
      if (times[size * columns + i] <= 0) continue;
      profile.samples.push_back({round.agenda.collective, candidate.protocol,
                                 std::string(candidate.algorithm->name), round.ranks,
                                 round.agenda.block_bytes[size], times[size * columns + i],
                                 candidate.slot_bytes});
    }
    left_out += profile.samples.size() == before ? 1 : 0;
  }
  return left_out;
}

Clock::time_point end_of(const Options& options, Clock::time_point start) {
  return start + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(options.seconds));
}

int make_profile(const Options& options, const Config& config) {
  const auto start = Clock::now();
  Result<std::vector<Round>> agendas = rounds(options, config);
  if (!agendas.ok()) return fail(agendas.status());
  std::vector<Round>& all = agendas.value();
  const Result<std::string> path = target(options, config);
  if (!path.ok()) return fail(path.status());
  warn_if_disturbed(tools::usable_cores());
  size_t most = 0;
  for (const Round& round : all) most += cells(round.agenda);
  // Where no time is given, what a machine of some cores does in about a minute.
  const double batch = kUnhurried * 1e6 / static_cast<double>(most) / 5;
  Profile profile{machine_fingerprint(), machine_in_words(), {}};
  size_t sizes = 0, left_out = 0;
  tools::Progress progress(std::chrono::milliseconds(0));
  for (size_t i = 0; i < all.size(); ++i) {
    Agenda& agenda = all[i].agenda;
    agenda.batch_us = batch;
    if (options.seconds > 0) share_out(all, i, end_of(options, start));
    agenda.rounds = 5;  // short ones: a disturbance spoils one, and the median does not see it
    Result<std::vector<double>> times = timed(all[i], progress, "measuring", i, all.size());
    if (!times.ok()) return fail(times.status());
    left_out += add_samples(profile, all[i], times.value());
    sizes += agenda.block_bytes.size();
  }
  if (profile.samples.empty())
    return fail(
        Status::error(Code::kSystem, "no time was measured; {} stays as it was", path.value()));
  if (Status s = save_profile(profile, path.value()); !s.ok()) return fail(s);
  const std::chrono::duration<double> took = Clock::now() - start;
  command_line::print("{}\n{} times measured in {:.0f} s, saved as {}\n", profile.about,
                      profile.samples.size(), took.count(), path.value());
  if (left_out > 0) {
    command_line::print(
        "{} of {} sizes were left out for want of time, the largest; beyond four times what was "
        "measured of a collective, rules decide\n",
        left_out, sizes);
  }
  return 0;
}

int check_choices(const Options& options, const Config& config) {
  const auto start = Clock::now();
  Result<std::vector<Round>> agendas = rounds(options, config);
  if (!agendas.ok()) return fail(agendas.status());
  std::vector<Round>& all = agendas.value();
  Result<std::shared_ptr<const Profile>> profile = find_profile(config);
  if (!profile.ok()) return fail(profile.status());
  command_line::print("# {}: {}\n", profile.value() ? "profile of" : "no profile, rules only, on",
                      machine_in_words());
  warn_if_disturbed(tools::usable_cores());
  Report report;
  tools::Progress progress(std::chrono::milliseconds(0));
  for (size_t i = 0; i < all.size(); ++i) {
    Agenda& agenda = all[i].agenda;
    agenda.automatic = true;
    agenda.rounds = 5;
    if (options.seconds > 0) share_out(all, i, end_of(options, start));
    Result<std::vector<double>> times = timed(all[i], progress, "checking", i, all.size());
    if (!times.ok()) return fail(times.status());
    if (Status s = report.add(all[i].ranks, agenda, times.value(), profile.value()); !s.ok())
      return fail(s);
  }
  return report.finish() ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Measures how fast this machine runs each collective with each algorithm, and saves a "
      "profile that communicators choose by from then on."};
  command_line::explain_well(app);
  app.add_option("--ranks", options.ranks, "rank counts to measure")
      ->default_str("2 3 4 8")
      ->check(command_line::between(2, Team::kMostRanks));
  app.add_option("--collectives", options.collectives,
                 "which: all-reduce reduce-scatter all-gather all-to-all broadcast reduce gather "
                 "scatter")
      ->default_str("all");
  app.add_option("--out", options.out, "file of the profile; folders that are missing are made")
      ->default_str("this machine's in the user's cache folder");
  app.add_option("--largest", options.largest, "bytes of the largest message")
      ->default_str("32MiB")
      ->transform(command_line::byte_size())
      ->check(CLI::Range(size_t{0}, kMostLargest).description(""));
  app.add_option("--seconds", options.seconds,
                 "how long in all, start of processes and communicators included; what does not "
                 "fit is left out, the largest messages first")
      ->default_str("about a minute")
      ->check(command_line::between(1.0, 3600.0));
  app.add_flag("--check", options.check,
               "measure all candidates beside what is chosen automatically, and print how good the "
               "choices and the estimates are; saves nothing. Exit code 3: not good enough");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }

  Result<Config> config = Config::from_environment();
  if (!config.ok()) return fail(config.status());
  log::configure(config.value().debug, config.value().debug_file);
  return tools::finish(options.check ? check_choices(options, config.value())
                                     : make_profile(options, config.value()));
}
