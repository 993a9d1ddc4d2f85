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
#include <string>
#include <vector>

#include "base/log.h"
#include "command_line/help.h"
#include "command_line/print.h"
#include "tools/common/files.h"
#include "tools/common/layout.h"
#include "tools/common/progress.h"
#include "tools/tune_tool/busy.h"
#include "tools/tune_tool/check.h"
#include "tools/tune_tool/rounds.h"
#include "tuner/profile.h"

namespace {

using namespace tessera;
using namespace tessera::tune;

using Clock = std::chrono::steady_clock;

struct Options {
  Selection selection;
  std::string out;
  double seconds = 0;  // 0: as long as it takes
  bool check = false;
};

constexpr size_t kMostLargest = size_t{1} << 40;

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
Result<std::vector<double>> timed(const Round& round, tools::Progress& progress, const char* doing,
                                  size_t number, size_t rounds) {
  return Team::run(
      round.ranks, [&](Seat& seat) { return measure(seat, round.agenda); },
      [&](double share) {
        progress.show("{}: {:3.0f} %  {}, {} ranks", doing,
                      100 * (static_cast<double>(number) + share) / static_cast<double>(rounds),
                      to_string(round.agenda.collective), round.ranks);
      });
}

Clock::time_point end_of(const Options& options, Clock::time_point start) {
  return start + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(options.seconds));
}

// Returns how many sizes there was no time for.
size_t add_samples(Profile& profile, const Round& round, const std::vector<double>& times) {
  const size_t columns = round.agenda.candidates.size();
  size_t left_out = 0;
  for (size_t size = 0; size < round.agenda.block_bytes.size(); ++size) {
    const double* const row = &times[size * columns];
    if (std::all_of(row, row + columns, [](double time) { return time <= 0; })) ++left_out;
    for (size_t i = 0; i < columns; ++i) {
      const Candidate& candidate = round.agenda.candidates[i];
      if (row[i] <= 0) continue;
      profile.samples.push_back({round.agenda.collective, candidate.protocol,
                                 std::string(candidate.algorithm->name), round.ranks,
                                 round.agenda.block_bytes[size], row[i], candidate.slot_bytes});
    }
  }
  return left_out;
}

int make_profile(const Options& options, const Config& config) {
  const auto start = Clock::now();
  Result<std::vector<Round>> all = rounds(options.selection, config);
  if (!all.ok()) return fail(all.status());
  const Result<std::string> path = target(options, config);
  if (!path.ok()) return fail(path.status());
  warn_if_disturbed(tools::usable_cores());
  Profile profile{machine_fingerprint(), machine_in_words(), {}};
  const double batch = unhurried_batch(all.value());
  size_t sizes = 0, left_out = 0;
  tools::Progress progress(std::chrono::milliseconds(0));
  for (size_t i = 0; i < all->size(); ++i) {
    Round& round = all.value()[i];
    round.agenda.batch_us = batch;
    if (options.seconds > 0) share_out(all.value(), i, end_of(options, start));
    Result<std::vector<double>> times = timed(round, progress, "measuring", i, all->size());
    if (!times.ok()) return fail(times.status());
    left_out += add_samples(profile, round, times.value());
    sizes += round.agenda.block_bytes.size();
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

// The profile to judge by: an existing one, or one that grows just ahead of what is checked, so that
// a machine that changes its speed meanwhile is not mistaken for a bad estimate.
class Judged {
 public:
  Judged(const Options& options, const Config& config) : options_(options), config_(config) {}

  Status prepare() {
    if (!grows()) {
      Result<std::shared_ptr<const Profile>> found = find_profile(config_);
      if (found.ok()) profile_ = std::move(found).value();
      return found.status();
    }
    Result<std::string> path = target(options_, config_);
    if (path.ok()) config_.profile = std::move(path).value();
    return path.status();
  }
  bool grows() const { return !options_.out.empty(); }
  const Config& config() const { return config_; }  // of communicators that choose by it
  const std::shared_ptr<const Profile>& profile() const { return profile_; }

  // Measures the i-th of all rounds for it, in a third of that round's time.
  Status grow(const std::vector<Round>& all, size_t i, tools::Progress& progress) {
    Round round = all[i];
    Agenda& agenda = round.agenda;
    agenda.batch_us = unhurried_batch(all);
    if (agenda.until) agenda.until = Clock::now() + (*agenda.until - Clock::now()) / 3;
    Result<std::vector<double>> times = timed(round, progress, "measuring", i, all.size());
    if (!times.ok()) return times.status();
    add_samples(grown_, round, times.value());
    profile_ = std::make_shared<const Profile>(grown_);
    return save_profile(grown_, config_.profile);
  }

 private:
  const Options& options_;
  Config config_;
  Profile grown_{machine_fingerprint(), machine_in_words(), {}};
  std::shared_ptr<const Profile> profile_;
};

int check_choices(const Options& options, const Config& config) {
  const auto start = Clock::now();
  Judged judged(options, config);
  if (Status s = judged.prepare(); !s.ok()) return fail(s);
  Result<std::vector<Round>> agendas = rounds(options.selection, judged.config());
  if (!agendas.ok()) return fail(agendas.status());
  std::vector<Round>& all = agendas.value();
  command_line::print("# {}: {}\n",
                      judged.grows()     ? "measured and checked in turns"
                      : judged.profile() ? "profile of"
                                         : "no profile, rules only, on",
                      machine_in_words());
  warn_if_disturbed(tools::usable_cores());
  Report report;
  tools::Progress progress(std::chrono::milliseconds(0));
  for (size_t i = 0; i < all.size(); ++i) {
    Agenda& agenda = all[i].agenda;
    if (options.seconds > 0) share_out(all, i, end_of(options, start));
    if (judged.grows()) {
      if (Status s = judged.grow(all, i, progress); !s.ok()) return fail(s);
    }
    const Result<std::vector<double>> estimates = judge(agenda, all[i].ranks, judged.profile());
    if (!estimates.ok()) return fail(estimates.status());
    Result<std::vector<double>> times = timed(all[i], progress, "checking", i, all.size());
    if (!times.ok()) return fail(times.status());
    report.add(all[i].ranks, agenda, times.value(), estimates.value());
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
  app.add_option("--ranks", options.selection.ranks, "rank counts to measure")
      ->default_str("2 3 4 8")
      ->check(command_line::between(2, Team::kMostRanks));
  app.add_option("--collectives", options.selection.collectives,
                 "which: all-reduce reduce-scatter all-gather all-to-all broadcast reduce gather "
                 "scatter")
      ->default_str("all");
  app.add_option("--out", options.out, "file of the profile; folders that are missing are made")
      ->default_str("this machine's in the user's cache folder");
  app.add_option("--largest", options.selection.largest, "bytes of the largest message")
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
               "choices and the estimates are, by the profile that there is; with --out, one is "
               "measured and saved meanwhile. Exit code 3: not good enough");
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
