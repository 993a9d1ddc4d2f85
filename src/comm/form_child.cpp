// Communicators made from communicators: split and shrink.
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "comm/exchange.h"
#include "comm/form.h"

namespace tessera {
namespace {

struct ChildHello {
  std::array<uint8_t, 16> secret;  // the first member's counts
  char socket_name[sizeof Member::socket_name];
  // where the member listens, on the addresses that the parent knows; 0: not at all
  std::array<uint16_t, tcp::kMaxEndpoints> ports;
};
static_assert(sizeof(ChildHello) <= sizeof(SetupBox::payload));

bool same_address(const tcp::Endpoint& a, const tcp::Endpoint& b) {
  return a.family == b.family && a.scope == b.scope &&
         std::memcmp(a.address, b.address, sizeof a.address) == 0;
}

// At which ports the listener can be reached, by endpoint of the member.
std::array<uint16_t, tcp::kMaxEndpoints> ports_at(const tcp::Listener& listener,
                                                  const Member& member) {
  std::array<uint16_t, tcp::kMaxEndpoints> ports{};
  for (int i = 0; i < member.endpoint_count; ++i) {
    for (const tcp::Endpoint& endpoint : listener.endpoints()) {
      if (same_address(endpoint, member.endpoints[i])) ports[i] = endpoint.port;
    }
  }
  return ports;
}

// The member of a child: where it runs is known, where it listens is new.
Member child_member(const Member& in_parent, const ChildHello& hello) {
  Member member = in_parent;
  std::memcpy(member.socket_name, hello.socket_name, sizeof member.socket_name);
  member.endpoint_count = 0;
  for (int i = 0; i < in_parent.endpoint_count; ++i) {
    if (hello.ports[i] == 0) continue;
    tcp::Endpoint& endpoint = member.endpoints[member.endpoint_count++];
    endpoint = in_parent.endpoints[i];
    endpoint.port = hello.ports[i];
  }
  return member;
}

// Whoever reads the text knows the ranks by their numbers here.
Status in_terms_of_parent(const Status& status, const std::vector<int>& members) {
  return Status(status.code(), fmt::format("{} (in the new communicator, whose ranks from 0 on are "
                                           "ranks {} of this one)",
                                           status.message(), fmt::join(members, ", ")));
}

// What the parent knows of members whose connection is missing in the child. A member that has
// connected may leave the parent at once, before this rank has read its last bytes: so who is gone
// is given another kGrace.
class Absentees {
 public:
  Absentees(Core& parent, SetupExchange& exchange, const std::vector<int>& members, SetupCall call)
      : parent_(parent), exchange_(exchange), members_(members), call_(call) {}

  // `missing`: their ranks in the child. An error if the parent is aborted or one will not come.
  Status look(std::span<const int> missing) {
    const auto inside = parent_.enter();
    // A rail that dies now may have taken along what a member still waits for in the parent.
    parent_.progress();
    if (parent_.health->aborted()) return found_ = parent_.health->status();
    if (!next_look_.passed()) return {};
    next_look_ = Deadline::after(kGrace);
    std::vector<int> ranks;
    for (const int rank : missing) ranks.push_back(members_[static_cast<size_t>(rank)]);
    std::vector<int> gone = exchange_.gone_among(ranks);
    std::swap(gone, gone_);
    std::erase_if(gone, [&](int rank) { return std::ranges::find(gone_, rank) == gone_.end(); });
    return gone.empty() ? Status() : found_ = exchange_.without(gone, call_);
  }
  // Its error, in the parent's words.
  const Status& found() const { return found_; }

 private:
  static constexpr std::chrono::milliseconds kGrace{500};

  Core& parent_;
  SetupExchange& exchange_;
  const std::vector<int>& members_;
  const SetupCall call_;
  Deadline next_look_ = Deadline::after(kGrace);
  std::vector<int> gone_;  // at the last look
  Status found_;
};

}  // namespace

Result<std::unique_ptr<Core>> form_child(Core& parent, SetupExchange& exchange,
                                         const std::vector<int>& members, SetupCall call,
                                         const CommOptions& options, Deadline deadline) {
  Result<std::unique_ptr<FdMailbox>> mailbox = FdMailbox::create();
  if (!mailbox.ok()) return mailbox.status();
  ChildHello mine{};
  if (getrandom(mine.secret.data(), mine.secret.size(), 0) !=
      static_cast<ssize_t>(mine.secret.size())) {
    return Status::error(Code::kSystem, "getrandom: {}", std::strerror(errno));
  }
  const std::string& name = mailbox.value()->name();
  std::memcpy(mine.socket_name, name.data(), std::min(name.size(), sizeof(mine.socket_name) - 1));
  Membership membership;
  if (parent.ports && parent.ports->any_elsewhere()) {
    membership.listener = tcp::Listener::open(options.config);
    if (membership.listener.ok())
      mine.ports = ports_at(membership.listener.value(), parent.members[parent.rank]);
  }
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  Result<std::vector<ChildHello>> all = exchange.all_gather(sorted, mine, call, deadline);
  if (!all.ok()) return all.status();

  membership.mailbox = std::move(mailbox).value();
  int rank = -1;
  for (size_t i = 0; i < members.size(); ++i) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), members[i]) - sorted.begin();
    const ChildHello& hello = all.value()[static_cast<size_t>(at)];
    if (i == 0) membership.secret = hello.secret;
    membership.members.push_back(child_member(parent.members[members[i]], hello));
    membership.members.back().rank = static_cast<int32_t>(i);
    if (members[i] == parent.rank) rank = static_cast<int>(i);
  }
  Absentees absentees(parent, exchange, members, call);
  membership.meanwhile = [&absentees](std::span<const int> missing) {
    return absentees.look(missing);
  };
  Result<std::unique_ptr<Core>> child =
      form(std::move(membership), rank, options, parent.tuning, deadline);
  if (!absentees.found().ok()) return absentees.found();
  if (!child.ok()) return in_terms_of_parent(child.status(), members);
  return child;
}

}  // namespace tessera
