// The log. Lines look as NCCL's do, since tools grep for them:
//   host:pid:tid [rank] NCCL INFO text
//   (blank line) host:pid:tid [rank] file:line NCCL WARN text
//
// The level comes from NCCL_DEBUG (none, VERSION, WARN, INFO, TRACE; WARN when unset) and the
// target from NCCL_DEBUG_FILE (standard error when unset; %h host, %p pid). Both are read when a
// communicator is created (Config) and handed to configure(). The text of the last warning of the
// process is kept for ncclGetLastError (at most 1023 characters).
// Thread safety: every function may be called from any thread. Nothing here is called on the fast
// path, unless traces are asked for: who traces calls looks at Config::debug first.
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::log {

enum class Level : int { kNone = 0, kVersion = 1, kWarn = 2, kInfo = 3, kTrace = 4 };

// Level and target of later lines. `file` empty: standard error.
void configure(Level level, const std::string& file);
Level level();

// Writes one finished line; prefer the helpers below.
void write(Level level, int rank, std::string_view text, const std::source_location& where);

// Last warning text of this process; empty when there was none. Copied under a lock.
std::string last_warning();
// Remembers a text for last_warning() and logs it as a warning.
void warn_text(int rank, std::string_view text,
               const std::source_location& where = std::source_location::current());

// Format string that remembers where it was written.
template <class... Args>
struct Format {
  template <class S>
  consteval Format(const S& s, std::source_location w = std::source_location::current())  // NOLINT
      : text(s), where(w) {}
  fmt::format_string<Args...> text;
  std::source_location where;
};

template <class... Args>
void warn(int rank, Format<std::type_identity_t<Args>...> format, Args&&... args) {
  warn_text(rank, fmt::format(format.text, std::forward<Args>(args)...), format.where);
}

template <class... Args>
void info(int rank, Format<std::type_identity_t<Args>...> format, Args&&... args) {
  if (level() >= Level::kInfo)
    write(Level::kInfo, rank, fmt::format(format.text, std::forward<Args>(args)...), format.where);
}

template <class... Args>
void trace(int rank, Format<std::type_identity_t<Args>...> format, Args&&... args) {
  if (level() >= Level::kTrace)
    write(Level::kTrace, rank, fmt::format(format.text, std::forward<Args>(args)...), format.where);
}

}  // namespace tessera::log
