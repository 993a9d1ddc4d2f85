// tsrFusedDevice*: the sides of a fused operator for device code.
#include <tessera/tile_device.h>

#include "api/errors.h"
#include "api/export.h"
#include "api/fused.h"
#include "fusion/operator.h"

namespace tessera::api {
namespace {

static_assert(sizeof(PaddedCounter) == TSR_COUNTER_STRIDE);
static_assert(sizeof(Counter) == sizeof(uint64_t) && sizeof(Tally) == sizeof(uint64_t));

// All but the tiles.
Status add_words(tsrFused_t handle, bool input, const char* function, tsrDeviceTiles* out) {
  Result<std::shared_ptr<Fused>> fused = find_fused(handle, function);
  if (!fused.ok()) return fused.status();
  if (input && fused.value()->op->onto()) {
    return fail(Code::kInvalidUsage,
                "{}: tiles of this operator are added onto peers, which device code cannot do; "
                "create it without `onto`",
                function);
  }
  const FusedOperator::DeviceSide side = fused.value()->op->device_side(input);
  out->chunks = side.chunks->cut();
  out->counters = reinterpret_cast<char*>(side.counters);
  out->tallies = reinterpret_cast<uint64_t*>(side.tallies);
  out->launches = reinterpret_cast<const uint64_t*>(side.launches);
  out->first_pass = side.first_pass;
  out->timeout_ns = static_cast<uint64_t>(side.timeout.count());
  return {};
}

ncclResult_t fill(tsrFused_t op, bool input, void* matrix, tsrDeviceTiles* tiles,
                  const char* function) {
  if (tiles == nullptr) {
    return entry([&] { return fail(Code::kInvalidArgument, "{}: tiles is NULL", function); });
  }
  tsrDeviceTiles filled = {};
  const ncclResult_t words = entry([&] { return add_words(op, input, function, &filled); });
  if (words != ncclSuccess) return words;
  const auto fill_tiles = input ? tsrFusedInput : tsrFusedOutput;
  const ncclResult_t result = fill_tiles(op, matrix, &filled.tiles);
  if (result == ncclSuccess) *tiles = filled;
  return result;
}

}  // namespace
}  // namespace tessera::api

using tessera::api::fill;

extern "C" TSR_VISIBLE ncclResult_t tsrFusedDeviceInput(tsrFused_t op, void* input,
                                                        tsrDeviceTiles* tiles) {
  return fill(op, true, input, tiles, "tsrFusedDeviceInput");
}

extern "C" TSR_VISIBLE ncclResult_t tsrFusedDeviceOutput(tsrFused_t op, void* output,
                                                         tsrDeviceTiles* tiles) {
  return fill(op, false, output, tiles, "tsrFusedDeviceOutput");
}
