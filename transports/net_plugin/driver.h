// One table for net plugins of all versions: what the library calls, whatever the plugin exports.
//
// Calls and their meaning are those of NCCL's interface: connect() and accept() never block and give
// null until they succeed, send() and receive() give null when they cannot be taken now. Messages of
// a connection are received in the order in which they were sent; a connection goes one way.
// Thread safety: as the plugin has it: connections of different communicators by different threads.
#pragma once

#include <memory>
#include <string>

#include "transports/net_plugin/abi.h"

namespace tessera::net_plugin {

using abi::Outcome;

struct DeviceProperties {
  std::string name;
  int speed_mbps = 0;
  bool host_memory = false;  // can send and receive it, driven by the processor
  size_t largest_message = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;

  virtual int version() const = 0;
  virtual const char* name() const = 0;  // may be null
  // Each communicator of version 11 and later has a context; older plugins begin once a process.
  virtual bool has_contexts() const = 0;

  virtual Outcome init(uint64_t communicator, abi::Logger log, void*& context) const = 0;
  virtual void finalize(void* context) const = 0;
  virtual Outcome devices(int& count) const = 0;
  virtual Outcome properties(int device, DeviceProperties& properties) const = 0;
  // `handle`: abi::kHandleBytes.
  virtual Outcome listen(void* context, int device, void* handle, void*& listening) const = 0;
  virtual Outcome connect(void* context, int device, void* handle, void*& sending) const = 0;
  virtual Outcome accept(void* listening, void*& receiving) const = 0;
  // Memory of this process, for a connection of either direction.
  virtual Outcome register_memory(void* connection, void* data, size_t bytes,
                                  void*& registration) const = 0;
  virtual Outcome deregister_memory(void* connection, void* registration) const = 0;
  virtual Outcome send(void* sending, void* data, size_t bytes, void* registration,
                       void*& request) const = 0;
  virtual Outcome receive(void* receiving, void* data, size_t bytes, void* registration,
                          void*& request) const = 0;
  // `bytes`: how many came, of a receive.
  virtual Outcome test(void* request, bool& done, size_t& bytes) const = 0;
  virtual Outcome close_sending(void* sending) const = 0;
  virtual Outcome close_receiving(void* receiving) const = 0;
  virtual Outcome close_listening(void* listening) const = 0;
};

// For the table at `symbol`, of version abi::kOldest to abi::kNewest. Null: the table lacks a
// function that is needed.
std::unique_ptr<Driver> make_driver(const void* symbol, int version);

}  // namespace tessera::net_plugin
