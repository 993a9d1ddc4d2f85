// tessera-tune: measures this machine and saves what it found as a profile, which communicators use
// from then on; or checks how well their choices do.
//
// Exit codes: 0 done; 1 something failed; 2 wrong arguments; 3 a check fell short.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "command_line/help.h"
#include "command_line/print.h"
#include "tools/common/files.h"
#include "tools/common/layout.h"
#include "tools/common/progress.h"
#include "tools/tune_tool/busy.h"
#include "tools/tune_tool/check.h"
#include "tools/tune_tool/team.h"
#include "tools/tune_tool/tournament.h"
#include "tuner/profile.h"

namespace {

using namespace tessera;
using namespace tessera::tune;

using Clock = std::chrono::steady_clock;

struct Options {
  Selection selection;
  std::string out;
  double seconds = 0;  // 0: kTuning and kChecking, whichever it does
  bool check = false;
};

constexpr double kTuning = 55, kChecking = 120;  // seconds
constexpr size_t kMostLargest = size_t{1} << 40;

// A team of many ranks has a communicator for each candidate.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // without it: many ranks fail with a text that names the limit
}

// Who closed them would have sockets take their places, and log lines be taken for answers.
void open_standard_streams() {
  while (true) {
    const int fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO || fd < 0) {
      if (fd >= 0) close(fd);
      return;
    }
  }
}

int fail(const Status& status) {
  command_line::print(stderr, "tessera-tune: {}\n", status.message());
  return status.code() == Code::kInvalidArgument ? 2 : 1;
}

// Where the profile goes; known to be writable before a minute is spent.
Result<std::string> target(const Options& options, const Config& config) {
  const std::string path = options.out.empty() ? profile_path(config.cache_home) : options.out;
  if (path.empty()) return Status(Code::kInvalidUsage, "no home folder; use --out FILE");
  if (Status s = can_save_profile(path); !s.ok()) return s;
  return path;
}

Clock::time_point after(Clock::time_point start, double seconds) {
  return start +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Result<std::vector<Cell>> timed(const std::vector<Field>& fields, const Config& config,
                                Clock::time_point end, const char* doing) {
  tools::Progress progress(std::chrono::milliseconds(0));
  return tournament(fields, config, end, Team::start, [&](double share, const std::string& what) {
    progress.show("{}: {:3.0f} %  {}", doing, 100 * share, what);
  });
}

Profile profile_of(const std::vector<Cell>& cells, const std::vector<Field>& fields) {
  Profile profile{machine_fingerprint(), machine_in_words(), {}};
  for (const Cell& cell : cells) {
    const Field& field = fields[cell.field];
    const std::vector<double> times = settled(cell.runners, field);
    for (size_t i = 0; i < times.size(); ++i) {
      if (times[i] <= 0) continue;
      const Candidate& candidate = field.contestants[cell.runners[i].who].candidate;
      profile.samples.push_back({field.collective, candidate.protocol,
                                 std::string(candidate.algorithm->name), field.ranks,
                                 field.block_bytes[cell.size], times[i], candidate.slot_bytes});
    }
  }
  return profile;
}

// Adds what an existing profile of this machine has of collectives and rank counts that were not
// measured now. Returns how many times.
size_t keep_others(Profile& profile, const std::vector<Field>& fields, const std::string& path) {
  const Result<Profile> old = load_profile(path);
  if (!old.ok() || old.value().machine != profile.machine) return 0;  // is replaced
  const size_t before = profile.samples.size();
  for (const Sample& sample : old.value().samples) {
    const bool anew = std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
      return field.collective == sample.collective && field.ranks == sample.ranks;
    });
    if (!anew) profile.samples.push_back(sample);
  }
  return profile.samples.size() - before;
}

