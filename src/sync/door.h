// A door to memory that its owner lends to visitors: they write there only while they are inside,
// and the owner takes it back by closing the door and waiting until nobody is.
//
//   visitor:  if (door.enter()) { write; door.leave(); }
//   owner:    door.open(); ...; door.close(); wait until door.empty(); the memory is its own again
//
// A door that was barred stays closed, whoever opens it later.
//
// Zeroed memory is a closed door with nobody inside.
// Thread safety: any number of visitors in any processes; open(), close() and bar() by the owner, any of
// its threads.
// Guarantee: what the owner wrote before open() is visible to who entered after it; what visitors
// wrote before leave() is visible to the owner once empty() returned true.
//
// Invariants relied upon
//   (a) Whether it is open and how many are inside are one word. All that change it stand in one
//       order: a visitor comes in before the closing, and then counts in every look that the owner
//       takes until it leaves; or after it, and then it finds the door closed.
//   (b) Who found it closed has touched nothing; it counts for a moment only.
#pragma once

#include <atomic>
#include <cstdint>

namespace tessera {

class Door {
 public:
  void open() { word_.fetch_or(kOpen, std::memory_order_release); }
  // Nobody comes in any more; who is inside stays until it leaves.
  void close() { word_.fetch_and(~kOpen, std::memory_order_acq_rel); }
  void bar() { word_.fetch_or(kBarred, std::memory_order_acq_rel); }
  // Nobody is inside. Acquire: pairs with the release of every leave().
  bool empty() const { return word_.load(std::memory_order_acquire) < kVisitor; }

  // False: it is closed, and the visitor is not inside.
  bool enter() {
    const uint64_t before = word_.fetch_add(kVisitor, std::memory_order_acq_rel);
    if ((before & (kOpen | kBarred)) == kOpen) return true;  // (a)
    leave();                                                 // (b)
    return false;
  }
  void leave() { word_.fetch_sub(kVisitor, std::memory_order_release); }

 private:
  static constexpr uint64_t kOpen = 1, kBarred = 2, kVisitor = 4;
  std::atomic<uint64_t> word_{0};
};

}  // namespace tessera
