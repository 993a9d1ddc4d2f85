// Ranks as threads, and clients that do not play by the rules.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/bootstrap/identity.h"
#include "comm/bootstrap/root.h"
#include "comm/bootstrap/socket_io.h"
#include "comm/bootstrap/unique_id.h"
#include "comm/bootstrap/wire.h"

namespace tessera::testing {

inline Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

inline UniqueId new_id(const Config& config = {}) {
  Result<UniqueId> id = create_unique_id(config);
  EXPECT_TRUE(id.ok()) << id.status().message();
  return id.ok() ? id.value() : UniqueId{};
}

inline bootstrap::IdContent content_of(const UniqueId& id) {
  Result<bootstrap::IdContent> content = bootstrap::decode(id);
  EXPECT_TRUE(content.ok()) << content.status().message();
  return content.ok() ? content.value() : bootstrap::IdContent{};
}

// All at once, one thread each; the outcomes in the order of the options.
inline std::vector<Result<Membership>> join_all(const UniqueId& id,
                                                const std::vector<JoinOptions>& options,
                                                Deadline deadline = soon()) {
  std::vector<std::optional<Result<Membership>>> results(options.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = join(id, options[i], deadline); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Result<Membership>> out;
  for (auto& result : results) out.push_back(std::move(*result));
  return out;
}

inline std::vector<JoinOptions> ranks_of(int ranks, const Config& config = {}) {
  std::vector<JoinOptions> options;
  for (int rank = 0; rank < ranks; ++rank) options.push_back({rank, ranks, config});
  return options;
}

inline void expect_all_joined(const std::vector<Result<Membership>>& results) {
  for (const Result<Membership>& result : results) {
    EXPECT_TRUE(result.ok()) << result.status().message();
  }
}

// A plain connection to where the root of `id` listens.
inline Fd connect_raw(const UniqueId& id) {
  Fd fd;
  size_t which = 0;
  const bootstrap::SocketAddress at[] = {content_of(id).address};
  EXPECT_EQ(bootstrap::connect_to_any(at, soon(), fd, which), bootstrap::Outcome::kOk);
  return fd;
}

inline bool send_raw(const Fd& fd, std::string_view bytes) {
  return bootstrap::write_exactly(fd.get(), bytes, soon()) == bootstrap::Outcome::kOk;
}

inline bootstrap::Nonce read_nonce(const Fd& fd) {
  std::string in;
  EXPECT_EQ(bootstrap::read_exactly(fd.get(), in, sizeof(bootstrap::Challenge), soon()),
            bootstrap::Outcome::kOk);
  bootstrap::Challenge challenge;
  if (in.size() == sizeof challenge) std::memcpy(&challenge, in.data(), sizeof challenge);
  return challenge.nonce;
}

// The whole answer of the root; ok only for a welcome.
inline Status read_reply(const Fd& fd) {
  std::string in;
  if (bootstrap::read_exactly(fd.get(), in, sizeof(bootstrap::FrameHeader), soon()) !=
      bootstrap::Outcome::kOk) {
    return Status(Code::kInternal, "the root closed the connection");
  }
  bootstrap::FrameHeader header;
  std::memcpy(&header, in.data(), sizeof header);
  if (bootstrap::read_exactly(fd.get(), in, header.body_bytes, soon()) != bootstrap::Outcome::kOk) {
    return Status(Code::kInternal, "the root sent half a frame");
  }
  if (header.kind == bootstrap::MessageKind::kWelcome) return {};
  return bootstrap::unpack_rejection(in);
}

inline bool closed_by_root(const Fd& fd) {
  std::string in;
  return bootstrap::read_exactly(fd.get(), in, 1 << 20, soon()) == bootstrap::Outcome::kEnded;
}

inline bootstrap::Hello hello_of(int rank, int ranks) {
  return {rank,
          ranks,
          20'000,
          bootstrap::describe_self(rank),
          Config{}.shared_settings(),
          Config{}.host_settings()};
}

// A genuine hello as another implementation might send it.
inline std::string frame_of(const UniqueId& id, const bootstrap::Nonce& nonce,
                            const bootstrap::Hello& hello) {
  const std::string body = bootstrap::pack(hello);
  return bootstrap::bytes_of(
             bootstrap::seal(content_of(id).secret, nonce, bootstrap::MessageKind::kHello, body)) +
         body;
}

inline size_t open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(folder), end(folder))) - 1;  // without its own
}

// The root thread ends a moment after the last answer; waits for that, with a bound. Fewer: a root
// of another test has ended too.
inline bool descriptors_return_to(size_t count) {
  const Deadline deadline = soon();
  while (open_descriptors() > count && !deadline.passed()) std::this_thread::yield();
  return open_descriptors() <= count;
}

}  // namespace tessera::testing
