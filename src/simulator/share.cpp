#include "simulator/share.h"

#include <algorithm>
#include <cmath>

#include "simulator/cost.h"

namespace tessera::simulator {
namespace {

constexpr double kUnset = -1;

}  // namespace

Shares::Shares(const topology::Graph& graph, std::vector<LinkSample>* samples)
    : links_(static_cast<uint32_t>(graph.links.size())), samples_(samples) {
  resources_.resize(graph.links.size());
  for (uint32_t i = 0; i < links_; ++i) resources_[i].capacity = graph.links[i].bandwidth;
  fan_of_node_.assign(graph.nodes.size(), -1);
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].fan_out.empty()) continue;
    fan_of_node_[node] = static_cast<int>(resources_.size());
    for (int direction = 0; direction < 2; ++direction) {
      resources_.emplace_back();
      resources_.back().fan_out = &graph.nodes[node].fan_out;
      resources_.back().capacity = graph.nodes[node].fan_out[0];
    }
  }
  if (samples_ != nullptr) link_rates_.resize(links_);
}

Path Shares::add_path(const std::vector<int>& links, int from_node, int to_node, int from_rank,
                      int to_rank) {
  Path path;
  path.first = static_cast<uint32_t>(pool_.size());
  path.from = static_cast<uint32_t>(from_rank);
  path.to = static_cast<uint32_t>(to_rank);
  const int sends = fan_of_node_[static_cast<size_t>(from_node)];
  const int receives = fan_of_node_[static_cast<size_t>(to_node)];
  for (const int link : links) pool_.push_back(static_cast<uint32_t>(link));
  if (sends >= 0) pool_.push_back(static_cast<uint32_t>(sends));
  if (receives >= 0) pool_.push_back(static_cast<uint32_t>(receives) + 1);
  path.count = static_cast<uint32_t>(pool_.size()) - path.first;
  if (path.count > stride_) {  // rare: the table of places gets wider
    const size_t wider = path.count;
    std::vector<uint32_t> places(flows_.size() * wider);
    for (size_t f = 0; f < flows_.size(); ++f)
      std::copy_n(&places_[f * stride_], stride_, &places[f * wider]);
    places_ = std::move(places);
    stride_ = wider;
  }
  return path;
}

uint32_t Shares::peer_at(const Path& path, uint32_t resource) const {
  const bool receives = ((resource - links_) & 1) != 0;
  return receives ? path.from : path.to;
}

void Shares::join(Resource& resource, uint32_t peer) {
  for (auto& [known, flows] : resource.peers) {
    if (known != peer) continue;
    ++flows;
    return;
  }
  resource.peers.emplace_back(peer, 1);
  const size_t peers = std::min(resource.peers.size(), resource.fan_out->size());
  resource.capacity = (*resource.fan_out)[peers - 1];
}

void Shares::leave(Resource& resource, uint32_t peer) {
  auto it = std::find_if(resource.peers.begin(), resource.peers.end(),
                         [peer](const auto& known) { return known.first == peer; });
  if (--it->second > 0) return;
  resource.peers.erase(it);
  const size_t peers = std::min(resource.peers.size(), resource.fan_out->size());
  resource.capacity = (*resource.fan_out)[peers == 0 ? 0 : peers - 1];
}

void Shares::mark_dirty(uint32_t resource) {
  if (resources_[resource].dirty) return;
  resources_[resource].dirty = true;
  dirty_.push_back(resource);
}

