#include "tools/sim_tool/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/json.h"
#include "plan/verifier.h"
#include "tools/common/files.h"
#include "tools/common/progress.h"
#include "tools/common/sizes.h"
#include "tools/common/warnings.h"
#include "topology/describe.h"
#include "topology/graph_of.h"
#include "topology/search.h"
#include "tuner/candidate.h"

namespace tessera::tools {
namespace {

constexpr size_t kElementBytes = sizeof(float);
constexpr size_t kChunkBytes = 256 << 10;
constexpr int kMostChunks = 32;
constexpr int kSmallSample = 64, kLargeSample = 128;  // ranks of plans that larger ones go by
constexpr uint64_t kMostTraced = 1 << 20;             // steps of a timeline
constexpr uint64_t kMostRecorded = 1 << 26;           // steps that a critical path is found among

// Of so many ranks, on hosts as the site's are.
AlgorithmParams params_of(const Call& call, const Site& site, int ranks) {
  AlgorithmParams params;
  params.ranks = ranks;
  for (int rank = 0; rank < ranks; ++rank)
    params.host_of.push_back(site.host_of[int64_t{rank} * site.ranks() / ranks]);
  params.root = has_root(call.collective) ? call.root : -1;
  params.chunks = chunks_of(call, ranks);
  return params;
}

double parts_in(const Algorithm& algorithm, const Call& call, const Site& site, int ranks) {
  const Result<simulator::Source> source =
      simulator::Source::of(algorithm, params_of(call, site, ranks));
  if (!source.ok()) return 0;
  const simulator::PlanCode& code = source->code();
  const size_t parts =
      code.steps.size() + code.peers.size() + code.waits.size() + code.signals.size();
  return static_cast<double>(parts) * (source->compact() ? ranks : 1);
}

Status number_along_ring(const topology::Graph& graph, std::vector<int>& nodes) {
  const Result<topology::Layout> layout = topology::search(graph, nodes);
  if (!layout.ok() || layout->rings.empty()) return layout.status();
  std::vector<int> along;
  for (const int rank : layout->rings.front().order) along.push_back(nodes[rank]);
  nodes = std::move(along);
  return {};
}

}  // namespace

Result<std::unique_ptr<Site>> make_site(const std::string& from, int hosts, int ranks,
                                        bool in_order) {
  Result<topology::Described> described = topology::describe_machine(from);
  if (!described.ok()) return described.status();
  print_warnings(described->machine);
  auto site = std::make_unique<Site>();
  site->graph = topology::graph_of(described->machine);
  if (hosts > 1) site->graph = topology::replicate(site->graph, hosts);
  Result<std::vector<int>> nodes = topology::place_ranks(site->graph, ranks);
  if (!nodes.ok()) return nodes.status();
  if (Status status = topology::check_places(site->graph, nodes.value()); !status.ok())
    return status;
  if (in_order) {
    if (Status status = number_along_ring(site->graph, nodes.value()); !status.ok()) return status;
  }
  const std::string name = from.empty() ? "this machine" : from;
  site->about = fmt::format("{} ranks on {}", nodes->size(),
                            hosts > 1 ? fmt::format("{} hosts, each: {}", hosts, name) : name);
  site->notes = topology::notes_on_places(site->graph, nodes.value());
  for (const int node : nodes.value()) site->host_of.push_back(site->graph.nodes[node].host);
  site->paths = std::make_unique<topology::Paths>(site->graph);
  site->routes = std::make_unique<simulator::PathRoutes>(*site->paths, std::move(nodes).value());
  return site;
}

simulator::Message message_of(const Call& call, int ranks, Reach reach) {
  const size_t slice = reach == Reach::kDirect ? 0 : call.slice / kElementBytes;
  return {block_bytes(call.collective, ranks, call.bytes) / kElementBytes, kElementBytes, slice};
}

int chunks_of(const Call& call, int ranks) {
  if (call.chunks > 0) return call.chunks;
  const size_t block = block_bytes(call.collective, ranks, call.bytes);
  const size_t moved = call.slice == 0 ? block : std::min(block, call.slice);
  return static_cast<int>(std::clamp<size_t>(moved / kChunkBytes, 1, kMostChunks));
}

double parts_of(const Algorithm& algorithm, const Call& call, const Site& site) {
  const int ranks = site.ranks();
  if (ranks <= 2 * kLargeSample || algorithm.rotates) return parts_in(algorithm, call, site, ranks);
  Call sample = call;
  sample.chunks = chunks_of(call, ranks);
  sample.root = 0;
  const double small = parts_in(algorithm, sample, site, kSmallSample);
  const double large = parts_in(algorithm, sample, site, kLargeSample);
  if (small <= 0 || large <= 0) return 0;
  return large * std::pow(large / small, std::log2(static_cast<double>(ranks) / kLargeSample));
}

Result<simulator::Source> source_of(const Algorithm& algorithm, const Call& call,
                                    const Site& site) {
  const int ranks = site.ranks();
  if (has_root(call.collective) && call.root >= ranks) {
    return Status::error(Code::kInvalidArgument, "root {} does not exist among {} ranks", call.root,
                         ranks);
  }
  if (const double parts = parts_of(algorithm, call, site); parts > most_parts(algorithm)) {
    return Status::error(Code::kInvalidArgument,
                         "{} {} of {} ranks has about {:.0f} million steps and peers: too many to "
                         "simulate",
                         algorithm.name, to_string(call.collective), ranks, parts / 1e6);
  }
  return simulator::Source::of(algorithm, params_of(call, site, ranks));
}

Result<simulator::Source> source_of(const std::string& plan_file, const Call& call) {
  const Result<std::string> text = read_file(plan_file);
  if (!text.ok()) return text.status();
  Result<Plan> plan = load_json(text.value());
  if (!plan.ok())
    return Status::error(plan.status().code(), "{}: {}", plan_file, plan.status().message());
  if (plan->collective != call.collective) {
    return Status::error(Code::kInvalidArgument, "{}: this is a plan of {}, not of {}", plan_file,
                         to_string(plan->collective), to_string(call.collective));
  }
  const Result<VerifiedPlan> verified = verify(std::move(plan).value());
  if (!verified.ok()) {
    return Status::error(verified.status().code(), "{}: {}", plan_file,
                         verified.status().message());
  }
  return simulator::Source::of(verified.value().plan());
}

Result<simulator::Outcome> run(const Site& site, const simulator::Source& source,
                               const simulator::Message& message, const simulator::Cost& cost,
                               Detail detail) {
  const uint64_t passes =
      message.slice == 0 ? 1 : (message.count + message.slice - 1) / message.slice;
  const uint64_t steps = source.steps_per_pass() * std::max<uint64_t>(passes, 1);
  if (detail == Detail::kTimeline && steps > kMostTraced) {
    return Status::error(Code::kInvalidArgument,
                         "a timeline of {} steps is too long to look at; {} are the most", steps,
                         kMostTraced);
  }
  simulator::SimulateOptions options;
  options.trace = detail == Detail::kTimeline;
  options.critical_path = detail != Detail::kNone && steps <= kMostRecorded;
  Progress progress;
  options.progress = [&](uint64_t done) {
    progress.show("simulating {} over {}: {} steps, {:.0f} %", source.name(), site.about, steps,
                  100.0 * static_cast<double>(done) / static_cast<double>(steps));
  };
  return simulator::simulate(source, *site.routes, message, cost, options);
}

}  // namespace tessera::tools
