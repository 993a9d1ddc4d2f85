// The side of a rank: join().
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error_text.h"
#include "base/log.h"
#include "comm/bootstrap.h"
#include "comm/bootstrap/identity.h"
#include "comm/bootstrap/root.h"
#include "comm/bootstrap/socket_io.h"
#include "comm/bootstrap/unique_id.h"
#include "comm/bootstrap/wire.h"
#include "transports/tcp/contact.h"

namespace tessera {
namespace bootstrap {
namespace {

using std::chrono::milliseconds;
constexpr int kTries =
    3;  // a root under a flood of strangers may drop a rank that is slow to speak
constexpr std::chrono::seconds kChallengeWait{5};  // where there are other ways to the root
constexpr int kWhileUnreachableMs = 250;

// The root must answer before the rank gives up: it is told a little less than is left.
uint32_t wait_for_root_ms(Deadline deadline) {
  const int left = deadline.left_ms();
  return static_cast<uint32_t>(std::max(1, left - std::min(left / 10, 500)));
}

void note_endpoints(const tcp::Listener& listener, Member& member) {
  const std::span<const tcp::Endpoint> endpoints = listener.endpoints();
  member.endpoint_count = static_cast<int32_t>(std::min(endpoints.size(), member.endpoints.size()));
  std::copy_n(endpoints.begin(), member.endpoint_count, member.endpoints.begin());
}

std::vector<SocketAddress> all_ways(const IdContent& id) {
  std::vector<SocketAddress> ways = {id.address};
  ways.insert(ways.end(), id.others.begin(), id.others.end());
  return ways;
}

class Joiner {
 public:
  Joiner(const IdContent& id, const JoinOptions& options, Deadline deadline)
      : id_(id), options_(options), deadline_(deadline), ways_(all_ways(id)) {}

  Result<Membership> run() {
    Result<std::unique_ptr<FdMailbox>> mailbox = FdMailbox::create();
    if (!mailbox.ok()) return mailbox.status();
    if (id_.hosted_by_rank_zero && options_.rank == 0) {
      if (Status status = host_root(); !status.ok()) return status;
    }
    Member self = describe_self(options_.rank, options_.config.host_id);
    const std::string& name = mailbox.value()->name();
    std::memcpy(self.socket_name, name.data(), std::min(name.size(), sizeof self.socket_name - 1));
    Result<tcp::Listener> listener = tcp::Listener::open(options_.config);
    if (listener.ok()) note_endpoints(listener.value(), self);
    Result<Welcome> welcome = ask_until_answered(self);
    if (!welcome.ok()) return welcome.status();
    if (welcome->members.size() != static_cast<size_t>(options_.ranks)) {
      return Status::error(Code::kInternal, "rank {} expected {} members, the root names {}",
                           options_.rank, options_.ranks, welcome->members.size());
    }
    Membership membership;
    membership.members = std::move(welcome->members);
    membership.secret = welcome->secret;
    membership.mailbox = std::move(mailbox).value();
    membership.listener = std::move(listener);
    membership.mailbox->set_secret(membership.secret, options_.rank);
    return membership;
  }

 private:
  Status host_root() {
    Result<Listener> listener = listen_at(id_.address, deadline_);
    if (!listener.ok()) return listener.status();
    RootOptions root;
    root.idle = std::chrono::duration_cast<milliseconds>(deadline_.left());
    return start_root(std::move(listener).value(), id_.secret, root);
  }

  Result<Welcome> ask_until_answered(const Member& self) {
    Outcome outcome = Outcome::kOk;
    for (int tries = 0; tries < kTries;) {
      Fd fd;
      size_t way = 0;
      outcome = connect_to_any(ways_, soon(tcp::kNoAnswer), fd, way);
      const int error = errno;
      const bool connected = outcome == Outcome::kOk;
      Result<Welcome> answer{Status()};
      if (connected) outcome = ask(fd.get(), self, answer);
      // Somebody else may have this address here; the root then answers at another.
      if (connected && ways_.size() > 1 && !deadline_.passed() &&
          (outcome != Outcome::kOk || met_stranger_)) {
        ways_.erase(ways_.begin() + static_cast<std::ptrdiff_t>(way));
        met_stranger_ = false;
        continue;
      }
      if (outcome == Outcome::kOk) return answer;
      ways_ = all_ways(id_);
      if (const int pause_ms = worth_waiting_ms(outcome, connected); pause_ms > 0) {
        ::poll(nullptr, 0, std::min(pause_ms, deadline_.left_ms()));
        if (!deadline_.passed()) continue;
      }
      if (outcome != Outcome::kEnded || deadline_.passed()) return explain(outcome, error);
      ++tries;
    }
    return explain(outcome, 0);
  }

  // 0: not at all.
  int worth_waiting_ms(Outcome outcome, bool connected) const {
    const bool nobody = outcome == Outcome::kUnreachable || outcome == Outcome::kTimeout;
    if (nobody && !connected) return kWhileUnreachableMs;  // a way may come up
    const bool absent = outcome == Outcome::kRefused || outcome == Outcome::kEnded;
    return absent && id_.hosted_by_rank_zero && !spoke_ ? 10 : 0;  // rank 0 may come later
  }

