// ncclRedOpCreatePreMulSum and ncclRedOpDestroy.
#include "api/errors.h"
#include "api/export.h"
#include "api/groups.h"
#include "api/handles.h"

namespace tessera::api {
namespace {

Status create(ncclRedOp_t* out, const void* scalar, ncclDataType_t type,
              ncclScalarResidence_t residence, ncclComm_t comm) {
  constexpr const char* kFunction = "ncclRedOpCreatePreMulSum";
  Result<CommLock> lock = CommLock::acquire(comm, kFunction);
  if (!lock.ok()) return lock.status();
  if (Status status = check_usable(*lock.value(), kFunction); !status.ok()) return status;
  if (out == nullptr || scalar == nullptr)
    return fail(Code::kInvalidArgument, "{}: op is {}, scalar is {}; neither may be NULL",
                kFunction, static_cast<const void*>(out), scalar);
  if (type < 0 || type >= ncclNumTypes)
    return fail(Code::kInvalidArgument, "{}: data type {} is unknown", kFunction, int{type});
  if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
    return fail(Code::kInvalidArgument, "{}: residence {} is unknown", kFunction, int{residence});
  Result<ncclRedOp_t> op = lock.value()->operations.add_scaled_sum(
      scalar, static_cast<DataType>(type), residence == ncclScalarHostImmediate);
  if (!op.ok()) return op.status();
  *out = op.value();
  return {};
}

Status destroy(ncclRedOp_t op, ncclComm_t comm) {
  Result<CommLock> lock = CommLock::acquire(comm, "ncclRedOpDestroy");
  if (!lock.ok()) return lock.status();
  if (op >= 0 && op < ncclNumOps)
    return fail(Code::kInvalidArgument,
                "ncclRedOpDestroy: {} is built in; only operations from "
                "ncclRedOpCreatePreMulSum can be destroyed",
                int{op});
  return lock.value()->operations.remove(op);
}

}  // namespace
}  // namespace tessera::api

TSR_API(ncclResult_t, RedOpCreatePreMulSum,
        (ncclRedOp_t * op, void* scalar, ncclDataType_t datatype, ncclScalarResidence_t residence,
         ncclComm_t comm)) {
  using namespace tessera::api;
  return entry([&] { return create(op, scalar, datatype, residence, comm); });
}
TSR_API(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm)) {
  using namespace tessera::api;
  return entry([&] { return destroy(op, comm); });
}
