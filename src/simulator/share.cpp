#include "simulator/share.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "simulator/cost.h"

namespace tessera::simulator {
namespace {

constexpr double kUnset = -1;
constexpr double kNearly = 1e-12;  // of a rate: rounding
constexpr int kNarrowRounds = 8;   // then all that a link connects is taken in

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
      fans_.push_back({&graph.nodes[node].fan_out, {}});
      resources_.emplace_back();
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
    for (std::vector<uint32_t>* table : {&taken_, &places_}) {
      std::vector<uint32_t> copy(flows_.size() * wider);
      for (size_t f = 0; f < flows_.size(); ++f)
        std::copy_n(&(*table)[f * stride_], stride_, &copy[f * wider]);
      *table = std::move(copy);
    }
    stride_ = wider;
  }
  return path;
}

uint32_t Shares::peer_at(const Path& path, uint32_t resource) const {
  const bool receives = ((resource - links_) & 1) != 0;
  return receives ? path.from : path.to;
}

void Shares::join(uint32_t resource, uint32_t peer) {
  Fan& fan = fans_[resource - links_];
  for (auto& [known, flows] : fan.peers) {
    if (known != peer) continue;
    ++flows;
    return;
  }
  fan.peers.emplace_back(peer, 1);
  const size_t peers = std::min(fan.peers.size(), fan.table->size());
  resources_[resource].capacity = (*fan.table)[peers - 1];
}

void Shares::leave(uint32_t resource, uint32_t peer) {
  Fan& fan = fans_[resource - links_];
  auto it = std::find_if(fan.peers.begin(), fan.peers.end(),
                         [peer](const auto& known) { return known.first == peer; });
  if (--it->second > 0) return;
  fan.peers.erase(it);
  const size_t peers = std::min(fan.peers.size(), fan.table->size());
  resources_[resource].capacity = (*fan.table)[peers == 0 ? 0 : peers - 1];
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
    taken_.resize(flows_.size() * stride_);
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
  flow.bottleneck = kNone;
  flow.active = true;
  bool held = false;
  for (uint32_t i = 0; i < path.count; ++i) {
    const uint32_t r = pool_[path.first + i];
    Resource& resource = resources_[r];
    taken_[f * stride_ + i] = r;
    place_of(f, i) = static_cast<uint32_t>(resource.users.size());
    resource.users.push_back({f, i});
    resource.demand += flow.limit;
    if (r >= links_) join(r, peer_at(path, r));
    if (!binds(resource)) continue;
    held = true;
    mark_dirty(r);
  }
  if (!held) set_rate(now, f, flow.limit);
}

void Shares::remove_user(uint32_t f, uint32_t place) {
  Resource& resource = resources_[resource_at(f, place)];
  const uint32_t at = place_of(f, place);
  const User last = resource.users.back();
  resource.users[at] = last;
  place_of(last.flow, last.place) = at;
  resource.users.pop_back();
}

bool Shares::finish(double now, uint32_t f, uint32_t version) {
  Flow& flow = flows_[f];
  if (!flow.active || (flow.version & 0xffffff) != version) return false;
  sample(now, f, -flow.rate);
  for (uint32_t i = 0; i < flow.path.count; ++i) {
    const uint32_t r = resource_at(f, i);
    Resource& resource = resources_[r];
    if (binds(resource)) mark_dirty(r);
    remove_user(f, i);
    resource.demand = resource.users.empty() ? 0 : resource.demand - flow.limit;
    if (r >= links_) leave(r, peer_at(flow.path, r));
  }
  flow.active = false;
  ++flow.version;
  free_.push_back(f);
  return true;
}

void Shares::settle(double now) {
  if (dirty_.empty()) return;
  for (const uint32_t r : dirty_) {
    resources_[r].dirty = false;
    mark(r);
    mark_users(r);
  }
  dirty_.clear();
  for (int round = 0;; ++round) {
    collect();
    fill();
    if (!widen(round < kNarrowRounds)) break;
  }
  for (const uint32_t r : part_links_) resources_[r].marked = false;
  for (const uint32_t f : part_flows_) {
    flows_[f].marked = false;
    set_rate(now, f, new_rates_[f]);
    new_rates_[f] = kUnset;
  }
  part_links_.clear();
  part_flows_.clear();
  looked_at_ = 0;
}

void Shares::mark(uint32_t r) {
  if (resources_[r].marked) return;
  resources_[r].marked = true;
  part_links_.push_back(r);
}

void Shares::mark_users(uint32_t r) {
  for (const User& user : resources_[r].users) {
    if (flows_[user.flow].marked) continue;
    flows_[user.flow].marked = true;
    part_flows_.push_back(user.flow);
  }
}