  // A limit of its own for a part of the wait.
  Deadline soon(std::chrono::nanoseconds limit) const {
    return Deadline::after(std::min(deadline_.left(), limit));
  }

  // kOk: `answer` holds members or the reason of the root.
  Outcome ask(int fd, const Member& self, Result<Welcome>& answer) {
    std::string in;
    Outcome outcome = read_exactly(fd, in, sizeof(Challenge),
                                   ways_.size() > 1 ? soon(kChallengeWait) : deadline_);
    if (outcome != Outcome::kOk) return outcome;
    Challenge challenge;
    std::memcpy(&challenge, in.data(), sizeof challenge);
    if (challenge.magic != kWireMagic) {
      answer = stranger();
      return Outcome::kOk;
    }
    const Hello hello{options_.rank,
                      options_.ranks,
                      wait_for_root_ms(deadline_),
                      self,
                      options_.config.shared_settings(),
                      options_.config.host_settings()};
    const std::string body = pack(hello);
    const FrameHeader out = seal(id_.secret, challenge.nonce, MessageKind::kHello, body);
    spoke_ = true;
    outcome = write_exactly(fd, bytes_of(out) + body, deadline_);
    if (outcome == Outcome::kOk) outcome = read_exactly(fd, in, sizeof(FrameHeader), deadline_);
    if (outcome != Outcome::kOk) return outcome;
    FrameHeader header;
    std::memcpy(&header, in.data(), sizeof header);
    if (header.magic != kWireMagic || header.body_bytes > kMaxReplyBytes) {
      answer = stranger();
      return Outcome::kOk;
    }
    outcome = read_exactly(fd, in, header.body_bytes, deadline_);
    if (outcome == Outcome::kOk) answer = read_answer(challenge.nonce, header, in);
    return outcome;
  }

  Result<Welcome> read_answer(const Nonce& nonce, const FrameHeader& header,
                              const std::string& body) {
    if (!genuine(id_.secret, nonce, header, body)) return stranger();
    if (header.kind == MessageKind::kRejection) return unpack_rejection(body);
    if (header.kind != MessageKind::kWelcome || header.version != kVersion) return stranger();
    return unpack_welcome(body);
  }

  Status stranger() {
    met_stranger_ = true;
    return Status::error(Code::kRemote,
                         "rank {}: what answers at {} is not the root of this unique id; has the "
                         "process that made the id ended?",
                         options_.rank, to_text(id_.address));
  }

  Status explain(Outcome outcome, int error) const {
    const std::string at = to_text(id_.address);
    const int rank = options_.rank;
    if (outcome == Outcome::kFailed) {
      return Status::error(Code::kSystem, "rank {} cannot reach the root at {}: {}", rank, at,
                           error_text(error));
    }
    if (id_.hosted_by_rank_zero && !spoke_) {
      return Status::error(Code::kTimeout,
                           "rank {}: rank 0 did not open the rendezvous at {} (NCCL_COMM_ID) in "
                           "time ({}), or had ended before: then its output says why",
                           rank, at, to_string(outcome));
    }
    if (outcome == Outcome::kUnreachable) {
      return Status::error(Code::kTimeout,
                           "rank {}: the root at {} was out of reach all the time: {}", rank, at,
                           error_text(error));
    }
    if (outcome == Outcome::kTimeout) {
      return Status::error(Code::kTimeout, "rank {}: the root at {} did not answer in time", rank,
                           at);
    }
    if (id_.hosted_by_rank_zero) {
      return Status::error(Code::kRemote,
                           "rank {}: rank 0, which held the rendezvous at {}, left; its output may "
                           "say why",
                           rank, at);
    }
    return Status::error(Code::kRemote,
                         "rank {}: no root serves {} ({}). The process that made the unique id "
                         "(pid {}) has ended (if the ranks disagreed or one of them failed, its "
                         "output says why), the id was used before, or it was made on another host "
                         "or by another job",
                         rank, at, to_string(outcome), id_.creator);
  }

  const IdContent& id_;
  const JoinOptions& options_;
  const Deadline deadline_;
  std::vector<SocketAddress> ways_;  // to the root, that are not known to be wrong
  bool spoke_ = false;               // a root has heard this rank
  bool met_stranger_ = false;        // something else answered
};

}  // namespace
}  // namespace bootstrap

Result<Membership> join(const UniqueId& id, const JoinOptions& options, Deadline deadline) {
  options.config.log_changes(options.rank);
  Status trouble;
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    trouble = Status::error(Code::kInvalidArgument, "rank {} of {} ranks is out of range",
                            options.rank, options.ranks);
  }
  const Result<bootstrap::IdContent> content = bootstrap::decode(id);
  if (trouble.ok()) trouble = content.status();
  if (trouble.ok()) {
    Result<Membership> membership = bootstrap::Joiner(content.value(), options, deadline).run();
    if (membership.ok()) {
      log::info(options.rank, "Bootstrap: joined {} ranks", options.ranks);
      return membership;
    }
    trouble = membership.status();
  }
  log::warn_text(options.rank, trouble.message());
  return trouble;
}

}  // namespace tessera
