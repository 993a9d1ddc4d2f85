#include "transports/net_plugin/process.h"

#include "base/of_process.h"

namespace tessera::net_plugin {

PluginsOfProcess& plugins_of_process() {
  return of_process<PluginsOfProcess, &PluginsOfProcess::proving, &PluginsOfProcess::beginning>();
}

}  // namespace tessera::net_plugin
