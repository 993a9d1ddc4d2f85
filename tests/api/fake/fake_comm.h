// A communicator that moves no bytes: it records what it is asked, and fails or waits on command.
// It stands in for everything below src/api, so that the tests decide what happens there.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace tessera::fake {

// One execute() call, as text: "r0 all-reduce 8 float32 sum" for each work.
using Record = std::vector<std::string>;

// What the fakes of this process do and did. reset() at the start of each test.
class World {
 public:
  void reset();

  // execute() and create() return these while they are not ok.
  void fail_execute(Status status);
  void fail_create(Status status);

  // execute() and create() wait while the gate is closed; abort() lets that communicator's
  // execute() through.
  void close_gate();
  void open_gate();
  // Returns when `count` calls are waiting at the gate.
  void await_at_gate(int count);

  std::vector<Record> executed() const;
  std::vector<Call> calls() const;
  std::vector<std::string> events() const;  // "r1 abort", "r0 shrink 1,2", ...
  // The largest number of threads that were inside one communicator at the same time.
  int most_inside() const;

 private:
  friend class Comm;
  friend Status run(World* world, std::span<const Work> works);
  friend Result<std::unique_ptr<Communicator>> make(int ranks, int rank, CommOptions options);

  void event(std::string text);
  Status pass_gate(const std::function<bool()>& let_through);

  mutable std::mutex mutex_;
  std::condition_variable moved_;
  Status execute_status_, create_status_;
  bool closed_ = false;
  int waiting_ = 0;
  int most_inside_ = 0;
  std::vector<Record> executed_;
  std::vector<Call> calls_;
  std::vector<std::string> events_;
};

World& world();

}  // namespace tessera::fake
