#include "transports/ib/verbs.h"

#include <dlfcn.h>

namespace tessera::ib {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";

Result<Verbs> load_table() {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status::error(Code::kSystem, "{}", ::dlerror());
  Verbs verbs{};
  const char* missing = nullptr;
  const auto get = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) missing = name;
  };
  get(verbs.get_device_list, "ibv_get_device_list");
  get(verbs.free_device_list, "ibv_free_device_list");
  get(verbs.get_device_name, "ibv_get_device_name");
  get(verbs.open_device, "ibv_open_device");
  get(verbs.close_device, "ibv_close_device");
  get(verbs.get_async_event, "ibv_get_async_event");
  get(verbs.ack_async_event, "ibv_ack_async_event");
  get(verbs.event_type_str, "ibv_event_type_str");
  get(verbs.query_device, "ibv_query_device");
  get(verbs.query_port_compat, "ibv_query_port");
  get(verbs.query_gid, "ibv_query_gid");
  get(verbs.alloc_pd, "ibv_alloc_pd");
  get(verbs.dealloc_pd, "ibv_dealloc_pd");
  get(verbs.reg_mr, "ibv_reg_mr");
  get(verbs.dereg_mr, "ibv_dereg_mr");
  get(verbs.create_comp_channel, "ibv_create_comp_channel");
  get(verbs.destroy_comp_channel, "ibv_destroy_comp_channel");
  get(verbs.create_cq, "ibv_create_cq");
  get(verbs.destroy_cq, "ibv_destroy_cq");
  get(verbs.get_cq_event, "ibv_get_cq_event");
  get(verbs.ack_cq_events, "ibv_ack_cq_events");
  get(verbs.create_qp, "ibv_create_qp");
  get(verbs.modify_qp, "ibv_modify_qp");
  get(verbs.destroy_qp, "ibv_destroy_qp");
  get(verbs.wc_status_str, "ibv_wc_status_str");
  if (missing != nullptr)
    return Status::error(Code::kSystem, "{} has no {}: it is too old", kLibrary, missing);
  return verbs;
}

}  // namespace

int Verbs::query_port(ibv_context* context, uint8_t port, ibv_port_attr& attributes) const {
  attributes = {};
  return query_port_compat(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
}

Result<const Verbs*> Verbs::load() {
  static const Result<Verbs> table = load_table();
  if (!table.ok()) return table.status();
  return &table.value();
}

}  // namespace tessera::ib
