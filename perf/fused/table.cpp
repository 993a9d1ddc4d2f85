#include "fused/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace perf::fused {
namespace {

constexpr const char* kScatter = "reduce-scatter";
constexpr const char* kSublayer = "sub-layer";
constexpr const char* kChain = "chain";
constexpr const char* kAllReduced = "all-reduce";

void print_header() {
  std::printf("%-18s %-23s %2s %5s %5s %9s %9s %9s %9s %6s %9s %7s %9s %6s %9s %9s\n", "product",
              "what", "n", "work", "t/g", "compute", "coll", "unfused", "fused", "ratio", "ideal",
              "reached", "model", "advice", "read", "written");
}

void print(const Row& r) {
  std::printf("%-18s %-23s %2d %5s %5.2f", r.product.c_str(), r.what.c_str(), r.ranks,
              r.timer ? "timer" : "blas", r.ratio);
  r.compute > 0 ? std::printf(" %9.0f %9.0f", r.compute, r.collective)
                : std::printf(" %9s %9s", "", "");
  std::printf(" %9.0f %9.0f %6.3f", r.unfused, r.fused, r.gain());
  r.ideal > 0 ? std::printf(" %9.0f %7.3f", r.ideal, r.reached()) : std::printf(" %9s %7s", "", "");
  r.model > 0 ? std::printf(" %9.0f", r.model) : std::printf(" %9s", "");
  std::printf(" %6s", !r.judged ? "" : r.advised ? "fuse" : "do not");
  if (r.read + r.written > 0) std::printf(" %9.0f %9.0f", r.read, r.written);
  std::printf("%s\n", r.kind == Row::Kind::kFusion && r.gain() < 1 ? "  loses" : "");
}

// Where neither product nor collective is most of the time, overlap is worth most.
bool balanced(const Row& row) {
  const double share = 1 - row.compute / row.unfused;
  return row.what == kAllReduced && share >= 0.3 && share <= 0.6;
}

double geometric_mean(const std::vector<double>& values) {
  double logs = 0;
  for (const double value : values) logs += std::log(value);
  return std::exp(logs / static_cast<double>(values.size()));
}

}  // namespace

std::vector<Row> rows_of(const std::string& product, const Setup& setup, double ratio,
                         const Cell& cell) {
  const auto& us = cell.us;
  const Schedule& s = cell.schedule;
  Row common;
  common.product = product;
  common.ranks = setup.ranks;
  common.timer = setup.engine != Engine::kBlas;
  common.ratio = ratio;
  common.compute = us[kProduct];
  const auto row = [&](const char* what, Timing unfused, Timing fused, double collective,
                       double ideal, double model) {
    Row r = common;
    r.what = what;
    r.collective = collective;
    r.unfused = us[unfused];
    r.fused = us[fused];
    r.ideal = ratio > 0 ? ideal : 0;
    r.model = model;
    return r;
  };
  Row scatter = row(kScatter, kUnfused, kFused, us[kReduceScatter], s.reduce_scatter(),
                    cell.scatter.fused_us);
  scatter.read = static_cast<double>(cell.scatter.read_bytes);
  scatter.written = static_cast<double>(cell.scatter.written_bytes);
  scatter.judged = true;
  scatter.advised = cell.scatter.fuse != 0;
  const double both = us[kReduceScatter] + us[kAllGather];
  Row chain = row(kChain, kUnfusedChain, kFusedChain, both, s.chain(), cell.chain.fused_us);
  chain.judged = true;
  chain.advised = cell.chain.fuse != 0;
  Row reduced = row(kAllReduced, kUnfusedAllReduce, kFusedAllReduce, us[kAllReduce], 0,
                    cell.all_reduce.fused_us);
  reduced.judged = true;
  reduced.advised = cell.all_reduce.fuse != 0;
  std::vector<Row> rows = {scatter,
                           row(kSublayer, kUnfusedSublayer, kFusedSublayer, both, s.sublayer(),
                               cell.scatter.fused_us + us[kAllGather]),
                           reduced, chain};
  if (us[kLibrary] > 0) {
    Row library = row(kDecided, kUnfused, kLibrary, us[kReduceScatter], 0, 0);
    library.best = std::min(us[kUnfused], us[kFused]);
    library.judged = true;
    library.advised = cell.library_fuses;
    rows.push_back(library);
  }
  const auto ablation = [&](const char* what, Timing without, double model) {
    if (us[without] == 0) return;
    rows.push_back(row(what, kUnfused, without, us[kReduceScatter], 0, model));
    rows.back().kind = Row::Kind::kAblation;
  };
  ablation("no stagger", kNoStagger, cell.scatter.in_order_us);
  if (setup.map == tsrMapRing) ablation("no arrival", kNoArrival, s.without_arrival());
  ablation("no budget", kNoBudget, cell.scatter.fused_us);
  return rows;
}

