// Asynchronous host streams: a queue and the thread that empties it.
//
// Thread safety: every function and member may be called from any thread.
#pragma once

#include <nccl.h>

#include <functional>
#include <memory>

#include "base/status.h"

namespace tessera::api {

class Stream {
 public:
  using Task = std::function<Status()>;

  // kSystem when no thread can be started.
  static Result<std::shared_ptr<Stream>> start();
  // Runs what is still enqueued, then ends the thread. Called by a task of this very stream, it
  // does not wait.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Tasks run in order, also after one has failed.
  void enqueue(Task task);
  // A point in the order of the stream: done when everything enqueued before it has ended.
  class Mark;
  std::shared_ptr<Mark> mark();
  // Later tasks run after `mark` is done. Marks of other streams only.
  void wait_for(std::shared_ptr<Mark> mark);

  bool idle() const;
  // Waits for what was enqueued before the call.
  void synchronize();
  // The first error since the last call.
  Status take_error();

 private:
  struct Queue;
  explicit Stream(std::shared_ptr<Queue> queue);
  std::shared_ptr<Queue> queue_;
};

// Waits until everything before the mark has ended.
void await(Stream::Mark& mark);

// True if the value is one that tsrStreamCreate may have returned. Looks at the value only.
bool is_stream_handle(cudaStream_t stream);
// kInvalidArgument when the stream does not exist (any more), kInvalidUsage after a fork.
Result<std::shared_ptr<Stream>> find_stream(cudaStream_t stream);

// In the child of a fork: threads are gone, and so are the streams.
void forget_streams_after_fork();

}  // namespace tessera::api
