#include "simulator/model.h"

#include <algorithm>

#include "plan/partition.h"

namespace tessera::simulator {

Model::Model(const Source& source, const Routes& routes, const Message& message, const Cost& cost,
             Shares& shares)
    : source_(source), routes_(routes), shares_(shares), last_(source.ranks()) {
  place_ranks(cost);
  cut_chunks(message);
}

void Model::place_ranks(const Cost& cost) {
  const topology::Graph& graph = routes_.graph();
  std::vector<uint32_t> lanes(graph.nodes.size());  // on each core
  const auto ranks = static_cast<uint32_t>(source_.ranks());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const auto node = static_cast<size_t>(routes_.node(static_cast<int>(rank)));
    costs_.push_back(graph.nodes[node].kind == topology::NodeKind::kGpu ? &cost.gpu : &cost.host);
    lanes[node] += source_.program(rank).lanes;
  }
  std::vector<int> core_of_node(graph.nodes.size(), -1);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const auto node = static_cast<size_t>(routes_.node(static_cast<int>(rank)));
    const bool shared = graph.nodes[node].kind == topology::NodeKind::kCore && lanes[node] > 1;
    if (shared && core_of_node[node] < 0) core_of_node[node] = core_count_++;
    cores_.push_back(core_of_node[node]);
  }
}

void Model::cut_chunks(const Message& message) {
  const size_t slice = message.slice == 0 ? message.count : message.slice;
  if (message.count > 0) passes_ = static_cast<uint32_t>((message.count + slice - 1) / slice);
  const size_t last = message.count - (passes_ - 1) * slice;
  const uint32_t chunks = source_.code().chunks_per_block;
  const auto cut = [&](size_t length) {
    std::vector<double> ends{0};
    for (uint32_t c = 0; c < chunks; ++c) {
      const ChunkRange range = chunk_range(length, chunks, c, chunk_unit(message.element_bytes));
      ends.push_back(ends.back() + static_cast<double>(range.length * message.element_bytes));
    }
    return ends;
  };
  ends_[0] = cut(slice);
  ends_[1] = cut(last);
}

double Model::bytes(const StepCode& step, uint32_t rank, uint32_t pass) const {
  const std::vector<double>& ends = ends_[pass + 1 == passes_ ? 1 : 0];
  const auto chunks = static_cast<uint32_t>(ends.size() - 1);
  const uint32_t first = chunks == 1 ? 0 : source_.turned_chunk(step.chunk, rank);
  const auto up_to = [&](uint32_t chunk) {  // of any number of blocks
    const uint32_t blocks = chunk / chunks;
    return ends.back() * blocks + ends[chunk % chunks];
  };
  return up_to(first + step.chunks) - up_to(first);
}

Work Model::work(const StepCode& step, uint32_t rank, uint32_t pass) {
  Work work;
  const uint32_t peers = uint32_t{step.puts} + step.gets;
  if (peers + step.copies + step.combines == 0) return work;
  work.bytes = bytes(step, rank, pass);
  if (work.bytes == 0) return work;
  const RankCost& own = cost(rank);
  double copied = step.copies * work.bytes;
  for_each_peer(step, rank, [&](uint32_t from, uint32_t to) {
    const RouteCode* way = route(from, to);
    if (way == nullptr) return;
    if (way->links == 0) {
      copied += work.bytes;
    } else {
      ++work.flows;
      if (to == rank) work.request_us = std::max(work.request_us, way->latency_us);
    }
  });
  work.local_us = copied / (own.copy_gbs * kBytesPerUs) +
                  step.combines * work.bytes / (own.reduce_gbs * kBytesPerUs);
  return work;
}

// Ranks on the same two nodes take the same way, unless it matters who is whose peer.
uint64_t Model::pair_of(uint32_t from, uint32_t to) const {
  const auto ranks = static_cast<uint64_t>(last_.size());
  const auto a = static_cast<size_t>(routes_.node(static_cast<int>(from)));
  const auto b = static_cast<size_t>(routes_.node(static_cast<int>(to)));
  const auto& nodes = graph().nodes;
  if (nodes[a].fan_out.empty() && nodes[b].fan_out.empty())
    return ranks * ranks + a * nodes.size() + b;
  return from * ranks + to;
}

const RouteCode* Model::route(uint32_t from, uint32_t to) {
  constexpr size_t kMostKept = size_t{1} << 20;
  Last& last = last_[from];
  if (last.to == to) return &found_[last.route];
  if (found_.size() >= kMostKept) {  // where all talk to all, to each of them for a short time only
    found_.clear();
    route_of_pair_.clear();
    std::fill(last_.begin(), last_.end(), Last{});
    shares_.forget_paths();
  }
  const auto [it, fresh] =
      route_of_pair_.try_emplace(pair_of(from, to), static_cast<uint32_t>(found_.size()));
  if (fresh) {
    const auto a = static_cast<int>(from), b = static_cast<int>(to);
    const Result<Route> way = routes_.route(a, b);
    if (!way.ok()) {
      if (status_.ok()) status_ = way.status();
      route_of_pair_.erase(it);
      return nullptr;
    }
    RouteCode code;
    code.latency_us = way.value().latency_us;
    code.links = static_cast<uint32_t>(way.value().links.size());
    code.path = shares_.add_path(way.value().links, routes_.node(a), routes_.node(b), a, b);
    for (const int link : way.value().links) {
      const double gbs = graph().links[static_cast<size_t>(link)].bandwidth;
      if (code.slowest >= 0 && gbs >= code.limit_gbs) continue;
      code.slowest = link;
      code.limit_gbs = gbs;
    }
    if (code.links > 0 && !(code.limit_gbs > 0)) {
      if (status_.ok()) {
        status_ = Status::error(
            Code::kInvalidArgument,
            "rank {} and rank {} are not connected: link {} of the route has no bandwidth", from,
            to, code.slowest);
      }
      route_of_pair_.erase(it);
      return nullptr;
    }
    found_.push_back(code);
  }
  last = {to, it->second};
  return &found_[it->second];
}

}  // namespace tessera::simulator
