// libibverbs, loaded when a process first wants it: the library runs without it.
//
// Only functions that libibverbs exports are listed; posting and polling are inline functions of
// <infiniband/verbs.h> that go through the device's own table.
// Thread safety: load() from any thread; the functions as libibverbs has them.
#pragma once

#include <infiniband/verbs.h>

#include "base/status.h"

namespace tessera::ib {

struct Verbs {
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
  decltype(&::ibv_event_type_str) event_type_str;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port_compat;  // fills the first part of ibv_port_attr
  decltype(&::ibv_query_gid) query_gid;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  decltype(&::ibv_reg_mr) reg_mr;
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_wc_status_str) wc_status_str;

  // 0, or an errno.
  int query_port(ibv_context* context, uint8_t port, ibv_port_attr& attributes) const;

  // The process's one table, never unloaded. kSystem: there is no libibverbs.so.1, or an older one.
  static Result<const Verbs*> load();
};

}  // namespace tessera::ib