void Table::add(std::vector<Row> rows) {
  if (rows_.empty()) print_header();
  for (const Row& row : rows) print(row);
  std::fflush(stdout);
  rows_.insert(rows_.end(), rows.begin(), rows.end());
}

void Table::summarize(const std::string& title,
                      const std::function<bool(const Row&)>& counts) const {
  std::vector<double> gains, reached, models;
  size_t right = 0, judged = 0;
  for (const Row& row : rows_) {
    if (!counts(row)) continue;
    gains.push_back(row.gain());
    if (row.ideal > 0) reached.push_back(row.reached());
    if (row.model > 0) models.push_back(row.model / row.fused);
    judged += row.judged ? 1 : 0;
    right += row.judged && row.right() ? 1 : 0;
  }
  if (gains.empty()) return;
  std::printf("%s: %zu cells, gain %.3f geometric mean, %.3f at most", title.c_str(), gains.size(),
              geometric_mean(gains), *std::max_element(gains.begin(), gains.end()));
  if (!reached.empty()) {
    std::printf("; of the ideal %.1f %% geometric mean, %.1f %% at least",
                100 * geometric_mean(reached),
                100 * *std::min_element(reached.begin(), reached.end()));
  }
  if (!models.empty()) std::printf("; model / measured %.3f", geometric_mean(models));
  if (judged > 0) std::printf("; advice right in %zu of %zu", right, judged);
  std::printf("\n");
}

void Table::summarize() const {
  std::vector<std::string> all;  // in the order of first use
  for (const Row& row : rows_) {
    if (std::find(all.begin(), all.end(), row.what) == all.end()) all.push_back(row.what);
  }
  for (const std::string& what : all)
    summarize(what, [&](const Row& row) { return row.what == what; });
  summarize("all-reduce, collective 30 to 60 %", balanced);
}

bool Table::check(const std::string& path) {
  const bool there = std::ifstream(path).good();
  const bool good = std::ofstream(path, std::ios::app).good();
  if (!good) std::fprintf(stderr, "%s cannot be written\n", path.c_str());
  if (good && !there) std::remove(path.c_str());
  return good;
}

bool Table::save(const std::string& path) const {
  nlohmann::json all = nlohmann::json::array();
  for (const Row& r : rows_) {
    all.push_back({{"product", r.product},
                   {"what", r.what},
                   {"ranks", r.ranks},
                   {"timer", r.timer},
                   {"ratio", r.ratio},
                   {"compute_us", r.compute},
                   {"collective_us", r.collective},
                   {"unfused_us", r.unfused},
                   {"fused_us", r.fused},
                   {"ideal_us", r.ideal},
                   {"model_us", r.model},
                   {"read_bytes", r.read},
                   {"written_bytes", r.written}});
    if (r.judged) all.back()["advice"] = r.advised ? "fuse" : "do not fuse";
  }
  std::ofstream file(path);
  file << all.dump(1) << "\n";
  if (!file.good()) std::fprintf(stderr, "%s cannot be written\n", path.c_str());
  return file.good();
}

}  // namespace perf::fused
