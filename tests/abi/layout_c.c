/* C: the headers compile, the layout holds, the initialisers initialise. */
#include <tessera/fused.h>
#include <tessera/nccl_device_host.h>
#include <tessera/stream.h>
#include <tessera/tile_device.h>

#include "abi/layout.h"

ABI_CHECK(sizeof(ncclTeam_t) == 12);
ABI_CHECK(sizeof(tsrTiles) == 136);
ABI_CHECK(sizeof(tsrDeviceTiles) == 216);
ABI_CHECK(sizeof(tsrFusedConfig_t) == 104);

/* In a function of its own, so that the initialisers are compiled as C. */
int abi_initialisers_hold(void);
int abi_initialisers_hold(void) {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  return config.size == sizeof(config) && config.magic == 0xcafebeefu &&
         config.version == NCCL_VERSION_CODE && config.blocking == NCCL_CONFIG_UNDEF_INT &&
         config.netName == NULL && config.splitShare == NCCL_CONFIG_UNDEF_INT &&
         config.trafficClass == NCCL_CONFIG_UNDEF_INT && config.commName == NULL &&
         config.nvlinkCentricSched == NCCL_CONFIG_UNDEF_INT && info.size == sizeof(info) &&
         info.magic == 0x74685283u && info.version == NCCL_VERSION_CODE &&
         info.estimatedTime == NCCL_UNDEF_FLOAT;
}
