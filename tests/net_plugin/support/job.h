// Ranks of one process, connected through a plugin of the tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tcp/support/memory_landing.h"
#include "transports/net_plugin/engine.h"

namespace tessera::net_plugin {

using tcp::MemoryLanding;

std::string path_of(const std::string& name);  // "v8"
std::shared_ptr<const Library> library(const std::string& name);

// A number that the plugin `name` itself knows: "plugin_open", "plugin_inits".
int asked(const std::string& name, const char* function);

// A fault of the plugins while it lives; see plugins/sockets.c.
class Fault {
 public:
  Fault() = default;
  Fault(const char* variable, const std::string& value);
  ~Fault();
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

 private:
  const char* variable_ = nullptr;
};

// Connects all ranks with each other, each in a thread. What became of it is in `statuses`; engines
// are there where that is ok.
struct Job {
  Job(int ranks, const std::string& plugin, size_t memory_bytes, int timeout_ms = 60'000);

  void expect_connected() const;
  Port& port(size_t from, int to) { return *engines[from]->port(to); }
  MemoryLanding& landing(size_t rank) { return *landings[rank]; }
  // Lets all engines progress until `done`, within a generous deadline.
  void run_until(const std::function<bool()>& done);

  std::vector<std::unique_ptr<MemoryLanding>> landings;
  std::vector<std::unique_ptr<PortEngine>> engines;
  std::vector<Status> statuses;
};

}  // namespace tessera::net_plugin
