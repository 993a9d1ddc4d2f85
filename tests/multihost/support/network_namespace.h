// A network namespace of the test's own: it has no name, and is gone when this object and the
// processes inside are.
#pragma once

#include <string>

#include "base/fd.h"

namespace tessera::multihost {

class NetworkNamespace {
 public:
  // Empty, or why there can be none here: privileges, or a program that is missing.
  static std::string obstacle();

  // With loopback up. A failure is one of the test.
  NetworkNamespace();

  // Moves the calling thread in. False: errno says why.
  bool enter() const;
  // Runs lines of commands of `ip` or `tc` inside. A failure is one of the test.
  void ip(const std::string& lines) const { run("ip", lines); }
  void tc(const std::string& lines) const { run("tc", lines); }
  // Until the interface has a carrier and the kernel says so, which may take it a second. A failure
  // is one of the test.
  void await_carrier(const std::string& interface) const;
  // What `ip` takes for a name of it, while this process lives.
  std::string path() const;

 private:
  void run(const char* program, const std::string& lines) const;

  Fd fd_;
};

}  // namespace tessera::multihost
