#include "transports/ib/queue_pair.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera::ib {
namespace {

constexpr uint32_t kWantedInline = 192;  // a message with a slot's data and its signal
constexpr uint8_t kReceiverRetries = 7;  // without limit; credits keep receivers ready
constexpr uint8_t kReceiverDelay = 12;   // 0.64 ms
constexpr uint8_t kHopLimit = 255;

Status failure(const Device& device, const char* what, int error) {
  return Status::error(Code::kSystem, "ib: {}: {}: {}", device.to_text(), what,
                       std::strerror(error));
}

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(Device& device, int sends, int receives) {
  std::unique_ptr<QueuePair> made(new QueuePair(device));
  if (Status status = made->create_pair(sends, receives); !status.ok()) return status;
  return made;
}

Status QueuePair::create_pair(int sends, int receives) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = device_.completions();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap = {static_cast<uint32_t>(sends), static_cast<uint32_t>(receives), 1, 1, kWantedInline};
  pair_ = device_.verbs().create_qp(device_.domain(), &wanted);
  if (pair_ == nullptr) {  // a device may not know inline data
    wanted.cap = {static_cast<uint32_t>(sends), static_cast<uint32_t>(receives), 1, 1, 0};
    pair_ = device_.verbs().create_qp(device_.domain(), &wanted);
  }
  if (pair_ == nullptr) return failure(device_, "no queue pair", errno);
  inline_bytes_ = wanted.cap.max_inline_data;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = device_.port();
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int error = device_.verbs().modify_qp(
      pair_, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return failure(device_, "the queue pair cannot be initialised", error);
  if (::getrandom(&first_packet_, sizeof first_packet_, 0) != sizeof first_packet_)
    return failure(device_, "getrandom", errno);
  first_packet_ &= 0xffffff;
  return {};
}

QueuePair::~QueuePair() {
  if (pair_ != nullptr) device_.verbs().destroy_qp(pair_);
}

LaneOffer QueuePair::offer() const {
  return {pair_->qp_num,
          first_packet_,
          device_.gid(),
          device_.attributes().lid,
          static_cast<uint8_t>(device_.attributes().active_mtu),
          device_.ethernet()};
}

Status QueuePair::connect(const LaneOffer& remote, const Config& config) {
  remote_ = remote;
  if ((remote.ethernet != 0) != device_.ethernet())
    return failure(device_, "the peer's port is of another kind of network", EPROTOTYPE);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(
      std::min<uint8_t>(remote.mtu, static_cast<uint8_t>(device_.attributes().active_mtu)));
  attributes.dest_qp_num = remote.number;
  attributes.rq_psn = remote.first_packet;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kReceiverDelay;
  ibv_ah_attr& address = attributes.ah_attr;
  address.port_num = device_.port();
  address.sl = static_cast<uint8_t>(config.ib_service_level);
  address.dlid = remote.lid;
  address.is_global = device_.ethernet() ? 1 : 0;
  if (device_.ethernet()) {
    std::copy(remote.gid.begin(), remote.gid.end(), address.grh.dgid.raw);
    address.grh.sgid_index = static_cast<uint8_t>(device_.gid_index());
    address.grh.hop_limit = kHopLimit;
    address.grh.traffic_class = static_cast<uint8_t>(config.ib_traffic_class);
  }
  int error = device_.verbs().modify_qp(pair_, &attributes,
                                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                            IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return failure(device_, "no way to the peer's port", error);
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = first_packet_;
  attributes.timeout = static_cast<uint8_t>(config.ib_timeout);
  attributes.retry_cnt = static_cast<uint8_t>(config.ib_retries);
  attributes.rnr_retry = kReceiverRetries;
  attributes.max_rd_atomic = 1;
  error =
      device_.verbs().modify_qp(pair_, &attributes,
                                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  return error == 0 ? Status() : failure(device_, "the queue pair cannot send", error);
}

void QueuePair::stop() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  device_.verbs().modify_qp(pair_, &attributes, IBV_QP_STATE);
}

bool QueuePair::post(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  errno = ibv_post_send(pair_, &request, &bad);
  return errno == 0;
}

bool QueuePair::send(uint64_t id, const void* at, size_t bytes, uint32_t key) {
  ibv_sge part{reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(bytes), key};
  ibv_send_wr request{};
  request.wr_id = id;
  request.sg_list = &part;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = bytes <= inline_bytes_ ? IBV_SEND_INLINE : 0;
  return post(request);
}

bool QueuePair::write(uint64_t id, const void* at, size_t bytes, uint32_t key, uint64_t to,
                      uint32_t to_key) {
  ibv_sge part{reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(bytes), key};
  ibv_send_wr request{};
  request.wr_id = id;
  request.sg_list = &part;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.remote_addr = to;
  request.wr.rdma.rkey = to_key;
  return post(request);
}

bool QueuePair::receive(uint64_t id, void* at, size_t bytes, uint32_t key) {
  ibv_sge part{reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(bytes), key};
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = &part;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  errno = ibv_post_recv(pair_, &request, &bad);
  return errno == 0;
}

}  // namespace tessera::ib
