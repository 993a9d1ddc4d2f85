// How the ranks of a communicator find each other.
//
//   create_unique_id   opens a listening TCP socket (on an interface that NCCL_SOCKET_IFNAME names,
//                      else on all, or on loopback if nothing leads out of this host) and a root
//                      thread that serves one rendezvous, then ends. The id holds its addresses, of
//                      which each rank uses the first that answers, a 128-bit random secret and a
//                      version. With NCCL_COMM_ID the id only says where: rank 0 hosts
//                      the root there when it joins, and the secret follows from the address, so
//                      that every process may make the id for itself.
//   join               every rank sends a hello with the secret; the root checks that numbers,
//   sizes, versions and configurations
//                      agree, and answers each with the full member list or with the reason why
//                      not, naming the ranks and values.
//
// Nobody without the secret gets past the first message: other connections are closed, counted, and
// never delay the job. Hellos are bounded in size and time. Every wait has a deadline; after 10 s
// of waiting a line says who is missing. Thread safety: functions may be called from any thread.
// The root thread is detached and owns its socket; it ends by itself: when all are answered, when
// the earliest deadline of a rank that joined is near, or, if none ever comes, after 20 times
// config.timeout. After a failure it tells late comers the reason for five seconds.
//
// Errors of join: kInvalidArgument (garbage id, rank out of range), kInvalidUsage (ranks disagree:
// number taken twice, sizes, versions, settings), kRemote (root or a rank gone), kTimeout
// (names the missing ranks), kSystem.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/deadline.h"
#include "base/status.h"
#include "comm/fd_mailbox.h"
#include "transports/tcp/connect.h"
#include "transports/tcp/listener.h"

namespace tessera {

inline constexpr size_t kUniqueIdBytes = 128;
using UniqueId = std::array<char, kUniqueIdBytes>;

// What each rank says of itself. Plain data, sent as it is (same library version on all ranks is
// checked first).
struct Member {
  int32_t rank = 0;
  int32_t pid = 0;
  uint64_t host =
      0;  // equal for processes that can share memory: boot id and the namespaces that matter
  uint64_t process = 0;        // equal for ranks of one process: pid, pid namespace and start time
  uint64_t pid_namespace = 0;  // `pid` means something only to processes with the same one
  char host_name[64] = {};
  char socket_name[64] = {};  // abstract Unix datagram socket of this rank's FdMailbox
  // where ranks of other hosts reach this one
  int32_t endpoint_count = 0;
  std::array<tcp::Endpoint, tcp::kMaxEndpoints> endpoints{};
};

struct JoinOptions {
  int rank = 0;
  int ranks = 1;
  Config config;  // its fingerprint is compared over all ranks, with texts naming the differing
                  // variable and both values
};

struct Membership {
  std::vector<Member> members;         // by rank
  std::array<uint8_t, 16> secret{};    // of this communicator; authenticates fd messages
  std::unique_ptr<FdMailbox> mailbox;  // this rank's, already bound
  // Of this rank, for ranks of other hosts; an error matters only where there are any.
  Result<tcp::Listener> listener = Status(Code::kSystem, "this rank did not listen");
  // Called now and then while this rank waits for other hosts, with the members whose connection is
  // missing, if that is known; its error ends the wait. May be empty.
  tcp::Meanwhile meanwhile;
};

// `idle`: how long the root waits for the first rank; zero: 20 times the deadline.
Result<UniqueId> create_unique_id(const Config& config, std::chrono::milliseconds idle = {});
Result<Membership> join(const UniqueId& id, const JoinOptions& options, Deadline deadline);

}  // namespace tessera
