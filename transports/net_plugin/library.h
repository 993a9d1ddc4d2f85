// Net plugins of NCCL: found by NCCL_NET_PLUGIN, loaded, tried.
//
//   NCCL_NET_PLUGIN   library
//   unset             libnccl-net.so, if there is one
//   NAME              NAME; if there is none, libnccl-net-NAME.so (not for paths and lib*.so)
//   STATIC_PLUGIN     the program itself
//   none              none
//   A,B,...           the first that can be used
//
// NCCL_NET names the network that must be used: a plugin of that name, or one of the library's own
// (Socket, IB), which leaves plugins alone.
//
// Of a library the newest version that it exports is used. A plugin that somebody named and that
// cannot be used is an error; one that nobody named is left alone (an INFO line says why). A library
// stays loaded until the process ends: its threads may outlive its last user.
//
// Thread safety: any thread. Source: NCCL's plugin interface (abi.h).
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "transports/net_plugin/driver.h"

namespace tessera::net_plugin {

class Library {
 public:
  // `plugins`: NCCL_NET_PLUGIN, `net`: NCCL_NET, empty for unset. Null: no plugin. The plugin has
  // been initialised and has a device for host memory. kInvalidUsage names variable and reason.
  static Result<std::shared_ptr<const Library>> load(const std::string& plugins,
                                                     const std::string& net);

  const Driver& driver() const { return *driver_; }
  const std::string& name() const { return name_; }  // "example (version 9)"

 private:
  Library(std::unique_ptr<Driver> driver, const void* symbol);
  static Result<std::shared_ptr<const Library>> open(const std::string& setting);

  friend class Network;
  // Calls the plugin's init(): once a process where there are no contexts.
  Outcome init(uint64_t communicator, void*& context) const;

  std::unique_ptr<Driver> driver_;
  const void* symbol_;
  std::string name_;
};

// What ranks compare: the plugin's name and version, or "none".
std::string in_use(const Library* library);

}  // namespace tessera::net_plugin