void Shares::start(double now, const Path& path, uint32_t lane, double limit_gbs, double bytes) {
  uint32_t f;
  if (free_.empty()) {
    f = static_cast<uint32_t>(flows_.size());
    flows_.emplace_back();
    places_.resize(flows_.size() * stride_);
    new_rates_.resize(flows_.size(), kUnset);
  } else {
    f = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[f];
  flow.left = bytes;
  flow.rate = 0;
  flow.since = now;
  flow.limit = limit_gbs;
  flow.path = path;
  flow.lane = lane;
  flow.active = true;
  bool held = false;
  for (uint32_t i = 0; i < path.count; ++i) {
    const uint32_t r = pool_[path.first + i];
    Resource& resource = resources_[r];
    place_of(f, i) = static_cast<uint32_t>(resource.users.size());
    resource.users.push_back({f, i});
    resource.demand += flow.limit;
    if (resource.fan_out != nullptr) join(resource, peer_at(path, r));
    if (!binds(resource)) continue;
    held = true;
    mark_dirty(r);
  }
  if (!held) set_rate(now, f, flow.limit);
}

void Shares::remove_user(uint32_t f, uint32_t place) {
  Resource& resource = resources_[pool_[flows_[f].path.first + place]];
  const uint32_t at = place_of(f, place);
  const User last = resource.users.back();
  resource.users[at] = last;
  place_of(last.flow, last.place) = at;
  resource.users.pop_back();
}

bool Shares::finish(double now, uint32_t f, uint32_t version) {
  Flow& flow = flows_[f];
  if (!flow.active || (flow.version & 0xffffff) != version) return false;
  sample(now, flow, -flow.rate);
  for (uint32_t i = 0; i < flow.path.count; ++i) {
    const uint32_t r = pool_[flow.path.first + i];
    Resource& resource = resources_[r];
    if (binds(resource)) mark_dirty(r);
    remove_user(f, i);
    resource.demand = resource.users.empty() ? 0 : resource.demand - flow.limit;
    if (resource.fan_out != nullptr) leave(resource, peer_at(flow.path, r));
  }
  flow.active = false;
  ++flow.version;
  free_.push_back(f);
  return true;
}

void Shares::settle(double now) {
  if (dirty_.empty()) return;
  collect();
  fill();
  for (const uint32_t f : part_flows_) {
    flows_[f].marked = false;
    set_rate(now, f, new_rates_[f]);
    new_rates_[f] = kUnset;
  }
}

// All flows that a change of the dirty resources can reach, and the binding resources between them.
void Shares::collect() {
  part_links_.clear();
  part_flows_.clear();
  for (const uint32_t r : dirty_) {
    resources_[r].dirty = false;
    resources_[r].marked = true;
    part_links_.push_back(r);
  }
  dirty_.clear();
  for (size_t i = 0; i < part_links_.size(); ++i) {
    for (const User& user : resources_[part_links_[i]].users) {
      Flow& flow = flows_[user.flow];
      if (flow.marked) continue;
      flow.marked = true;
      part_flows_.push_back(user.flow);
      for (uint32_t k = 0; k < flow.path.count; ++k) {
        const uint32_t r = pool_[flow.path.first + k];
        if (resources_[r].marked || !binds(resources_[r])) continue;
        resources_[r].marked = true;
        part_links_.push_back(r);
      }
    }
  }
}

// Fills all flows alike until a resource is full or a flow has reached its limit; these keep what
// they have, the others go on.
void Shares::fill() {
  std::sort(part_flows_.begin(), part_flows_.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(flows_[a].limit, a) < std::pair(flows_[b].limit, b);
  });
  for (const uint32_t r : part_links_) {
    resources_[r].left = resources_[r].capacity;
    resources_[r].waiting = static_cast<uint32_t>(resources_[r].users.size());
  }
  std::vector<uint32_t> binding;
  for (const uint32_t r : part_links_) {
    if (binds(resources_[r])) binding.push_back(r);
  }
  size_t next = 0;
  while (next < part_flows_.size()) {
    double share = INFINITY;
    std::erase_if(binding, [this](uint32_t r) { return resources_[r].waiting == 0; });
    for (const uint32_t r : binding)
      share = std::min(share, std::max(resources_[r].left, 0.0) / resources_[r].waiting);
    const size_t before = next;
    for (; next < part_flows_.size(); ++next) {
      const uint32_t f = part_flows_[next];
      if (new_rates_[f] != kUnset) continue;
      if (flows_[f].limit > share) break;
      freeze(f, flows_[f].limit);
    }
    if (next != before) continue;
    const double nearly = share * (1 + 1e-12);
    for (const uint32_t r : binding) {
      if (resources_[r].waiting == 0 || resources_[r].left > nearly * resources_[r].waiting)
        continue;
      for (const User& user : resources_[r].users) {
        if (new_rates_[user.flow] == kUnset) freeze(user.flow, share);
      }
    }
  }
  for (const uint32_t r : part_links_) resources_[r].marked = false;
}

void Shares::freeze(uint32_t f, double rate) {
  new_rates_[f] = rate;
  const Path& path = flows_[f].path;
  for (uint32_t i = 0; i < path.count; ++i) {
    Resource& resource = resources_[pool_[path.first + i]];
    if (!resource.marked) continue;
    resource.left -= rate;
    --resource.waiting;
  }
}

void Shares::set_rate(double now, uint32_t f, double rate) {
  Flow& flow = flows_[f];
  if (std::abs(rate - flow.rate) <= 1e-12 * flow.limit) return;
  flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since) * kBytesPerUs);
  flow.since = now;
  sample(now, flow, rate - flow.rate);
  flow.rate = rate;
  ++flow.version;
  due_.push_back({f, flow.lane, flow.version & 0xffffff, now + flow.left / (rate * kBytesPerUs)});
}

void Shares::sample(double now, const Flow& flow, double change) {
  if (samples_ == nullptr) return;
  for (uint32_t i = 0; i < flow.path.count; ++i) {
    const uint32_t link = pool_[flow.path.first + i];
    if (link >= links_) continue;
    link_rates_[link] = std::max(0.0, link_rates_[link] + change);
    samples_->push_back({now, link, link_rates_[link]});
  }
}

}  // namespace tessera::simulator
