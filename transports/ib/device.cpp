#include "transports/ib/device.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "transports/ib/hca_filter.h"

namespace tessera::ib {
namespace {

constexpr int kMostEmpty = 16;  // in a row, of a table of GIDs; there may be a thousand

void set_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::vector<std::unique_ptr<Device>> Device::open_all(const Verbs& verbs, const Config& config,
                                                      int completions, size_t most,
                                                      std::string& why_none) {
  std::vector<std::unique_ptr<Device>> devices;
  int count = 0;
  ibv_device** list = verbs.get_device_list(&count);
  if (list == nullptr || count == 0) {
    why_none = "no RDMA device";
    if (list != nullptr) verbs.free_device_list(list);
    return devices;
  }
  std::vector<ibv_device*> sorted(list, list + count);
  std::sort(sorted.begin(), sorted.end(), [&](ibv_device* a, ibv_device* b) {
    return std::strcmp(verbs.get_device_name(a), verbs.get_device_name(b)) < 0;
  });
  const HcaFilter filter(config.ib_hca);
  const auto skip = [&](const std::string& what) {
    if (!why_none.empty()) why_none += "; ";
    why_none += what;
  };
  for (ibv_device* found : sorted) {
    const std::string name = verbs.get_device_name(found);
    int ports = 1;
    for (int port = 1; port <= ports && devices.size() < most; ++port) {
      const std::string full = fmt::format("{}:{}", name, port);
      if (!filter.passes(name, port)) {
        skip(fmt::format("{} is not among NCCL_IB_HCA", full));
        continue;
      }
      ibv_context* context = verbs.open_device(found);
      if (context == nullptr) {
        skip(fmt::format("{} cannot be opened: {}", full, std::strerror(errno)));
        break;
      }
      ibv_device_attr attributes{};
      if (verbs.query_device(context, &attributes) == 0) ports = attributes.phys_port_cnt;
      std::unique_ptr<Device> device(new Device(verbs, context, full, static_cast<uint8_t>(port)));
      if (std::string why = device->open(config, completions); !why.empty())
        skip(fmt::format("{} {}", full, why));
      else
        devices.push_back(std::move(device));
    }
  }
  verbs.free_device_list(list);
  return devices;
}

Device::Device(const Verbs& verbs, ibv_context* context, std::string name, uint8_t port)
    : verbs_(verbs), context_(context), name_(std::move(name)), port_(port) {}

Device::~Device() {
  if (queue_ != nullptr) verbs_.destroy_cq(queue_);
  if (channel_ != nullptr) verbs_.destroy_comp_channel(channel_);
  if (domain_ != nullptr) verbs_.dealloc_pd(domain_);
  verbs_.close_device(context_);
}

// Why it cannot be used; empty: it can.
std::string Device::open(const Config& config, int completions) {
  if (verbs_.query_port(context_, port_, attributes_) != 0) return "cannot be asked for its state";
  if (attributes_.state != IBV_PORT_ACTIVE) return "is not active";
  choose_gid(config.ib_gid_index);
  if (ethernet() && gid_ == Gid{}) {
    return config.ib_gid_index >= 0
               ? fmt::format("has no GID number {} (NCCL_IB_GID_INDEX)", config.ib_gid_index)
               : "has no GID: its network interface may have no address";
  }
  domain_ = verbs_.alloc_pd(context_);
  channel_ = verbs_.create_comp_channel(context_);
  if (domain_ == nullptr || channel_ == nullptr)
    return fmt::format("has no more resources: {}", std::strerror(errno));
  queue_ = verbs_.create_cq(context_, completions, nullptr, channel_, 0);
  if (queue_ == nullptr)
    return fmt::format("has no completion queue of {}: {}", completions, std::strerror(errno));
  set_nonblocking(event_fd());
  set_nonblocking(async_fd());
  return {};
}

void Device::choose_gid(int wanted) {
  const std::string folder = fmt::format("/sys/class/infiniband/{}/ports/{}/gid_attrs/types/",
                                         name_.substr(0, name_.rfind(':')), port_);
  std::vector<GidEntry> entries;
  int last_found = 0;
  for (int i = 0; i < attributes_.gid_tbl_len; ++i) {
    ibv_gid raw{};
    if (verbs_.query_gid(context_, port_, i, &raw) != 0) break;
    GidEntry entry{i, {}, GidType::kInfiniBand};
    std::copy(std::begin(raw.raw), std::end(raw.raw), entry.gid.begin());
    if (entry.gid == Gid{} && i > last_found + kMostEmpty) break;
    if (entry.gid == Gid{}) continue;
    last_found = i;
    if (ethernet()) entry.type = gid_type(first_line(folder + std::to_string(i)));
    entries.push_back(entry);
  }
  gid_index_ = wanted >= 0 ? wanted : ethernet() ? best_gid(entries) : 0;
  for (const GidEntry& entry : entries) {
    if (entry.index == gid_index_) gid_ = entry.gid;
  }
}

std::string Device::to_text() const { return fmt::format("{} (GID {})", name_, ib::to_text(gid_)); }

std::span<const ibv_wc> Device::poll() {
  if (early_ > 0 && armed_) drain_events();
  if (early_ > 0) return {polled_, static_cast<size_t>(std::exchange(early_, 0))};
  const int n = ibv_poll_cq(queue_, kPolledAtOnce, polled_);
  if (n <= 0) return {};
  if (armed_) drain_events();
  return {polled_, static_cast<size_t>(n)};
}

bool Device::arm() {
  if (early_ > 0) return true;
  if (armed_) return false;
  drain_events();
  armed_ = ibv_req_notify_cq(queue_, 0) == 0;
  early_ = std::max(ibv_poll_cq(queue_, kPolledAtOnce, polled_), 0);
  return early_ > 0 || !armed_;
}

void Device::drain_events() {
  armed_ = false;
  ibv_cq* queue;
  void* context;
  while (verbs_.get_cq_event(channel_, &queue, &context) == 0) verbs_.ack_cq_events(queue, 1);
}

bool Device::take_async_events(int rank) {
  bool useless = false;
  ibv_async_event event;
  while (verbs_.get_async_event(context_, &event) == 0) {
    const bool own_port = event.element.port_num == port_;
    const char* what = verbs_.event_type_str(event.event_type);
    switch (event.event_type) {
      case IBV_EVENT_DEVICE_FATAL:
        useless = true;
        log::warn(rank, "ib: {} failed: {}", to_text(), what);
        break;
      case IBV_EVENT_PORT_ERR:
        useless = useless || own_port;
        if (own_port) log::warn(rank, "ib: {} went down: {}", to_text(), what);
        break;
      default:
        log::info(rank, "ib: {}: {}", to_text(), what);
        break;
    }
    verbs_.ack_async_event(&event);
  }
  return useless;
}

}  // namespace tessera::ib
