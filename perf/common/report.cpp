#include "common/report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "command_line/print.h"
#include "common/statistics.h"

namespace tessera::perf {
namespace {

template <class... Args>
void put(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

double least_bandwidth() {
  const char* text = std::getenv("NCCL_TESTS_MIN_BW");
  return text == nullptr || *text == '\0' ? -1 : std::strtod(text, nullptr);
}

std::string memory_text(double bytes) {
  const char* units[] = {"B", "KB", "MB", "GB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 3) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : bytes < 100 ? 1 : 0, units[unit]);
}

}  // namespace

std::string fitted(double value, int width) {
  int digits = 0;  // of the integer part
  for (double power = 1; value >= power && digits < 400; power *= 10) ++digits;
  if (digits < width - 2) return fmt::format("{:{}.2f}", value, width);
  if (digits < width - 1) return fmt::format("{:{}.1f}", value, width);
  if (digits < width + 1) return fmt::format("{:{}.0f}", value, width);
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

double geometric_mean(const std::vector<Result>& results, bool in_place) {
  double logs = 0;
  int count = 0;
  for (const Result& r : results) {
    if (r.in_place != in_place || !(r.ratio() > 0)) continue;
    logs += std::log(r.ratio());
    ++count;
  }
  return count == 0 ? NAN : std::exp(logs / count);
}

void Report::start(const std::vector<DeviceLine>& devices) {
  int library = 0;
  require(ncclGetVersion(&library));
  const Options& o = options_;
  put("# nccl-tests version 2.19.6 nccl-headers={} nccl-library={}\n", NCCL_VERSION_CODE, library);
  put("# Collective test starting: {}\n", program_);
  const bool factor = o.step_factor > 1;
  put("# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
      "iters: {} "
      "validation: {} graph: {} unalign: {}\n",
      o.threads, o.gpus, o.min_bytes, o.max_bytes, factor ? o.step_factor : o.step_bytes,
      factor ? "factor" : "bytes", o.warmup, o.iterations, o.aggregate, o.check, o.graph,
      o.unalign);
  if (o.blocking == 1)
    put("# Blocking Enabled: wait for completion and barrier after each collective \n");
  if (o.blocking > 1)
    put("# Blocking Enabled: wait for completion after each collective (no barrier) \n");
  if (o.per_iteration) put("# Per-Iteration Report: i_* uses the maximum over processes\n");
  if (o.parallel_init)
    put("# Parallel Init Enabled: threads call into NcclInitRank concurrently \n");
  if (o.adaptive) {
    put("# Adaptive: medians of batches of about 2 ms{}\n",
        o.baseline_mpi
            ? ", alternating with the MPI baseline; ratio = mpi / ours, > 1: ours is faster"
            : "");
  }
  put("#\n# Using devices\n");
  for (const DeviceLine& d : devices) {
    put("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [0000:00:00] {}\n", d.rank, d.group,
        d.pid, d.host, d.device, d.name);
  }
  if (limits_ != nullptr) put("#\n{}", limits_->describe());
  const std::string notes = collective_.notes(ranks_);
  if (!notes.empty()) put("#\n{}", notes);
}

void Report::table_header() {
  const bool samples = options_.per_iteration;
  const std::string_view sample_names = samples ? "    i_min    i_max    i_p99    i_cv%" : "";
  const std::string_view sample_units = samples ? "     (us)     (us)     (us)      (%)" : "";
  std::string extra, extra_units;
  if (options_.timestamps) {
    extra += fmt::format("{:>21}", "timestamp");
    extra_units += fmt::format("{:>21}", "%Y-%m-%d %H:%M:%S");
  }
  if (options_.baseline_mpi) {
    extra += "  mpi(us)   ratio  mpi(us)   ratio";
    extra_units += fmt::format("{:>17}{:>17}", "(out-of-place)", "(in-place)");
  }
  if (limits_ != nullptr) {
    extra += "  %bound  %bound";
    extra_units += fmt::format("{:>8}{:>8}", "(oop)", "(ip)");
  }
  const std::string_view time = options_.cpu_time ? "cputime" : "time";
  put("#\n");
  put("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:^{}}  {:^{}}\n", "", "", "", "", "", "out-of-place",
      31 + sample_names.size(), "in-place", 31 + sample_names.size());
  put("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}{}  {:>7}  {:>6}  {:>6}  "
      "{:>6}{} {}\n",
      "size", "count", "type", "redop", "root", time, "algbw", "busbw", "#wrong", sample_names,
      time, "algbw", "busbw", "#wrong", sample_names, extra);
  put("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}{}  {:>7}  {:>6}  {:>6}  "
      "{:>6}{} {}\n",
      "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", sample_units, "(us)",
      "(GB/s)", "(GB/s)", "", sample_units, extra_units);
}

void Report::row_start(const Job& job, const Counts& counts) {
  row_begin_ = results_.size();
  put("{:12}  {:12}  {:>8}  {:>6}  {:6}", std::max(counts.send, counts.recv) * job.type->size,
      counts.param, job.type->name, job.op == nullptr ? "none" : job.op->name, job.root);
}

void Report::placement(const Job& job, const Counts& counts, bool in_place, const Point& point) {
  Result result{job, in_place, std::max(counts.send, counts.recv) * job.type->size, counts.param,
                point};
  result.alg_bandwidth =
      collective_.base_bytes(counts, job.type->size, ranks_) / 1e9 / std::max(point.seconds, 1e-12);
  result.bus_bandwidth = result.alg_bandwidth * collective_.bus_factor(ranks_);
  if (limits_ != nullptr) {
    result.bound_seconds = limits_->bound_seconds(
        collective_.traffic(counts, job.type->size, ranks_), ranks_, in_place);
  }
  put("  {:>7}  {:>6}  {:>6}", fitted(point.seconds * 1e6, 7), fitted(result.alg_bandwidth, 6),
      fitted(result.bus_bandwidth, 6));
  if (point.wrong < 0)
    put("    N/A");
  else
    put("  {:>6}", fmt::format("{:g}", point.wrong));
  if (options_.per_iteration) {
    const SampleStatistics s = statistics(point.samples, options_.skip_samples);
    put("  {}  {}  {}  {}", fitted(s.min * 1e6, 7), fitted(s.max * 1e6, 7), fitted(s.p99 * 1e6, 7),
        fitted(s.average > 0 ? s.deviation / s.average * 100 : 0, 7));
  }
  failed_points_ += point.wrong > 0;
  results_.push_back(std::move(result));
}

void Report::row_end() {
  if (options_.timestamps) put("{:>21}", time_stamp());
  for (size_t i = row_begin_; options_.baseline_mpi && i < results_.size(); ++i) {
    const Result& r = results_[i];
    if (std::isnan(r.point.baseline_seconds))
      put("  {:>7}  {:>6}", "N/A", "N/A");
    else
      put("  {}  {}", fitted(r.point.baseline_seconds * 1e6, 7), fitted(r.ratio(), 6));
  }
  for (size_t i = row_begin_; limits_ != nullptr && i < results_.size(); ++i) {
    put("  {:6.1f}", 100 * results_[i].bound_seconds / results_[i].point.seconds);
  }
  put("\n");
  if (json_ != nullptr) json_->row({results_.data() + row_begin_, results_.size() - row_begin_});
}

void Report::memory_line(size_t bytes) const {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double total = static_cast<double>(usage.ru_maxrss) * 1024;
  put("# {:<20} : Buffers {} | Process peak {}\n", "Memory usage",
      memory_text(static_cast<double>(bytes)), memory_text(total));
}

void Report::geometric_means() const {
  const double means[] = {geometric_mean(results_, false), geometric_mean(results_, true)};
  const auto text = [](double mean) {
    return std::isnan(mean) ? std::string("N/A") : fmt::format("{:.3f}", mean);
  };
  put("# Geometric mean of ratio (out-of-place / in-place): {} / {}\n", text(means[0]),
      text(means[1]));
  const Result* worst = nullptr;
  for (const Result& r : results_) {
    if (r.ratio() > 0 && (worst == nullptr || r.ratio() < worst->ratio())) worst = &r;
  }
  if (worst == nullptr) return;
  put("# Worst ratio: {:.3f} at {} bytes, {} {}, {}: {:.2f} us, MPI {:.2f} us\n", worst->ratio(),
      worst->shown_bytes, worst->job.type->name,
      worst->job.op == nullptr ? "none" : worst->job.op->name,
      worst->in_place ? "in-place" : "out-of-place", worst->point.seconds * 1e6,
      worst->point.baseline_seconds * 1e6);
}

ExitCode Report::finish(size_t buffer_memory_bytes) {
  double average = 0;
  for (const Result& r : results_)
    average += r.bus_bandwidth / static_cast<double>(results_.size());
  const double least = least_bandwidth();
  const bool enough = least < 0 || average >= 0.9 * least;
  if (options_.memory_report) memory_line(buffer_memory_bytes);
  put("# {:<20} : {} {}\n", "Out of bounds values", failed_points_,
      failed_points_ == 0 ? "OK" : "FAILED");
  put("# {:<20} : {:g} {}\n", "Avg bus bandwidth", average,
      least < 0 ? ""
      : enough  ? "OK"
                : "FAILED");
  if (options_.baseline_mpi) geometric_means();
  put("#\n# Collective test concluded: {}\n", program_);
  if (json_ != nullptr) json_->summary(failed_points_, average, least < 0 ? nullptr : &enough);
  return failed_points_ == 0 && enough ? kSuccess : kWrong;
}

bool Report::write_csv(const std::string& path) const {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  command_line::print(
      file,
      "collective,ranks,size,count,type,redop,root,placement,time_us,algbw,busbw,wrong,mpi_"
      "us,ratio,bound_us\n");
  const auto number = [](double value) {
    return std::isnan(value) ? std::string() : fmt::format("{:.4f}", value);
  };
  for (const Result& r : results_) {
    command_line::print(
        file, "{},{},{},{},{},{},{},{},{:.4f},{:.4f},{:.4f},{},{},{},{}\n", collective_.name(),
        ranks_, r.shown_bytes, r.shown_count, r.job.type->name,
        r.job.op == nullptr ? "none" : r.job.op->name, r.job.root,
        r.in_place ? "in-place" : "out-of-place", r.point.seconds * 1e6, r.alg_bandwidth,
        r.bus_bandwidth, r.point.wrong < 0 ? std::string() : fmt::format("{:g}", r.point.wrong),
        number(r.point.baseline_seconds * 1e6), number(r.ratio()), number(r.bound_seconds * 1e6));
  }
  return std::fclose(file) == 0;
}

}  // namespace tessera::perf
