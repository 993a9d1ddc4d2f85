#include "base/keyed_hash.h"

#include <bit>
#include <cstring>

namespace tessera {
namespace {

// Words are read in the order of bytes of the machine: who compares digests has the same order, which
// the magic number at the head of every exchange makes sure of.
uint64_t word_at(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

KeyedHash::KeyedHash(const Key& key) {
  const uint64_t k0 = word_at(key.data());
  const uint64_t k1 = word_at(key.data() + 8);
  v_[0] = k0 ^ 0x736f6d6570736575;
  v_[1] = k1 ^ 0x646f72616e646f6d ^ 0xee;  // 0xee: 128-bit result
  v_[2] = k0 ^ 0x6c7967656e657261;
  v_[3] = k1 ^ 0x7465646279746573;
}

void KeyedHash::rounds(int count) {
  for (int i = 0; i < count; ++i) {
    v_[0] += v_[1];
    v_[2] += v_[3];
    v_[1] = std::rotl(v_[1], 13) ^ v_[0];
    v_[3] = std::rotl(v_[3], 16) ^ v_[2];
    v_[0] = std::rotl(v_[0], 32) + v_[3];
    v_[2] += v_[1];
    v_[3] = std::rotl(v_[3], 21) ^ v_[0];
    v_[1] = std::rotl(v_[1], 17) ^ v_[2];
    v_[2] = std::rotl(v_[2], 32);
  }
}

void KeyedHash::absorb(uint64_t word) {
  v_[3] ^= word;
  rounds(2);
  v_[0] ^= word;
}

void KeyedHash::add(const void* data, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  const uint8_t* const end = at + bytes;
  while (at != end) {
    if (bytes_ % 8 == 0 && end - at >= 8) {
      absorb(word_at(at));
      at += 8;
      bytes_ += 8;
      continue;
    }
    pending_ |= uint64_t{*at++} << (8 * (bytes_ % 8));
    if (++bytes_ % 8 == 0) {
      absorb(pending_);
      pending_ = 0;
    }
  }
}

Digest KeyedHash::finish() {
  absorb(pending_ | bytes_ << 56);
  v_[2] ^= 0xee;
  rounds(4);
  const uint64_t low = v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  v_[1] ^= 0xdd;
  rounds(4);
  const uint64_t high = v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  Digest digest;
  std::memcpy(digest.data(), &low, 8);
  std::memcpy(digest.data() + 8, &high, 8);
  return digest;
}

uint64_t short_hash(std::string_view text) {
  KeyedHash hash(Key{'t', 'e', 's', 's', 'e', 'r', 'a'});
  hash.add(text);
  return word_at(hash.finish().data());
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = static_cast<uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace tessera
