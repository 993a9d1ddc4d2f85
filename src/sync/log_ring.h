// The last few records of one writer, readable by anyone at any time without disturbing it: what a
// rank called lately.
//
// Thread safety: one writer; any number of readers in any processes. A reader gets a record whole
// or not at all. Zeroed memory is an empty ring. Record numbers start at 1.
//
// Invariants (a sequence lock per entry)
//   (a) An entry's number is 0 while its words change: the writer stores 0, then the words, then
//       the number.
//   (b) Words are atomics, so that a reader that overlaps a write does not race; each is stored
//       with release and loaded with acquire: who sees a new word also sees the 0 (or a later
//       number) stored before it.
//   (c) A reader that finds the same number before and after reading the words read no word of
//       another record: by (b) such a word would have shown it the change. The second look may be
//       relaxed: the acquire loads of the words keep it behind them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace tessera {

template <class T, int kEntries>
class LogRing {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0);
  static constexpr size_t kWords = sizeof(T) / 8;

 public:
  void write(uint64_t number, const T& record) {
    Entry& entry = entries_[number % kEntries];
    entry.number.store(0, std::memory_order_relaxed);  // ordered by the words' release, (b)
    std::array<uint64_t, kWords> words;
    std::memcpy(words.data(), &record, sizeof(T));
    // release: (b)
    for (size_t i = 0; i < kWords; ++i) entry.words[i].store(words[i], std::memory_order_release);
    entry.number.store(number, std::memory_order_release);
  }

  // Number of the latest record; 0 when there is none.
  uint64_t last() const {
    uint64_t last = 0;
    for (const Entry& entry : entries_)
      last = std::max(last, entry.number.load(std::memory_order_acquire));
    return last;
  }

  // The bytes that write() changed: copied over the same bytes of another ring, which nobody reads
  // meanwhile, they make the record known there.
  std::span<const std::byte> written(uint64_t number) const {
    return std::as_bytes(std::span(&entries_[number % kEntries], 1));
  }

  // Empty when that record is not there (not yet, no longer, or being written).
  std::optional<T> read(uint64_t number) const {
    const Entry& entry = entries_[number % kEntries];
    if (number == 0 || entry.number.load(std::memory_order_acquire) != number) return std::nullopt;
    std::array<uint64_t, kWords> words;
    for (size_t i = 0; i < kWords; ++i) words[i] = entry.words[i].load(std::memory_order_acquire);
    if (entry.number.load(std::memory_order_relaxed) != number) return std::nullopt;  // (c)
    T record;
    std::memcpy(static_cast<void*>(&record), words.data(), sizeof(T));
    return record;
  }

 private:
  struct Entry {
    std::atomic<uint64_t> number{0};
    std::array<std::atomic<uint64_t>, kWords> words{};
  };
  std::array<Entry, kEntries> entries_{};
};

}  // namespace tessera
