#include "common/outcome.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "command_line/print.h"

namespace tessera::perf {
namespace {

std::function<void(int)>& terminator() {
  static std::function<void(int)> function;
  return function;
}

std::function<bool()>& timeout_query() {
  static std::function<bool()> function;
  return function;
}

std::string place(const std::source_location& where) {
  const char* slash = std::strrchr(where.file_name(), '/');
  return fmt::format("{}:{}", slash == nullptr ? where.file_name() : slash + 1, where.line());
}

[[noreturn]] void end(ExitCode code, const std::string& first, const std::source_location& where) {
  static std::mutex only_one;  // never released: the first failure is the one reported
  only_one.lock();
  command_line::print("{}: {}\n .. {} pid {}: Test failure {}\n", host_name(), first, host_name(),
                      getpid(), place(where));
  std::fflush(nullptr);
  if (terminator()) terminator()(code);
  std::_Exit(code);
}

}  // namespace

void set_terminator(std::function<void(int)> function) { terminator() = std::move(function); }
void set_timeout_query(std::function<bool()> function) { timeout_query() = std::move(function); }

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  return name;
}

void fail(ExitCode code, const std::string& message, std::source_location where) {
  end(code, fmt::format("Test failure {} '{}'", place(where), message), where);
}

void require(ncclResult_t result, std::source_location where) {
  if (result == ncclSuccess) return;
  const char* last = ncclGetLastError(nullptr);
  const bool timed_out = timeout_query() && timeout_query()();
  end(timed_out ? kTimeout : kNcclError,
      fmt::format("Test {} {} '{} / {}'", timed_out ? "timeout" : "NCCL failure", place(where),
                  ncclGetErrorString(result), last == nullptr ? "" : last),
      where);
}

}  // namespace tessera::perf
