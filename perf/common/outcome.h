// How a perf program ends: its exit codes and the lines that explain a failure.
//
// A failed call ends the program: other threads and processes may be waiting for this one, so there
// is nothing to return to. Wrong data is no failure in this sense; it is counted and reported at
// the end (kWrong).
#pragma once

#include <nccl.h>

#include <functional>
#include <source_location>
#include <string>

namespace tessera::perf {

enum ExitCode : int {
  kSuccess = 0,
  kInternalError = 1,
  kNcclError = 3,
  kTimeout = 4,
  kNotImplemented = 5,
  kInvalidUsage = 6,
  kWrong = 7,  // wrong data, or a bandwidth below NCCL_TESTS_MIN_BW
  kBadArguments = 255,
};

// What ends the process; the default is std::_Exit. A launcher replaces it before threads start, so
// that the other processes end too.
void set_terminator(std::function<void(int code)> terminator);

// Prints "host: Test failure FILE:LINE 'message'" and " .. host pid N: Test failure FILE:LINE",
// then ends the program.
[[noreturn]] void fail(ExitCode code, const std::string& message,
                       std::source_location where = std::source_location::current());

// Ends the program unless `result` is ncclSuccess; prints the error text and the library's last
// error.
void require(ncclResult_t result, std::source_location where = std::source_location::current());

// Called by require() before it reports: a watchdog says here whether the error is its own doing.
void set_timeout_query(std::function<bool()> timed_out);

std::string host_name();

}  // namespace tessera::perf
