#include "api/operations.h"

#include <cstring>

#include "api/errors.h"

namespace tessera::api {
namespace {

constexpr uint32_t kNumbersPerSlot = 1u << 16;

uint64_t read_bits(const void* address, DataType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, address, size_of(type));
  return bits;
}

}  // namespace

Result<ncclRedOp_t> Operations::add_scaled_sum(const void* scalar, DataType type, bool immediate) {
  if (operations_.size() >= kNumbersPerSlot)
    return fail(Code::kInvalidUsage,
                "{} reduction operations of one communicator exist; destroy some with "
                "ncclRedOpDestroy",
                operations_.size());
  int number;
  do {
    number = static_cast<int>(ncclNumOps + slot_ * kNumbersPerSlot + next_++ % kNumbersPerSlot);
  } while (operations_.contains(number));
  operations_[number] = {type, immediate ? nullptr : scalar,
                         immediate ? read_bits(scalar, type) : 0};
  return static_cast<ncclRedOp_t>(number);
}

Status Operations::remove(ncclRedOp_t op) {
  if (operations_.erase(static_cast<int>(op)) != 0) return {};
  return fail(Code::kInvalidArgument,
              "reduction operation {} was not created for this communicator, or was destroyed",
              static_cast<int>(op));
}

Result<uint64_t> Operations::scalar_of(ncclRedOp_t op, DataType type) const {
  const auto found = operations_.find(static_cast<int>(op));
  if (found == operations_.end())
    return fail(Code::kInvalidArgument,
                "reduction operation {} was not created for this communicator, or was destroyed",
                static_cast<int>(op));
  const ScaledSum& sum = found->second;
  if (sum.type != type)
    return fail(Code::kInvalidArgument,
                "reduction operation {} has a factor of type {}, but the data are {}",
                static_cast<int>(op), to_string(sum.type), to_string(type));
  return sum.address == nullptr ? sum.bits : read_bits(sum.address, type);
}

}  // namespace tessera::api
