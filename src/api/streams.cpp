#include "api/streams.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "api/errors.h"

namespace tessera::api {

struct Stream::Queue {
  mutable std::mutex mutex;
  std::condition_variable moved;  // a task came or ended, or stop was set
  std::deque<Task> tasks;
  uint64_t enqueued = 0;
  uint64_t ended = 0;
  bool stop = false;
  Status error;
  std::thread thread;
};

class Stream::Mark {
 public:
  void set() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    moved_.notify_all();
  }
  void await() {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  bool done_ = false;
};

void await(Stream::Mark& mark) { mark.await(); }

namespace {

// The task is destroyed before it counts as ended: what it keeps alive is gone when a
// synchronize returns.
Status run_task(Stream::Task task) { return task(); }

}  // namespace

Stream::Stream(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}

Result<std::shared_ptr<Stream>> Stream::start() {
  auto queue = std::make_shared<Queue>();
  // The thread shares the queue: it may outlive the stream (see the destructor).
  const auto work = [queue] {
    std::unique_lock lock(queue->mutex);
    for (;;) {
      queue->moved.wait(lock, [&] { return queue->stop || !queue->tasks.empty(); });
      if (queue->tasks.empty()) return;
      Task task = std::move(queue->tasks.front());
      queue->tasks.pop_front();
      lock.unlock();
      const Status status = run_task(std::move(task));
      lock.lock();
      ++queue->ended;
      if (queue->error.ok()) queue->error = status;
      queue->moved.notify_all();
    }
  };
  try {
    queue->thread = std::thread(work);
  } catch (const std::system_error& error) {
    return fail(Code::kSystem, "cannot start the thread of a stream: {}. Check ulimit -u.",
                error.what());
  }
  return std::shared_ptr<Stream>(new Stream(std::move(queue)));
}

Stream::~Stream() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->stop = true;
  }
  queue_->moved.notify_all();
  if (queue_->thread.get_id() == std::this_thread::get_id())
    queue_->thread.detach();
  else
    queue_->thread.join();
}

void Stream::enqueue(Task task) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->tasks.push_back(std::move(task));
    ++queue_->enqueued;
  }
  queue_->moved.notify_all();
}

std::shared_ptr<Stream::Mark> Stream::mark() {
  auto mark = std::make_shared<Mark>();
  enqueue([mark] {
    mark->set();
    return Status();
  });
  return mark;
}

void Stream::wait_for(std::shared_ptr<Mark> mark) {
  enqueue([mark = std::move(mark)] {
    mark->await();
    return Status();
  });
}

bool Stream::idle() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->ended == queue_->enqueued;
}

void Stream::synchronize() {
  std::unique_lock lock(queue_->mutex);
  const uint64_t last = queue_->enqueued;
  queue_->moved.wait(lock, [&] { return queue_->ended >= last; });
}

Status Stream::take_error() {
  const std::lock_guard lock(queue_->mutex);
  return std::exchange(queue_->error, Status());
}

}  // namespace tessera::api
