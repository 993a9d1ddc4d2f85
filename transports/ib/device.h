// An open port of an RDMA device, with what all connections over it share: protection domain,
// completion queue, address.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "transports/ib/gid.h"
#include "transports/ib/verbs.h"

namespace tessera::ib {

class Device {
 public:
  // Ports that are active and that NCCL_IB_HCA lets pass, by name; at most `most`. None: `why_none`
  // says why. `completions`: so many may wait in a completion queue at once.
  static std::vector<std::unique_ptr<Device>> open_all(const Verbs& verbs, const Config& config,
                                                       int completions, size_t most,
                                                       std::string& why_none);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Verbs& verbs() const { return verbs_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  ibv_cq* completions() const { return queue_; }
  const ibv_port_attr& attributes() const { return attributes_; }
  uint8_t port() const { return port_; }
  int gid_index() const { return gid_index_; }
  const Gid& gid() const { return gid_; }
  bool ethernet() const { return attributes_.link_layer == IBV_LINK_LAYER_ETHERNET; }
  const std::string& name() const { return name_; }  // "mlx5_0:1"
  std::string to_text() const;                       // "mlx5_0:1 (GID 10.0.0.1)"

  // What was completed since; takes no time. The span is valid until the next call.
  std::span<const ibv_wc> poll();
  // From now on the next completion makes event_fd() readable. True if there are some already:
  // poll() returns them.
  bool arm();
  int event_fd() const { return channel_->fd; }
  int async_fd() const { return context_->async_fd; }
  // Reports events of the device that came, in the log. True if the port, or the device, is of no
  // use any more.
  bool take_async_events(int rank);

 private:
  static constexpr int kPolledAtOnce = 32;

  Device(const Verbs& verbs, ibv_context* context, std::string name, uint8_t port);
  std::string open(const Config& config, int completions);
  void choose_gid(int wanted);
  void drain_events();

  const Verbs& verbs_;
  ibv_context* context_;
  std::string name_;
  uint8_t port_;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_port_attr attributes_{};
  int gid_index_ = -1;
  Gid gid_{};
  bool armed_ = false;
  int early_ = 0;  // completions that arm() found
  ibv_wc polled_[kPolledAtOnce];
};

}  // namespace tessera::ib
