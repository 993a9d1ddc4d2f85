#include "transports/net_plugin/process.h"

#include <pthread.h>

#include <new>

namespace tessera::net_plugin {

PluginsOfProcess& plugins_of_process() {
  static auto* const plugins = new PluginsOfProcess;
  static const int watched = pthread_atfork(nullptr, nullptr, [] {
    new (&plugins->proving) std::mutex;
    new (&plugins->beginning) std::mutex;
  });
  static_cast<void>(watched);
  return *plugins;
}

}  // namespace tessera::net_plugin
