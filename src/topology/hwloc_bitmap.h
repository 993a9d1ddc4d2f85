// Owns a bitmap of hwloc. Move-only; never null (running out of memory throws std::bad_alloc).
#pragma once

#include <hwloc.h>

#include <memory>
#include <new>
#include <string>
#include <type_traits>

#include "topology/cpu_set.h"

namespace tessera::topology {

class Bitmap {
 public:
  Bitmap() : bits_(owned(hwloc_bitmap_alloc())) {}
  explicit Bitmap(hwloc_const_bitmap_t copied)
      : bits_(owned(copied == nullptr ? hwloc_bitmap_alloc() : hwloc_bitmap_dup(copied))) {}

  hwloc_bitmap_t get() const { return bits_.get(); }
  bool empty() const { return hwloc_bitmap_iszero(get()) != 0; }
  int first() const { return hwloc_bitmap_first(get()); }  // -1: empty
  bool equals(const Bitmap& other) const { return hwloc_bitmap_isequal(get(), other.get()) != 0; }
  Bitmap copy() const { return Bitmap(get()); }
  void keep(const Bitmap& other) { hwloc_bitmap_and(get(), get(), other.get()); }
  void drop(const Bitmap& other) { hwloc_bitmap_andnot(get(), get(), other.get()); }
  void add(const Bitmap& other) { hwloc_bitmap_or(get(), get(), other.get()); }

  std::string text() const { return printed(hwloc_bitmap_asprintf); }         // "0x00000003"
  std::string ranges() const { return printed(hwloc_bitmap_list_asprintf); }  // "0-1"

 private:
  struct Free {
    void operator()(hwloc_bitmap_t bits) const { hwloc_bitmap_free(bits); }
  };
  using Owned = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, Free>;

  static Owned owned(hwloc_bitmap_t bits) {
    if (bits == nullptr) throw std::bad_alloc();
    return Owned(bits);
  }
  std::string printed(int (*print)(char**, hwloc_const_bitmap_t)) const {
    char* text = nullptr;
    if (print(&text, get()) < 0) throw std::bad_alloc();
    const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
    return text;
  }

  Owned bits_;
};

// A null or infinite set is an empty one: hwloc has both, for objects without a place.
inline CpuSet to_cpu_set(hwloc_const_bitmap_t bits) {
  CpuSet set;
  if (bits == nullptr || hwloc_bitmap_weight(bits) < 0) return set;
  for (int i = hwloc_bitmap_first(bits); i >= 0; i = hwloc_bitmap_next(bits, i)) set.add(i);
  return set;
}

}  // namespace tessera::topology
