// The reduction operations that a user made for one communicator.
// Thread safety: none; used under the communicator's call lock.
#pragma once

#include <nccl.h>

#include <unordered_map>

#include "base/status.h"
#include "base/types.h"

namespace tessera::api {

class Operations {
 public:
  // Numbers start at a place that depends on the communicator's slot, so that an operation of
  // another communicator is most likely unknown here and is refused.
  explicit Operations(uint32_t slot = 0) : slot_(slot) {}

  Result<ncclRedOp_t> add_scaled_sum(const void* scalar, DataType type, bool immediate);
  Status remove(ncclRedOp_t op);

  // The bits of the factor for an operation on `type`, read now where the scalar is not immediate.
  Result<uint64_t> scalar_of(ncclRedOp_t op, DataType type) const;

 private:
  struct ScaledSum {
    DataType type;
    const void* address;  // null: immediate
    uint64_t bits;
  };
  uint32_t slot_;
  uint32_t next_ = 0;
  std::unordered_map<int, ScaledSum> operations_;
};

}  // namespace tessera::api
