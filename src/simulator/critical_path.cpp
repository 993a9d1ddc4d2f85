#include "simulator/critical_path.h"

#include <algorithm>
#include <map>

namespace tessera::simulator {
namespace {

constexpr size_t kShownAtEachEnd = 8;  // steps
constexpr size_t kShownLinks = 4;

class Tracer {
 public:
  Tracer(Model& model, const Timeline& timeline) : model_(model), timeline_(timeline) {}

  CriticalPath trace(uint32_t last, double total_us) {
    if (last != kNoRecord) {
      path_.overhead_us += std::max(0.0, total_us - timeline_.steps[last].end);
      for (uint32_t at = last; at != kNoRecord; at = timeline_.steps[at].before) {
        chain_.push_back(at);
        add_step(timeline_.steps[at]);
        add_gap(timeline_.steps[at]);
      }
      std::reverse(chain_.begin(), chain_.end());
    }
    path_.steps = static_cast<uint32_t>(chain_.size());
    path_.links.assign(links_.begin(), links_.end());
    std::stable_sort(path_.links.begin(), path_.links.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    path_.text = text(total_us);
    return std::move(path_);
  }

 private:
  uint32_t rank_of(const StepRecord& record) const {
    return static_cast<uint32_t>(timeline_.lanes[record.lane].rank);
  }
  const StepCode& code_of(const StepRecord& record) const {
    const LaneOf& lane = timeline_.lanes[record.lane];
    return model_.source().step(lane.rank, lane.lane, record.step);
  }

  // Takes up to `us` off `left`.
  static double take(double& left, double us) {
    const double taken = std::clamp(us, 0.0, left);
    left -= taken;
    return taken;
  }

  void add_step(const StepRecord& record) {
    const StepCode& step = code_of(record);
    const uint32_t rank = rank_of(record);
    const Work work = model_.work(step, rank, record.pass);
    double wire = 0;
    int slowest = -1;
    model_.for_each_peer(step, rank, [&](uint32_t from, uint32_t to) {
      const RouteCode* way = model_.route(from, to);
      if (work.bytes == 0 || way == nullptr || way->links == 0) return;
      const double us = work.bytes / (model_.limit(*way, work, rank) * kBytesPerUs);
      if (us > wire) slowest = way->slowest;
      wire = std::max(wire, us);
    });
    double left = record.end - record.begin;
    path_.overhead_us += take(left, model_.cost(rank).step_us);
    path_.latency_us += take(left, 2 * work.request_us);
    const double on_wire = take(left, wire);
    path_.wire_us += on_wire;
    path_.local_us += take(left, work.local_us);
    path_.waiting_us += left;
    if (slowest >= 0) links_[slowest] += on_wire + left;
  }

  // Between the step before and this one.
  void add_gap(const StepRecord& record) {
    const RankCost& own = model_.cost(rank_of(record));
    if (record.before == kNoRecord) {
      double left = record.begin;
      path_.overhead_us += take(left, own.launch_us);
      path_.waiting_us += left;
      return;
    }
    const StepRecord& before = timeline_.steps[record.before];
    double left = record.begin - before.end;
    if (before.lane != record.lane) {
      ++path_.hops;
      const uint32_t from = rank_of(before), to = rank_of(record);
      const RouteCode* way = from == to ? nullptr : model_.route(from, to);
      if (way != nullptr) path_.latency_us += take(left, way->latency_us);
    }
    const StepCode& raised = code_of(before);
    path_.overhead_us += take(left, raised.signals * model_.cost(rank_of(before)).signal_us);
    path_.waiting_us += left;
  }

  std::string line(const StepRecord& record) const {
    const LaneOf& lane = timeline_.lanes[record.lane];
    return fmt::format("  {:12.3f} .. {:12.3f}  rank {} lane {} pass {} step {}: {}\n",
                       record.begin, record.end, lane.rank, lane.lane, record.pass, record.step,
                       model_.source().describe(lane.rank, lane.lane, record.step));
  }

  std::string text(double total_us) const {
    const auto share = [&](double us) { return total_us > 0 ? 100 * us / total_us : 0; };
    std::string out = fmt::format(
        "{:.3f} us along {} steps and {} hops between lanes: wire {:.1f}%, latency {:.1f}%, local "
        "work {:.1f}%, overhead {:.1f}%, waiting for others {:.1f}%\n",
        total_us, path_.steps, path_.hops, share(path_.wire_us), share(path_.latency_us),
        share(path_.local_us), share(path_.overhead_us), share(path_.waiting_us));
    for (size_t i = 0; i < std::min(kShownLinks, path_.links.size()); ++i) {
      out += fmt::format("  {:12.3f} us over {}\n", path_.links[i].second,
                         link_name(model_.graph(), path_.links[i].first));
    }
    if (path_.links.size() > kShownLinks)
      out += fmt::format("  and over {} more links\n", path_.links.size() - kShownLinks);
    for (size_t i = 0; i < chain_.size(); ++i) {
      if (chain_.size() > 2 * kShownAtEachEnd && i == kShownAtEachEnd) {
        out += fmt::format("  ... {} steps\n", chain_.size() - 2 * kShownAtEachEnd);
        i = chain_.size() - kShownAtEachEnd;
      }
      out += line(timeline_.steps[chain_[i]]);
    }
    return out;
  }

  Model& model_;
  const Timeline& timeline_;
  CriticalPath path_;
  std::map<int, double> links_;
  std::vector<uint32_t> chain_;
};

}  // namespace

CriticalPath trace_back(Model& model, const Timeline& timeline, uint32_t last, double total_us) {
  return Tracer(model, timeline).trace(last, total_us);
}

std::string link_name(const topology::Graph& graph, int link) {
  const topology::Link& way = graph.links[static_cast<size_t>(link)];
  const auto end = [&](int node) {
    const topology::Node& at = graph.nodes[static_cast<size_t>(node)];
    return graph.hosts > 1 && at.host >= 0 ? fmt::format("{}@{}", at.name, at.host) : at.name;
  };
  return fmt::format("{} -> {} ({})", end(way.from), end(way.to), topology::to_string(way.kind));
}

}  // namespace tessera::simulator
