#include "base/keyed_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace tessera {
namespace {

Key counting_key() {
  Key key;
  std::iota(key.begin(), key.end(), uint8_t{0});
  return key;
}

std::string counting_text(size_t bytes) {
  std::string text(bytes, '\0');
  std::iota(text.begin(), text.end(), '\0');
  return text;
}

std::string hex(const Digest& digest) {
  std::string text;
  constexpr char kDigits[] = "0123456789abcdef";
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Digest digest_of(const Key& key, std::string_view text) {
  KeyedHash hash(key);
  hash.add(text);
  return hash.finish();
}

// The published vectors of SipHash-2-4-128: key 00..0f, message 00, 01, ...
TEST(KeyedHash, EqualsThePublishedVectors) {
  EXPECT_EQ(hex(digest_of(counting_key(), "")), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(hex(digest_of(counting_key(), counting_text(1))), "da87c1d86b99af44347659119b22fc45");
}

TEST(KeyedHash, DoesNotDependOnHowTheMessageIsCut) {
  const std::string text = counting_text(61);
  const Digest whole = digest_of(counting_key(), text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    KeyedHash hash(counting_key());
    hash.add(text.substr(0, cut));
    hash.add(text.substr(cut));
    EXPECT_EQ(hash.finish(), whole) << cut;
  }
}

TEST(KeyedHash, ChangesWithEveryBitOfKeyAndMessage) {
  const std::string text = counting_text(20);
  const Digest original = digest_of(counting_key(), text);
  for (size_t bit = 0; bit < 128; ++bit) {
    Key key = counting_key();
    key[bit / 8] = static_cast<uint8_t>(key[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_NE(digest_of(key, text), original);
  }
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(digest_of(counting_key(), other), original);
  }
}

TEST(KeyedHash, ComparisonSeesADifferenceInAnyByte) {
  const Digest digest = digest_of(counting_key(), "x");
  EXPECT_TRUE(equal_in_constant_time(digest, digest));
  for (size_t i = 0; i < digest.size(); ++i) {
    Digest other = digest;
    other[i] = static_cast<uint8_t>(other[i] ^ 0x80);
    EXPECT_FALSE(equal_in_constant_time(digest, other));
  }
}

}  // namespace
}  // namespace tessera
