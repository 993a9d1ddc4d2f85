#include "transports/tcp/peer_dialer.h"

#include <algorithm>
#include <cstring>

namespace tessera::tcp {
namespace {

constexpr int kMostRefusals = 6;
constexpr std::chrono::milliseconds kFirstPause{100};  // doubles with each refusal
constexpr std::chrono::milliseconds kWhileUnreachable{250};
constexpr std::chrono::milliseconds kForBetterOnes{200};

const LocalAddress* in_subnet_of(std::span<const LocalAddress> local, const Endpoint& endpoint) {
  for (const LocalAddress& address : local) {
    if (address.same_subnet(endpoint)) return &address;
  }
  return nullptr;
}

const LocalAddress* find(std::span<const LocalAddress> local, const Endpoint& endpoint) {
  for (const LocalAddress& address : local) {
    if (address.endpoint.family == endpoint.family &&
        std::memcmp(address.endpoint.address, endpoint.address, sizeof endpoint.address) == 0)
      return &address;
  }
  return nullptr;
}

bool same_interface(const Endpoint& a, const Endpoint& b) {
  return std::strncmp(a.interface, b.interface, sizeof a.interface) == 0;
}

}  // namespace

PeerDialer::PeerDialer(const Self& self, int peer, std::span<const Endpoint> endpoints,
                       std::span<const LocalAddress> local, int sockets)
    : self_(self), peer_(peer), sockets_(static_cast<size_t>(sockets)), local_(local) {
  for (const Endpoint& to : endpoints.first(std::min<size_t>(endpoints.size(), kMaxEndpoints))) {
    Attempt& attempt = attempts_.emplace_back();
    attempt.way.to = to;
    if (const LocalAddress* near = in_subnet_of(local, to)) attempt.way.from = near->endpoint;
  }
  // The peer has put its best first. What is in a subnet of ours is better still.
  std::stable_sort(attempts_.begin(), attempts_.end(), [](const Attempt& a, const Attempt& b) {
    return a.way.from.has_value() > b.way.from.has_value();
  });
  if (attempts_.empty()) fail("it has no address");
}

void PeerDialer::fail(std::string why) {
  failure_ = std::move(why);
  state_ = State::kFailed;
}

void PeerDialer::collect(std::vector<Contact*>& contacts) const {
  for (const Attempt& attempt : attempts_) {
    if (attempt.call != nullptr) contacts.push_back(attempt.call.get());
  }
  // What comes after Ready are frames, which are the engine's.
  for (const auto& call : calls_) {
    if (call != nullptr && call->state() != Call::State::kReady) contacts.push_back(call.get());
  }
}

void PeerDialer::proceed(Clock::time_point now) {
  if (state_ == State::kProbing) probe(now);
  if (state_ == State::kSeating) take_seats();
}

void PeerDialer::try_address(Attempt& attempt, Clock::time_point now) {
  if (attempt.over) return;
  if (attempt.call != nullptr && attempt.call->state() == Call::State::kConnecting &&
      now >= attempt.begun + kNoAnswer) {
    attempt.call.reset();
  }
  if (attempt.call == nullptr && now >= attempt.next) {
    attempt.begun = now;
    attempt.call = std::make_unique<Call>(self_, peer_, attempt.way);
  }
  if (attempt.call == nullptr || !attempt.call->failed()) return;
  attempt.failure = attempt.call->failure();
  if (attempt.call->unreachable()) {
    attempt.next = now + kWhileUnreachable;
  } else {
    attempt.next = now + kFirstPause * (1 << attempt.refusals++);
  }
  attempt.over = attempt.call->hopeless() || attempt.refusals == kMostRefusals;
  attempt.call.reset();
}

void PeerDialer::probe(Clock::time_point now) {
  bool verified = false, undecided = false, all_over = true;
  for (Attempt& attempt : attempts_) {
    try_address(attempt, now);
    if (attempt.verified()) {
      verified = true;
    } else if (attempt.call != nullptr && !attempt.late()) {
      undecided = true;
    }
    all_over = all_over && attempt.over;
  }
  if (all_over) return fail("no address leads there");
  if (!verified) return;
  first_answer_ = std::min(first_answer_, now);
  if (!undecided || now >= first_answer_ + kForBetterOnes) choose_rails();
}

// Every further rail is at least half as fast as the best, and shares no interface with another.
void PeerDialer::choose_rails() {
  std::vector<std::unique_ptr<Call>> firsts;
  for (Attempt& attempt : attempts_) {
    if (!attempt.verified()) continue;
    const Rail rail = {attempt.way, find(local_, attempt.call->local())};
    const bool apart = std::none_of(rails_.begin(), rails_.end(), [&](const Rail& other) {
      return same_interface(rail.way.to, other.way.to) || rail.local == nullptr ||
             other.local == nullptr || same_interface(rail.local->endpoint, other.local->endpoint);
    });
    const bool fast =
        rails_.empty() ||
        (rail.way.to.speed_mbps >= rails_[0].way.to.speed_mbps / 2 && !is_loopback(rail.way.to));
    if (!apart || !fast) continue;
    rails_.push_back(rail);
    firsts.push_back(std::move(attempt.call));
  }
  attempts_.clear();
  calls_ = std::move(firsts);
  calls_.resize(std::max(sockets_, rails_.size()));
  for (size_t i = rails_.size(); i < calls_.size(); ++i) {
    calls_[i] = std::make_unique<Call>(self_, peer_, rails_[i % rails_.size()].way);
  }
  state_ = State::kSeating;
}

void PeerDialer::take_seats() {
  bool all_ready = true;
  for (size_t i = 0; i < calls_.size(); ++i) {
    Call& call = *calls_[i];
    const size_t rail = i % rails_.size();
    if (!call.failed() && call.state() == Call::State::kVerified) {
      call.take({static_cast<uint32_t>(i), static_cast<uint32_t>(calls_.size()),
                 static_cast<uint32_t>(rail), 0});
    }
    if (call.failed()) {
      return fail(fmt::format("socket {} of {} over {}: {}", i + 1, calls_.size(),
                              to_text(rails_[rail].way.to), call.failure()));
    }
    all_ready = all_ready && call.state() == Call::State::kReady;
  }
  if (all_ready) state_ = State::kDone;
}

std::string PeerDialer::report() const {
  std::vector<std::string> lines;
  if (!failure_.empty()) lines.push_back(failure_);
  for (const Attempt& attempt : attempts_) {
    std::string outcome = attempt.failure;
    if (attempt.call != nullptr) {
      outcome = attempt.call->state() == Call::State::kConnecting
                    ? "no answer"
                    : "connected, but nobody has answered the greeting";
    }
    if (attempt.verified()) outcome = "answered";
    lines.push_back(fmt::format("{}: {}", to_text(attempt.way.to), outcome));
  }
  if (state_ == State::kSeating)
    lines.push_back(fmt::format("{} answered, but not all of {} sockets are ready",
                                to_text(rails_[0].way.to), calls_.size()));
  return fmt::format("{}", fmt::join(lines, "; "));
}

std::vector<std::unique_ptr<Link>> PeerDialer::take_sockets() {
  std::vector<std::unique_ptr<Link>> links;
  for (size_t i = 0; i < calls_.size(); ++i) {
    auto link = std::make_unique<Link>();
    const size_t rail = i % rails_.size();
    link->rail = static_cast<int>(rail);
    link->route = calls_[i]->route();
    ways_.push_back({rails_[rail].way.to, calls_[i]->local()});
    link->fd = calls_[i]->release();
    links.push_back(std::move(link));
  }
  calls_.clear();
  return links;
}

}  // namespace tessera::tcp