// The binding resources of the part's flows, with what the flows outside leave of them.
void Shares::collect() {
  for (; looked_at_ < part_flows_.size(); ++looked_at_) {
    const uint32_t f = part_flows_[looked_at_];
    for (uint32_t k = 0; k < flows_[f].path.count; ++k) {
      const uint32_t r = resource_at(f, k);
      if (binds(resources_[r])) mark(r);
    }
  }
  fullest_.clear();
  for (const uint32_t r : part_links_) {
    Resource& resource = resources_[r];
    resource.left = resource.capacity;
    resource.given = INFINITY;
    resource.waiting = 0;
    for (const User& user : resource.users) {
      if (flows_[user.flow].marked) {
        ++resource.waiting;
      } else {
        resource.left -= flows_[user.flow].rate;
      }
    }
    if (binds(resource)) fullest_.emplace_back(0, r);  // its share is looked up
  }
  for (const uint32_t f : part_flows_) new_rates_[f] = kUnset;
}

// What the fullest resource has for each of its flows, at the top of the heap; none: infinite. As
// flows get what they get, the others' shares only grow.
double Shares::least_share() {
  while (!fullest_.empty()) {
    const auto [known, r] = fullest_.front();
    const Resource& resource = resources_[r];
    const double share =
        resource.waiting == 0 ? INFINITY : std::max(resource.left, 0.0) / resource.waiting;
    if (share <= known && resource.waiting > 0) return share;
    std::pop_heap(fullest_.begin(), fullest_.end(), std::greater<>());
    if (resource.waiting == 0) {
      fullest_.pop_back();
    } else {
      fullest_.back().first = share;
      std::push_heap(fullest_.begin(), fullest_.end(), std::greater<>());
    }
  }
  return INFINITY;
}

// Fills all flows of the part alike until a resource is full or a flow has reached its limit; these
// keep what they have, the others go on.
void Shares::fill() {
  std::make_heap(fullest_.begin(), fullest_.end(), std::greater<>());
  const auto later = [this](uint32_t a, uint32_t b) {
    return std::pair(flows_[a].limit, a) > std::pair(flows_[b].limit, b);
  };
  std::vector<uint32_t> by_limit = part_flows_;
  std::make_heap(by_limit.begin(), by_limit.end(), later);
  size_t open = part_flows_.size();
  while (open > 0) {
    const double share = least_share();
    bool limited = false;
    while (!by_limit.empty()) {
      const uint32_t f = by_limit.front();
      if (new_rates_[f] == kUnset) {
        if (flows_[f].limit > share) break;
        freeze(f, flows_[f].limit, kNone);
        limited = true;
        --open;
      }
      std::pop_heap(by_limit.begin(), by_limit.end(), later);
      by_limit.pop_back();
    }
    if (limited) continue;
    while (least_share() <= share * (1 + kNearly) && !fullest_.empty()) {
      Resource& full = resources_[fullest_.front().second];
      full.given = share;
      for (const User& user : full.users) {
        if (!flows_[user.flow].marked || new_rates_[user.flow] != kUnset) continue;
        freeze(user.flow, share, fullest_.front().second);
        --open;
      }
    }
  }
}

void Shares::freeze(uint32_t f, double rate, uint32_t bottleneck) {
  new_rates_[f] = rate;
  flows_[f].bottleneck = bottleneck;
  for (uint32_t i = 0; i < flows_[f].path.count; ++i) {
    Resource& resource = resources_[resource_at(f, i)];
    if (!resource.marked) continue;
    resource.left -= rate;
    --resource.waiting;
  }
}

// Takes in the flows that are wrong beside the part's new shares: those that get more of a full
// resource than it gives others, and those that it does not hold back any more. False: none.
bool Shares::widen(bool narrow) {
  const size_t before = part_flows_.size();
  for (const uint32_t r : part_links_) {
    const Resource& resource = resources_[r];
    if (!binds(resource)) continue;
    const bool full = resource.left <= resource.capacity * kNearly;
    double most = 0;
    for (const User& user : resource.users) most = std::max(most, rate_of(user.flow));
    for (const User& user : resource.users) {
      Flow& flow = flows_[user.flow];
      if (flow.marked) continue;
      const bool freed = flow.bottleneck == r && (!full || flow.rate < most * (1 - kNearly));
      if (narrow && !freed && flow.rate <= resource.given * (1 + kNearly)) continue;
      new_rates_[user.flow] = flow.rate;  // until it is shared out anew
      flow.marked = true;
      part_flows_.push_back(user.flow);
    }
  }
  return part_flows_.size() > before;
}

void Shares::set_rate(double now, uint32_t f, double rate) {
  Flow& flow = flows_[f];
  if (std::abs(rate - flow.rate) <= 1e-12 * flow.limit) return;
  flow.left = std::max(0.0, flow.left - flow.rate * (now - flow.since) * kBytesPerUs);
  flow.since = now;
  sample(now, f, rate - flow.rate);
  flow.rate = rate;
  ++flow.version;
  if (rate > 0)  // else when it gets a share
    due_.push_back({f, flow.lane, flow.version & 0xffffff, now + flow.left / (rate * kBytesPerUs)});
}

void Shares::sample(double now, uint32_t f, double change) {
  if (samples_ == nullptr) return;
  for (uint32_t i = 0; i < flows_[f].path.count; ++i) {
    const uint32_t link = resource_at(f, i);
    if (link >= links_) continue;
    link_rates_[link] = std::max(0.0, link_rates_[link] + change);
    samples_->push_back({now, link, link_rates_[link]});
  }
}

}  // namespace tessera::simulator
