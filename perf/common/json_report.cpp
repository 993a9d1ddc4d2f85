#include "common/json_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "common/report.h"
#include "common/statistics.h"

namespace tessera::perf {
namespace {

using Json = nlohmann::ordered_json;

const char* flag(bool value) {
  return value ? "true" : "false";
}  // the format writes truth values as words

// Only variables that steer the run: an environment may hold secrets.
Json relevant_environment() {
  Json list = Json::array();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    for (const std::string_view prefix : {"NCCL_", "TESSERA_", "OMPI_MCA_", "OMPI_COMM_WORLD_"}) {
      if (text.substr(0, prefix.size()) == prefix) list.push_back(text);
    }
  }
  return list;
}

Json config_of(const Options& o) {
  Json config = {{"nthreads", o.threads},
                 {"ngpus", o.gpus},
                 {"minimum_bytes", o.min_bytes},
                 {"maximum_bytes", o.max_bytes}};
  if (o.step_factor > 1)
    config["step_factor"] = o.step_factor;
  else
    config["step_bytes"] = o.step_bytes;
  config.update(Json{{"warmup_iters", o.warmup},
                     {"iterations", o.iterations},
                     {"aggregated_iterations", o.aggregate},
                     {"validation", o.check},
                     {"graph", o.graph},
                     {"blocking_collectives", flag(o.blocking != 0)},
                     {"per_iter_timing", flag(o.per_iteration)},
                     {"parallel_init", flag(o.parallel_init)},
                     {"adaptive", flag(o.adaptive)},
                     {"buffers", o.buffers == BufferKind::kMalloc ? "malloc" : "ncclmem"}});
  return config;
}

Json number_or_null(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

Json placement_of(const Result& r, const Options& options) {
  Json body = {{options.cpu_time ? "cpu_time" : "time", r.point.seconds * 1e6},
               {"alg_bw", r.alg_bandwidth},
               {"bus_bw", r.bus_bandwidth},
               {"nwrong", r.point.wrong < 0 ? Json(nullptr) : Json(r.point.wrong)}};
  if (options.baseline_mpi) {
    body["mpi_time"] = number_or_null(r.point.baseline_seconds * 1e6);
    body["ratio"] = number_or_null(r.ratio());
  }
  if (options.limits) body["bound_time"] = number_or_null(r.bound_seconds * 1e6);
  return body;
}

Json samples_of(const Result& r, const Options& options) {
  const SampleStatistics s = statistics(r.point.samples, options.skip_samples);
  Json times = Json::array();
  for (const double sample : r.point.samples) times.push_back(sample * 1e6);
  return {{"min_us", s.min * 1e6},
          {"max_us", s.max * 1e6},
          {"avg_us", s.average * 1e6},
          {"p50_us", s.p50 * 1e6},
          {"p95_us", s.p95 * 1e6},
          {"p99_us", s.p99 * 1e6},
          {"stdev_us", s.deviation * 1e6},
          {"cv_pct", s.average > 0 ? s.deviation / s.average * 100 : 0},
          {"times_us", times}};
}

// A file that did not exist before; null: none could be made.
std::FILE* create(const std::string& wanted, std::string* name) {
  *name = wanted;
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    if (std::FILE* file = std::fopen(name->c_str(), "wx"); file != nullptr) return file;
    if (errno != EEXIST) return nullptr;
    *name = fmt::format("{}.{}", wanted, attempt);
  }
  return nullptr;
}

}  // namespace

JsonReport::JsonReport(const Options& options, int argc, char** argv) : options_(options) {
  int library = 0;
  require(ncclGetVersion(&library));
  document_["version"] = 3;
  document_["start_time"] = time_stamp();
  document_["args"] = std::vector<std::string>(argv, argv + argc);
  document_["env"] = relevant_environment();
  document_["nccl_version"] = library;
  document_["config"] = config_of(options);
  document_["devices"] = Json::array();
  document_["results"] = Json::array();
}

std::string JsonReport::check(const std::string& wanted) {
  std::string name;
  std::FILE* file = create(wanted, &name);
  if (file == nullptr) return fmt::format("{}: {}", name, std::strerror(errno));
  std::fclose(file);
  unlink(name.c_str());
  return {};
}

void JsonReport::devices(std::span<const DeviceLine> devices) {
  for (const DeviceLine& d : devices) {
    document_["devices"].push_back({{"rank", d.rank},
                                    {"group", d.group},
                                    {"pid", d.pid},
                                    {"hostname", d.host},
                                    {"device", d.device},
                                    {"device_hex", "0000:00:00"},
                                    {"device_info", d.name}});
  }
}

void JsonReport::row(std::span<const Result> placements) {
  const Result& first = placements.front();
  Json row = {{"size", first.shown_bytes},
              {"count", first.shown_count},
              {"type", first.job.type->name},
              {"redop", first.job.op == nullptr ? "none" : first.job.op->name},
              {"root", fmt::format("{:6}", first.job.root)}};
  for (const Result& r : placements) {
    const char* key = r.in_place ? "in_place" : "out_of_place";
    row[key] = placement_of(r, options_);
    if (options_.per_iteration) row[std::string(key) + "_per_iter"] = samples_of(r, options_);
  }
  row["actual_iterations"] = first.point.iterations;
  row["experiment_name"] = "";
  document_["results"].push_back(std::move(row));
}

void JsonReport::summary(int out_of_bounds, double average, const bool* bandwidth_okay) {
  document_["out_of_bounds"] = {{"count", out_of_bounds}, {"okay", flag(out_of_bounds == 0)}};
  document_["average_bus_bandwidth"] = {
      {"bandwidth", average},
      {"okay", bandwidth_okay == nullptr ? "unchecked" : flag(*bandwidth_okay)}};
}

std::string JsonReport::write() {
  document_["end_time"] = time_stamp();
  std::string name;
  std::FILE* file = create(options_.json, &name);
  if (file == nullptr) return {};
  const std::string text = document_.dump(1);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written ? name : std::string();
}

}  // namespace tessera::perf
