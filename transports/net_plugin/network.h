// A net plugin at work for one communicator: its context, the device it uses, its failures in words.
//
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "transports/net_plugin/library.h"

namespace tessera::net_plugin {

class Network {
 public:
  static constexpr size_t kLeastMessage = 1024;  // bytes that a device has to take at once

  // Initialises the plugin for `communicator` (equal on its ranks) and takes one of its fastest
  // devices; ranks take them in turn. kInvalidUsage: it fails, or has no device that will do.
  static Result<std::unique_ptr<Network>> open(std::shared_ptr<const Library> library, int rank,
                                               uint64_t communicator);
  // Whether open() would succeed, and why not. A plugin that has proved itself in this process is
  // not asked again.
  static Status try_out(const std::shared_ptr<const Library>& library);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const Driver& driver() const { return library_->driver(); }
  void* context() const { return context_; }
  int device() const { return device_; }
  size_t largest_message() const { return properties_.largest_message; }
  // "net plugin example (version 9), device 0 (eth0)"
  const std::string& name() const { return name_; }

  // What it means that `function` has failed for the connection with `peer`, "rank 3 (host b)".
  Status failure(const char* function, Outcome outcome, const std::string& peer) const;

 private:
  explicit Network(std::shared_ptr<const Library> library);
  Status begin(int rank, uint64_t communicator);
  Status choose_device(int rank);
  Status failed(const char* function, Outcome outcome) const;

  std::shared_ptr<const Library> library_;
  void* context_ = nullptr;
  bool begun_ = false;
  int device_ = -1;
  DeviceProperties properties_;
  std::string name_;
};

}  // namespace tessera::net_plugin
