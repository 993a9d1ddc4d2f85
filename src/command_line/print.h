// Formatted output of programs. fmt's own print throws where the stream takes nothing more (a full
// disk, a closed terminal); here the error stays in the stream, and a program that ends asks for it.
//
// Thread safety: as stdio's streams.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace tessera::command_line {

template <typename... Args>
void print(std::FILE* stream, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stream);
}

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  command_line::print(stdout, format, std::forward<Args>(args)...);
}

// Whether all that was printed to standard output has arrived; if not, says so on standard error.
inline bool output_arrived() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  command_line::print(stderr, "standard output cannot be written\n");
  return false;
}

}  // namespace tessera::command_line
