// One line of the terminal, rewritten while something runs, and gone when it is over. Nothing is
// shown where standard error is no terminal, nor before so much time has passed that somebody would
// wonder.
//
// Thread safety: one thread.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "command_line/print.h"

namespace tessera::tools {

class Progress {
 public:
  explicit Progress(std::chrono::milliseconds quiet = std::chrono::seconds(1))
      : first_(Clock::now() + quiet) {}
  ~Progress() {
    if (shown_) command_line::print(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  template <typename... Args>
  void show(fmt::format_string<Args...> format, Args&&... args) {
    if (!terminal_ || Clock::now() < first_) return;
    command_line::print(stderr, "\r\033[K{}", fmt::format(format, std::forward<Args>(args)...));
    std::fflush(stderr);
    shown_ = true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point first_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  bool shown_ = false;
};

}  // namespace tessera::tools
