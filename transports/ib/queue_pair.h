// A reliable connection over one device: the queue pair and its way through the states.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "base/config.h"
#include "transports/ib/device.h"

namespace tessera::ib {

// What the other end must know of a queue pair. Plain data, sent to the peer as it is.
struct LaneOffer {
  uint32_t number = 0;
  uint32_t first_packet = 0;
  Gid gid{};
  uint16_t lid = 0;
  uint8_t mtu = 0;  // ibv_mtu
  uint8_t ethernet = 0;
};

class QueuePair {
 public:
  // In state INIT: receives can be posted. kSystem.
  static Result<std::unique_ptr<QueuePair>> create(Device& device, int sends, int receives);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  Device& device() const { return device_; }
  LaneOffer offer() const;
  const LaneOffer& remote() const { return remote_; }
  // Connects with the queue pair that made the offer; then both ends may send. kSystem.
  Status connect(const LaneOffer& remote, const Config& config);
  // Nothing comes in or leaves any more; what is posted is completed with errors.
  void stop();

  size_t inline_bytes() const { return inline_bytes_; }
  // Largest piece that one request may move.
  size_t most_bytes() const { return device_.attributes().max_msg_sz; }
  // False: see errno.
  bool send(uint64_t id, const void* at, size_t bytes, uint32_t key);
  bool write(uint64_t id, const void* at, size_t bytes, uint32_t key, uint64_t to, uint32_t to_key);
  bool receive(uint64_t id, void* at, size_t bytes, uint32_t key);

 private:
  explicit QueuePair(Device& device) : device_(device) {}
  Status create_pair(int sends, int receives);
  bool post(ibv_send_wr& request);

  Device& device_;
  ibv_qp* pair_ = nullptr;
  uint32_t first_packet_ = 0;
  size_t inline_bytes_ = 0;
  LaneOffer remote_{};
};

}  // namespace tessera::ib
