// SipHash-2-4 with a 128-bit result: a keyed hash for short messages. Who does not know the key can
// neither make nor guess the digest of a message. Also used with a fixed key where only a good hash
// is wanted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

using Key = std::array<uint8_t, 16>;
using Digest = std::array<uint8_t, 16>;

class KeyedHash {
 public:
  explicit KeyedHash(const Key& key);

  void add(const void* data, size_t bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  template <class T>
  void add_value(const T& value) {
    add(&value, sizeof value);
  }
  // Once, after the last add().
  Digest finish();

 private:
  void absorb(uint64_t word);
  void rounds(int count);

  uint64_t v_[4];
  uint64_t pending_ = 0;  // bytes that do not fill a word yet, lowest first
  uint64_t bytes_ = 0;
};

// The first 64 bits of a digest with a fixed, public key.
uint64_t short_hash(std::string_view text);

// Takes the same time wherever the two differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

}  // namespace tessera
