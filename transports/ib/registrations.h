// Memory that network devices may read and write: a cache of registrations.
//
// Three lives: memory of the communicator stays registered, in blocks of kBlock, so that few
// registrations serve many puts; memory of a user only until the call that uses it is over, since the
// user may free it then, and the same addresses may become other memory; message buffers as long as
// they are used.
//
// More than `limit` bytes are not registered: what is not in use goes first, then acquire() refuses,
// as it does when the kernel refuses (ulimit -l). A refusal is no failure: bytes then travel
// through message buffers. The first one is logged.
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/ib/verbs.h"

namespace tessera::ib {

enum class Life : uint8_t { kCommunicator, kCall, kMessages };

struct Registration {
  std::byte* begin = nullptr;
  size_t bytes = 0;
  Life life = Life::kCommunicator;
  int uses = 0;
  bool doomed = false;        // goes when it is no longer used
  std::vector<ibv_mr*> keys;  // by device

  bool covers(const std::byte* at, size_t size) const {
    return at >= begin && size <= bytes && static_cast<size_t>(at - begin) <= bytes - size;
  }
};

class Registrations {
 public:
  static constexpr size_t kBlock = size_t{1} << 20;
  static constexpr size_t kDefaultLimit = size_t{4} << 30;

  // `domains`: of the devices, by their index; they outlive this.
  Registrations(const Verbs& verbs, std::vector<ibv_pd*> domains, int rank,
                size_t limit = kDefaultLimit);
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // One that covers the bytes, to be handed back to release(); null: refused.
  Registration* acquire(std::byte* at, size_t bytes, Life life);
  void release(Registration* registration);

  // A call is over: users' memory that is not in use is registered no longer; the rest goes as soon
  // as it is released.
  void end_call();

  struct Counts {
    size_t bytes = 0, most_bytes = 0;
    uint64_t made = 0, found = 0, refused = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  using Map = std::multimap<std::byte*, std::unique_ptr<Registration>>;

  Registration* find(const std::byte* at, size_t bytes, Life life);
  Registration* add(std::byte* at, size_t bytes, Life life);
  bool make_room(size_t bytes);
  Map::iterator drop(Map::iterator at);
  void refuse(size_t bytes, const std::string& why);

  const Verbs& verbs_;
  const std::vector<ibv_pd*> domains_;
  const int rank_;
  const size_t limit_;
  Map all_;
  size_t of_calls_ = 0;  // registrations that end_call() has to look at
  Counts counts_;
};

}  // namespace tessera::ib
