// A value for children that are forked before it is made: what makes it may start threads, and a
// process with threads is forked safely only without sanitizers, whose locks a fork may copy held.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

namespace tessera::test {

template <class T>
class Late {
 public:
  Late() { EXPECT_EQ(pipe(ends_), 0); }
  ~Late() {
    for (const int end : ends_) close(end);
  }
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;

  // In the parent, after the forks.
  void give(const T& value, int children) {
    for (int child = 0; child < children; ++child)
      EXPECT_EQ(write(ends_[1], &value, sizeof value), static_cast<ssize_t>(sizeof value));
  }
  // In a child; nothing if the parent ended without giving it.
  std::optional<T> take() {
    close(ends_[1]);
    ends_[1] = -1;
    T value;
    if (read(ends_[0], &value, sizeof value) != static_cast<ssize_t>(sizeof value)) return {};
    return value;
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace tessera::test
