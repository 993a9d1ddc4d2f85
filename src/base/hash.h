// FNV-1a with 64 bits: a hash that is the same on every machine of one byte order and in every
// version, to compare what ranks have and to name files. No protection against intent: that is
// base/keyed_hash.h.
//
// Thread safety: one thread at a time per object. Source: Fowler, Noll, Vo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace tessera {

class Hash {
 public:
  Hash& bytes(const void* data, size_t size) {
    const auto* byte = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) value_ = (value_ ^ byte[i]) * 0x100000001b3;
    return *this;
  }
  // A text and its end: ("ab", "c") differs from ("a", "bc").
  Hash& text(std::string_view text) {
    bytes(text.data(), text.size());
    return bytes("", 1);
  }
  // An integer or a real number, eight bytes whatever its type.
  template <class T>
  Hash& number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
    const auto wide = static_cast<Wide>(value);
    return bytes(&wide, sizeof wide);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace tessera
