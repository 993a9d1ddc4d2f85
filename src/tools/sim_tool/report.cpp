#include "tools/sim_tool/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/critical_path.h"
#include "tools/common/sizes.h"
#include "topology/draw.h"

namespace tessera::tools {
namespace {

constexpr size_t kShownLinks = 5;

double bus_factor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

struct Busy {
  int link = 0;
  double share = 0;  // of the total time that it takes for its bytes
};

std::vector<Busy> busiest(const topology::Graph& graph, const simulator::Outcome& outcome) {
  std::vector<Busy> all;
  for (size_t link = 0; link < outcome.link_bytes.size(); ++link) {
    if (outcome.link_bytes[link] == 0 || outcome.total_us <= 0) continue;
    const double us =
        static_cast<double>(outcome.link_bytes[link]) / (graph.links[link].bandwidth * 1000);
    all.push_back({static_cast<int>(link), us / outcome.total_us});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Busy& a, const Busy& b) { return a.share > b.share; });
  return all;
}

std::string busy_text(const topology::Graph& graph, const Busy& busy) {
  return fmt::format("{:5.1f} %  {}, {:.4g} GB/s", 100 * busy.share,
                     simulator::link_name(graph, busy.link),
                     graph.links[static_cast<size_t>(busy.link)].bandwidth);
}

// What is simulated, and what is assumed for that.
std::string heading(const Site& site, const Call& call) {
  std::string out;
  if (call.collective == Collective::kBarrier) {
    out = fmt::format("barrier, {}\n", site.about);
  } else {
    const size_t block = block_bytes(call.collective, site.ranks(), call.bytes);
    out = fmt::format("{} of {} bytes, {}: blocks of {} bytes\n{}", to_string(call.collective),
                      call.bytes, site.about, block,
                      rounding_note(call.collective, site.ranks(), call.bytes, block));
  }
  for (const std::string& note : site.notes) out += fmt::format("note: {}\n", note);
  return out + topology::assumptions(site.graph);
}

}  // namespace

const char* to_word(Reach reach) { return reach == Reach::kStaged ? "staged" : "direct"; }

Bandwidth bandwidth_of(const Call& call, int ranks, double us) {
  if (us <= 0) return {};
  const size_t bytes =
      message_bytes(call.collective, ranks, block_bytes(call.collective, ranks, call.bytes));
  const double algorithm = static_cast<double>(bytes) / us / 1000;
  return {algorithm, algorithm * bus_factor(call.collective, ranks)};
}

std::string report(const Site& site, const Call& call, const simulator::Source& source,
                   const simulator::Outcome& outcome) {
  std::string out = heading(site, call) + "\n";
  const Bandwidth bandwidth = bandwidth_of(call, site.ranks(), outcome.total_us);
  out += fmt::format("{}: {:.3f} us in {} {}\n", source.name(), outcome.total_us, outcome.passes,
                     outcome.passes == 1 ? "pass" : "passes");
  out += fmt::format("bandwidth: algorithm {:.4g} GB/s, bus {:.4g} GB/s\n", bandwidth.algorithm,
                     bandwidth.bus);
  out += fmt::format("simulated: {} steps, {} events\n", outcome.steps, outcome.events);
  const std::vector<Busy> links = busiest(site.graph, outcome);
  out += "busiest links, and the share of the time that they need for their bytes:\n";
  for (size_t i = 0; i < std::min(kShownLinks, links.size()); ++i)
    out += "  " + busy_text(site.graph, links[i]) + "\n";
  if (links.empty()) out += "  none: nothing leaves a rank's place\n";
  if (links.size() > kShownLinks)
    out += fmt::format("  and {} more links\n", links.size() - kShownLinks);
  out += "critical path: ";
  out += outcome.critical_path.text.empty() ? "not kept for so many steps\n"
                                            : outcome.critical_path.text;
  return out;
}

std::string table(const Site& site, const Call& call, std::vector<Row> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(!a.why_not.empty(), a.outcome.total_us) <
           std::pair(!b.why_not.empty(), b.outcome.total_us);
  });
  std::string out = heading(site, call) + "\n";
  out += fmt::format("{:<20} {:<7} {:>14} {:>11} {:>11}  {}\n", "algorithm", "reach", "time us",
                     "algbw GB/s", "busbw GB/s", "busiest link");
  for (const Row& row : rows) {
    out += fmt::format("{:<20} {:<7} ", row.name, row.reach);
    if (!row.why_not.empty()) {
      out += fmt::format("{:>14}  {}\n", "-", row.why_not);
      continue;
    }
    const Bandwidth bandwidth = bandwidth_of(call, site.ranks(), row.outcome.total_us);
    const std::vector<Busy> links = busiest(site.graph, row.outcome);
    out += fmt::format("{:>14.3f} {:>11.4g} {:>11.4g}  {}\n", row.outcome.total_us,
                       bandwidth.algorithm, bandwidth.bus,
                       links.empty() ? "none" : busy_text(site.graph, links.front()));
  }
  return out;
}

std::string list_algorithms(const Collective* only) {
  std::string out;
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (only != nullptr && *only != collective) continue;
    out += fmt::format("{}\n", to_string(collective));
    for (const Algorithm& algorithm : algorithms(collective)) {
      out += fmt::format("  {:<20} {:<7} {}\n", algorithm.name, to_word(algorithm.reach),
                         algorithm.cost);
    }
  }
  return out;
}

}  // namespace tessera::tools
