#include "api/fake/fake_comm.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "device/host/memory.h"

namespace tessera {
namespace fake {

void World::reset() {
  const std::lock_guard lock(mutex_);
  execute_status_ = create_status_ = Status();
  closed_ = false;
  waiting_ = most_inside_ = 0;
  executed_.clear();
  calls_.clear();
  events_.clear();
}

void World::fail_execute(Status status) {
  const std::lock_guard lock(mutex_);
  execute_status_ = std::move(status);
}

void World::fail_create(Status status) {
  const std::lock_guard lock(mutex_);
  create_status_ = std::move(status);
}

void World::close_gate() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void World::open_gate() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = false;
  }
  moved_.notify_all();
}

void World::await_at_gate(int count) {
  std::unique_lock lock(mutex_);
  moved_.wait(lock, [&] { return waiting_ >= count; });
}

Status World::pass_gate(const std::function<bool()>& let_through) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  moved_.notify_all();
  moved_.wait(lock, [&] { return !closed_ || let_through(); });
  --waiting_;
  return let_through() ? Status(Code::kRemote, "the communicator was aborted") : Status();
}

std::vector<Record> World::executed() const {
  const std::lock_guard lock(mutex_);
  return executed_;
}

std::vector<Call> World::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::vector<std::string> World::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

int World::most_inside() const {
  const std::lock_guard lock(mutex_);
  return most_inside_;
}

void World::event(std::string text) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(text));
}

World& world() {
  static World* const instance = new World;
  return *instance;
}

class Comm : public Communicator {
 public:
  Comm(int rank, int size, CommOptions options)
      : rank_(rank), size_(size), options_(std::move(options)) {}
  ~Comm() override { world().event(fmt::format("r{} gone", rank_)); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const CommOptions& options() const override { return options_; }

  Result<std::unique_ptr<Communicator>> split(int color, int key, CommOptions options) override {
    world().event(fmt::format("r{} split {} {} \"{}\"", rank_, color, key, options.name));
    if (color < 0) return std::unique_ptr<Communicator>();
    return std::unique_ptr<Communicator>(new Comm(0, 1, std::move(options)));
  }
  Result<std::unique_ptr<Communicator>> shrink(std::span<const int> excluded,
                                               CommOptions options) override {
    world().event(fmt::format("r{} shrink {}", rank_, fmt::join(excluded, ",")));
    return std::unique_ptr<Communicator>(
        new Comm(0, size_ - static_cast<int>(excluded.size()), std::move(options)));
  }
  Status finalize() override {
    world().event(fmt::format("r{} finalize", rank_));
    return {};
  }
  Status error() const override {
    const std::lock_guard lock(world().mutex_);
    return error_;
  }
  void abort() override { end("abort"); }
  void revoke() override { end("revoke"); }
  Status register_window(void*, size_t bytes, uint64_t* out) override {
    world().event(fmt::format("r{} window {}", rank_, bytes));
    *out = 77;
    return {};
  }
  double estimate(const Call& call) override {
    return 1 + 1e-3 * static_cast<double>(call.count * size_of(call.type));
  }
  Status deregister_window(uint64_t window) override {
    world().event(fmt::format("r{} no window {}", rank_, window));
    return {};
  }

 private:
  friend Status run(World* world, std::span<const Work> works);

  void end(const char* how) {
    world().event(fmt::format("r{} {}", rank_, how));
    {
      const std::lock_guard lock(world().mutex_);
      ended_ = true;
      error_ = Status(Code::kRemote, "ended by the test");
    }
    world().moved_.notify_all();
  }

  const int rank_;
  const int size_;
  const CommOptions options_;
  bool ended_ = false;
  int inside_ = 0;
  Status error_;
};

namespace {

std::string text_of(int rank, const Call& call) {
  std::string text = fmt::format("r{} {} {} {}", rank, to_string(call.collective), call.count,
                                 to_string(call.type));
  if (reduces(call.collective)) text += fmt::format(" {}", to_string(call.op));
  if (call.collective == Collective::kSendRecv)
    text += fmt::format(" {} {}", call.receives ? "from" : "to", call.root);
  else if (has_root(call.collective))
    text += fmt::format(" root {}", call.root);
  return text;
}

}  // namespace

Status run(World* world, std::span<const Work> works) {
  Record record;
  std::vector<Comm*> comms;
  for (const Work& work : works) {
    auto* comm = static_cast<Comm*>(work.comm);
    if (std::find(comms.begin(), comms.end(), comm) == comms.end()) comms.push_back(comm);
    record.push_back(text_of(comm->rank_, work.call));
  }
  {
    const std::lock_guard lock(world->mutex_);
    for (Comm* comm : comms) world->most_inside_ = std::max(world->most_inside_, ++comm->inside_);
  }
  const Status passed = world->pass_gate([&] { return comms.front()->ended_; });
  const std::lock_guard lock(world->mutex_);
  for (Comm* comm : comms) --comm->inside_;
  world->executed_.push_back(std::move(record));
  for (const Work& work : works) world->calls_.push_back(work.call);
  return passed.ok() ? world->execute_status_ : passed;
}

Result<std::unique_ptr<Communicator>> make(int ranks, int rank, CommOptions options) {
  World& all = world();
  if (Status passed = all.pass_gate([] { return false; }); !passed.ok()) return passed;
  const std::lock_guard lock(all.mutex_);
  if (!all.create_status_.ok()) return all.create_status_;
  return std::unique_ptr<Communicator>(new Comm(rank, ranks, std::move(options)));
}

}  // namespace fake

Status execute(std::span<const Work> works) { return fake::run(&fake::world(), works); }

Result<std::unique_ptr<Communicator>> Communicator::create(const UniqueId&, int ranks, int rank,
                                                           CommOptions options) {
  return fake::make(ranks, rank, std::move(options));
}

Result<UniqueId> create_unique_id(const Config&, std::chrono::milliseconds) {
  UniqueId id{};
  id[0] = 1;
  return id;
}

namespace host {

Result<void*> memory_allocate(size_t bytes) {
  if (bytes > (size_t{1} << 40)) return Status(Code::kSystem, "the fake has less memory");
  return std::malloc(bytes);
}
Status memory_free(void* pointer) {
  std::free(pointer);
  return {};
}

}  // namespace host
}  // namespace tessera