// Measures until then and saves the profile.
Status make_profile(const std::vector<Field>& fields, const Config& config, Clock::time_point end,
                    const std::string& path) {
  const auto start = Clock::now();
  const Result<std::vector<Cell>> cells = timed(fields, config, end, "measuring");
  if (!cells.ok()) return cells.status();
  Profile profile = profile_of(cells.value(), fields);
  const size_t measured = profile.samples.size();
  if (measured == 0)
    return Status::error(Code::kSystem, "no time was measured; {} stays as it was", path);
  const size_t kept = keep_others(profile, fields, path);
  if (Status s = save_profile(profile, path); !s.ok()) return s;
  const std::chrono::duration<double> took = Clock::now() - start;
  command_line::print("# {}\n# {} times measured in {:.0f} s, saved as {}\n", profile.about,
                      measured, took.count(), path);
  if (kept > 0)
    command_line::print("# {} times of other collectives and rank counts in that file were kept\n",
                        kept);
  const auto left_out = std::count_if(cells->begin(), cells->end(),
                                      [](const Cell& cell) { return cell.runners.empty(); });
  if (left_out > 0) {
    command_line::print(
        "# {} of {} sizes were left out for want of time, the largest or of most ranks; beyond "
        "four "
        "times what was measured of a collective, rules decide\n",
        left_out, cells->size());
  }
  return {};
}

// True if choices and estimates by the configuration's profile are good.
Result<bool> check(std::vector<Field> fields, const Config& config, Clock::time_point end) {
  const Result<std::shared_ptr<const Profile>> profile = find_profile(config);
  if (!profile.ok()) return profile.status();
  if (!profile.value())
    command_line::print("# no profile, rules only, on {}\n", machine_in_words());
  std::vector<std::vector<double>> estimates;
  for (Field& field : fields) {
    Result<std::vector<double>> of_field = judge(field, config, profile.value());
    if (!of_field.ok()) return of_field.status();
    estimates.push_back(std::move(of_field).value());
  }
  const Result<std::vector<Cell>> cells = timed(fields, config, end, "checking");
  if (!cells.ok()) return cells.status();
  Report report;
  for (const Cell& cell : cells.value())
    report.add(cell, fields[cell.field], estimates[cell.field][cell.size]);
  return report.finish();
}

// The exit code.
Result<int> run(const Options& options, Config config) {
  const auto start = Clock::now();
  Result<std::vector<Field>> all = fields(options.selection, config);
  if (!all.ok()) return all.status();
  const bool measures = !options.check || !options.out.empty();
  double seconds = options.seconds;
  if (seconds <= 0) seconds = (measures ? kTuning : 0) + (options.check ? kChecking : 0);
  warn_if_disturbed(tools::usable_cores());
  if (measures) {
    const Result<std::string> path = target(options, config);
    if (!path.ok()) return path.status();
    const double share = options.check ? kTuning / (kTuning + kChecking) : 1;
    if (Status s = make_profile(all.value(), config, after(start, share * seconds), path.value());
        !s.ok())
      return s;
    config.profile = path.value();
  }
  if (!options.check) return 0;
  const Result<bool> good = check(std::move(all).value(), config, after(start, seconds));
  if (!good.ok()) return good.status();
  return good.value() ? 0 : 3;
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
  app.add_option("--out", options.out,
                 "file of the profile; folders that are missing are made, and what it has of other "
                 "collectives and rank counts is kept")
      ->default_str("this machine's in the user's cache folder")
      ->check(
          [](const std::string& name) { return name.empty() ? "names no file" : std::string(); });
  app.add_option("--largest", options.selection.largest, "bytes of the largest message")
      ->default_str("32MiB")
      ->transform(command_line::byte_size())
      ->check(CLI::Range(size_t{0}, kMostLargest).description(""));
  app.add_option("--seconds", options.seconds,
                 "how long in all, start of processes and communicators included; what does not "
                 "fit is left out, the largest messages first")
      ->default_str("a minute, two for a check")
      ->check(command_line::between(1.0, 3600.0));
  app.add_flag("--check", options.check,
               "measure all candidates beside what is chosen automatically, and print how good the "
               "choices and the estimates are, by the profile that there is; with --out, by one "
               "that is measured and saved before. Exit code 3: not good enough");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }

  Result<Config> config = Config::from_environment();
  if (!config.ok()) return fail(config.status());
  log::configure(config.value().debug, config.value().debug_file);
  raise_descriptor_limit();
  open_standard_streams();
  const Result<int> code = run(options, std::move(config).value());
  return tools::finish(code.ok() ? code.value() : fail(code.status()));
}
