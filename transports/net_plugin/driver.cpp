#include "transports/net_plugin/driver.h"

#include <algorithm>
#include <limits>

namespace tessera::net_plugin {
namespace {

constexpr int kTag = 0;  // only groups of receives need to tell messages apart

// NCCL's profilers are not served; a plugin may call this all the same.
Outcome profile_nothing(void**, int, void*, int64_t, void*) { return 0; }

template <class Net>
class DriverOf final : public Driver {
 public:
  explicit DriverOf(const Net& net) : net_(net) {}

  int version() const override { return Net::kVersion; }
  const char* name() const override { return net_.name; }
  bool has_contexts() const override { return kContexts; }

  Outcome init(uint64_t communicator, abi::Logger log, void*& context) const override {
    if constexpr (kContexts) {
      return net_.init(&context, communicator, &abi::kAnyTraffic, log, profile_nothing);
    } else if constexpr (Net::kVersion == 10) {
      return net_.init(log, profile_nothing);
    } else {
      return net_.init(log);
    }
  }
  void finalize(void* context) const override {
    if constexpr (kContexts) {
      if (net_.finalize != nullptr) net_.finalize(context);
    }
  }
  Outcome devices(int& count) const override { return net_.devices(&count); }

  Outcome properties(int device, DeviceProperties& properties) const override {
    typename Net::Properties own{};
    const Outcome outcome = net_.properties(device, &own);
    if (outcome != 0) return outcome;
    properties.name = own.name != nullptr ? own.name : "unnamed";
    properties.speed_mbps = own.speed_mbps;
    properties.host_memory =
        (own.pointers & abi::kHostPointers) != 0 && own.offload == abi::kHostDevice;
    properties.largest_message = std::numeric_limits<int>::max();
    if constexpr (Net::kVersion >= 9) properties.largest_message = own.largest_message;
    return 0;
  }

  Outcome listen(void* context, int device, void* handle, void*& listening) const override {
    if constexpr (kContexts) {
      return net_.listen(context, device, handle, &listening);
    } else {
      return net_.listen(device, handle, &listening);
    }
  }
  Outcome connect(void* context, int device, void* handle, void*& sending) const override {
    void* no_offload = nullptr;
    if constexpr (kContexts) {
      return net_.connect(context, device, handle, &sending, &no_offload);
    } else if constexpr (Net::kVersion == 10) {
      return net_.connect(device, &abi::kAnyTraffic, handle, &sending, &no_offload);
    } else {
      return net_.connect(device, handle, &sending, &no_offload);
    }
  }
  Outcome accept(void* listening, void*& receiving) const override {
    void* no_offload = nullptr;
    return net_.accept(listening, &receiving, &no_offload);
  }

  Outcome register_memory(void* connection, void* data, size_t bytes,
                          void*& registration) const override {
    return net_.register_memory(connection, data, bytes, abi::kHostPointers, &registration);
  }
  Outcome deregister_memory(void* connection, void* registration) const override {
    return net_.deregister_memory(connection, registration);
  }

  Outcome send(void* sending, void* data, size_t bytes, void* registration,
               void*& request) const override {
    if constexpr (Net::kVersion >= 10) {
      return net_.send(sending, data, bytes, kTag, registration, nullptr, &request);
    } else {
      return net_.send(sending, data, static_cast<Size>(bytes), kTag, registration, &request);
    }
  }
  Outcome receive(void* receiving, void* data, size_t bytes, void* registration,
                  void*& request) const override {
    auto size = static_cast<Size>(bytes);
    int tag = kTag;
    if constexpr (Net::kVersion >= 10) {
      void* event = nullptr;
      return net_.receive(receiving, 1, &data, &size, &tag, &registration, &event, &request);
    } else {
      return net_.receive(receiving, 1, &data, &size, &tag, &registration, &request);
    }
  }
  Outcome test(void* request, bool& done, size_t& bytes) const override {
    int is_done = 0, size = 0;
    const Outcome outcome = net_.test(request, &is_done, &size);
    done = is_done != 0;
    bytes = static_cast<size_t>(std::max(size, 0));
    return outcome;
  }

  Outcome close_sending(void* sending) const override { return net_.close_sending(sending); }
  Outcome close_receiving(void* receiving) const override {
    return net_.close_receiving(receiving);
  }
  Outcome close_listening(void* listening) const override {
    return net_.close_listening(listening);
  }

 private:
  static constexpr bool kContexts = Net::kVersion >= 11;
  using Size = std::conditional_t<Net::kVersion == 8, int, size_t>;

  const Net& net_;
};

template <class Net>
std::unique_ptr<Driver> driver_of(const void* symbol) {
  const Net& net = *static_cast<const Net*>(symbol);
  const bool complete =
      net.init != nullptr && net.devices != nullptr && net.properties != nullptr &&
      net.listen != nullptr && net.connect != nullptr && net.accept != nullptr &&
      net.register_memory != nullptr && net.deregister_memory != nullptr && net.send != nullptr &&
      net.receive != nullptr && net.test != nullptr && net.close_sending != nullptr &&
      net.close_receiving != nullptr && net.close_listening != nullptr;
  if (!complete) return nullptr;
  return std::make_unique<DriverOf<Net>>(net);
}

}  // namespace

std::unique_ptr<Driver> make_driver(const void* symbol, int version) {
  switch (version) {
    case 8:
      return driver_of<abi::NetV8>(symbol);
    case 9:
      return driver_of<abi::NetV9>(symbol);
    case 10:
      return driver_of<abi::NetV10>(symbol);
    case 11:
      return driver_of<abi::NetV11>(symbol);
    case 12:
      return driver_of<abi::NetV12>(symbol);
    default:
      return nullptr;
  }
}

}  // namespace tessera::net_plugin
