// What this process knows of the plugins it has loaded, by their tables. Never destroyed, for ranks
// may outlive main; in a child of fork, which has no other threads, the locks are free.
#pragma once

#include <mutex>
#include <set>

namespace tessera::net_plugin {

struct PluginsOfProcess {
  std::mutex proving;
  std::set<const void*> proved;  // they work here
  std::mutex beginning;
  std::set<const void*> begun;  // those without contexts, which begin once
};

PluginsOfProcess& plugins_of_process();

}  // namespace tessera::net_plugin
