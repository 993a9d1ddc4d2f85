#include "common/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "command_line/print.h"
#include "common/plot.h"

namespace tessera::perf {
namespace {

std::string plot_of(const std::string& program, int ranks, const std::vector<Result>& results) {
  Series ours[2] = {{"out-of-place", {}, {}}, {"in-place", {}, {}}},
         theirs[2] = {{"MPI out-of-place", {}, {}}, {"MPI in-place", {}, {}}};
  Series our_bw[2] = {ours[0], ours[1]}, their_bw[2] = {theirs[0], theirs[1]};
  const auto add = [](Series& series, double x, double y) {
    series.x.push_back(x);
    series.y.push_back(y);
  };
  for (const Result& r : results) {
    const auto size = static_cast<double>(r.shown_bytes);
    add(ours[r.in_place], size, r.point.seconds * 1e6);
    add(our_bw[r.in_place], size, r.bus_bandwidth);
    if (!(r.ratio() > 0)) continue;
    add(theirs[r.in_place], size, r.point.baseline_seconds * 1e6);
    add(their_bw[r.in_place], size, r.bus_bandwidth / r.ratio());
  }
  Panel time{"Time", "size (bytes)", "time (us)", {}},
      bandwidth{"Bus bandwidth", "size (bytes)", "busbw (GB/s)", {}};
  for (const bool baseline : {false, true}) {
    for (int p = 0; p < 2; ++p) {
      const Series& t = baseline ? theirs[p] : ours[p];
      if (t.x.empty()) continue;
      time.series.push_back(t);
      bandwidth.series.push_back(baseline ? their_bw[p] : our_bw[p]);
    }
  }
  return draw(fmt::format("{}, {} ranks", program, ranks), {time, bandwidth});
}

// Why not; empty: it can.
std::string check_file(const std::string& path) {
  const bool there = access(path.c_str(), F_OK) == 0;
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) return fmt::format("{}: {}", path, std::strerror(errno));
  std::fclose(file);
  if (!there) unlink(path.c_str());
  return {};
}

}  // namespace

std::string check_files(const Options& options) {
  std::string why;
  for (const std::string* path : {&options.csv, &options.plot}) {
    if (why.empty() && !path->empty()) why = check_file(*path);
  }
  if (why.empty() && !options.json.empty()) why = JsonReport::check(options.json);
  return why.empty() ? why : "cannot be written: " + why;
}

bool write_files(const Options& options, const std::string& program, int ranks,
                 const Report& report, JsonReport* json) {
  bool all = true;
  const auto failed = [&](const char* what, const std::string& path) {
    command_line::print(stderr, "{}: the {} could not be written\n", path, what);
    all = false;
  };
  if (!options.csv.empty() && !report.write_csv(options.csv)) failed("CSV table", options.csv);
  if (!options.plot.empty()) {
    std::ofstream file(options.plot);
    file << plot_of(program, ranks, report.results());
    if (!file.flush()) failed("plot", options.plot);
  }
  if (json == nullptr) return all;
  const std::string name = json->write();
  if (name.empty())
    failed("JSON report", options.json);
  else
    command_line::print("# Wrote JSON output to {}\n", name);
  return all;
}

}  // namespace tessera::perf
