// Work under way on a communicator that no thread of its own does, such as a fused operator's
// launch: whoever waits in any call of the communicator does a part of it meanwhile. So ranks may
// wait for several such things, and for collectives beside them, in different orders.
// Thread safety: any thread. What drives returns soon and does not add or remove.
#pragma once

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace tessera {

class Driven {
 public:
  // Does what can be done now; true if something moved. Not within Core::enter.
  virtual bool drive() = 0;

 protected:
  ~Driven() = default;
};

class DrivenList {
 public:
  void add(Driven* driven) {
    const std::lock_guard lock(mutex_);
    list_.push_back(driven);
  }
  // Nobody is inside it afterwards.
  void remove(Driven* driven) {
    const std::lock_guard lock(mutex_);
    list_.erase(std::remove(list_.begin(), list_.end(), driven), list_.end());
  }
  bool drive() {
    const std::shared_lock lock(mutex_);
    bool moved = false;
    for (Driven* driven : list_) moved = driven->drive() || moved;
    return moved;
  }

 private:
  std::shared_mutex mutex_;
  std::vector<Driven*> list_;
};

}  // namespace tessera
