#include "transports/net_plugin/network.h"

#include <mutex>
#include <vector>

#include "transports/net_plugin/process.h"

namespace tessera::net_plugin {
namespace {

// ncclResult_t
const char* words_for(Outcome outcome) {
  static constexpr const char* kWords[] = {
      "success",          "unhandled CUDA error", "system error", "internal error",
      "invalid argument", "invalid usage",        "remote error", "in progress"};
  return outcome >= 0 && outcome < static_cast<Outcome>(std::size(kWords)) ? kWords[outcome]
                                                                           : "unknown";
}

}  // namespace

Network::Network(std::shared_ptr<const Library> library)
    : library_(std::move(library)), name_(fmt::format("net plugin {}", library_->name())) {}

Network::~Network() {
  if (begun_) driver().finalize(context_);
}

Result<std::unique_ptr<Network>> Network::open(std::shared_ptr<const Library> library, int rank,
                                               uint64_t communicator) {
  std::unique_ptr<Network> network(new Network(std::move(library)));
  if (Status s = network->begin(rank, communicator); !s.ok()) return s;
  return network;
}

Status Network::try_out(const std::shared_ptr<const Library>& library) {
  PluginsOfProcess& plugins = plugins_of_process();
  const std::lock_guard lock(plugins.proving);
  if (plugins.proved.contains(library->symbol_)) return {};
  const Result<std::unique_ptr<Network>> network = open(library, 0, 0);
  if (network.ok()) plugins.proved.insert(library->symbol_);
  return network.status();
}

Status Network::begin(int rank, uint64_t communicator) {
  if (const Outcome outcome = library_->init(communicator, context_); outcome != 0)
    return failed("init", outcome);
  begun_ = true;
  return choose_device(rank);
}

Status Network::choose_device(int rank) {
  int count = 0;
  if (const Outcome outcome = driver().devices(count); outcome != 0)
    return failed("devices", outcome);
  std::vector<std::pair<int, DeviceProperties>> fastest;
  for (int device = 0; device < count; ++device) {
    DeviceProperties properties;
    if (const Outcome outcome = driver().properties(device, properties); outcome != 0)
      return failed("getProperties", outcome);
    if (!properties.host_memory || properties.largest_message < kLeastMessage) continue;
    if (!fastest.empty() && properties.speed_mbps < fastest.front().second.speed_mbps) continue;
    if (!fastest.empty() && properties.speed_mbps > fastest.front().second.speed_mbps)
      fastest.clear();
    fastest.emplace_back(device, std::move(properties));
  }
  if (fastest.empty()) {
    return Status::error(Code::kInvalidUsage,
                         "{}: none of its {} devices sends host memory (NCCL_PTR_HOST) in messages "
                         "of {} bytes or more",
                         name_, count, kLeastMessage);
  }
  auto& [device, properties] = fastest[static_cast<size_t>(rank) % fastest.size()];
  device_ = device;
  properties_ = std::move(properties);
  name_ += fmt::format(", device {} ({})", device_, properties_.name);
  return {};
}

Status Network::failed(const char* function, Outcome outcome) const {
  return Status::error(Code::kInvalidUsage,
                       "{}: its {}() failed with result {} ({}); NCCL_NET_PLUGIN=none does without",
                       name_, function, outcome, words_for(outcome));
}

Status Network::failure(const char* function, Outcome outcome, const std::string& peer) const {
  return Status::error(
      Code::kRemote,
      "the connection with {} ended: {}: its {}() failed with result {} ({}). What "
      "the plugin says of it is in the log (NCCL_DEBUG=INFO)",
      peer, name_, function, outcome, words_for(outcome));
}

}  // namespace tessera::net_plugin
