// C++: the headers compile and the layout holds.
#include <tessera/fused.h>
#include <tessera/nccl_device_host.h>
#include <tessera/stream.h>
#include <tessera/tile_device.h>

#include <type_traits>

#include "abi/layout.h"

static_assert(alignof(ncclUniqueId) == 1);
static_assert(std::is_trivially_copyable_v<ncclConfig_t>);
static_assert(std::is_trivially_copyable_v<tsrDeviceTiles>);  // a kernel's argument
static_assert(std::is_same_v<tsrStream_t, cudaStream_t>);
