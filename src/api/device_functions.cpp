// The host side of the device API. Kernels that communicate by themselves do not exist on host
// ranks; teams do.
#include <tessera/nccl_device_host.h>

#include "api/errors.h"
#include "api/export.h"
#include "api/handles.h"

namespace tessera::api {
namespace {

ncclResult_t absent(const char* function) {
  return entry([&] {
    return fail(Code::kInvalidUsage,
                "{}: the device API does not exist on host ranks, which no kernel can drive. Use "
                "the collectives of nccl.h.",
                function);
  });
}

// A team of zero ranks when the communicator is bad: these functions cannot return an error.
ncclTeam_t world(ncclComm_t comm, const char* function) {
  Result<CommView> seen = view(comm, function);
  if (!seen.ok() || seen->comm == nullptr) return {0, 0, 0};
  return {seen->comm->size(), seen->comm->rank(), 1};
}

int to_world(ncclComm_t comm, ncclTeam_t team, int rank, const char* function) {
  const ncclTeam_t all = world(comm, function);
  return all.nRanks == 0 ? -1 : all.rank + (rank - team.rank) * team.stride;
}

}  // namespace
}  // namespace tessera::api

using tessera::api::absent;
using tessera::api::to_world;
using tessera::api::world;

TSR_API(ncclResult_t, DevCommCreate,
        (ncclComm_t, const ncclDevCommRequirements_t*, ncclDevComm_t*)) {
  return absent("ncclDevCommCreate");
}
TSR_API(ncclResult_t, DevCommDestroy, (ncclComm_t, const ncclDevComm_t*)) {
  return absent("ncclDevCommDestroy");
}
TSR_API(ncclResult_t, GinBarrierCreateRequirement,
        (ncclComm_t, ncclTeam_t, int, ncclGinBarrierHandle_t*, ncclDevResourceRequirements_t*)) {
  return absent("ncclGinBarrierCreateRequirement");
}
TSR_API(ncclResult_t, LsaBarrierCreateRequirement,
        (ncclTeam_t, int, ncclLsaBarrierHandle_t*, ncclDevResourceRequirements_t*)) {
  return absent("ncclLsaBarrierCreateRequirement");
}
TSR_API(ncclResult_t, LLA2ACreateRequirement,
        (int, int, ncclLLA2AHandle_t*, ncclDevResourceRequirements_t*)) {
  return absent("ncclLLA2ACreateRequirement");
}
TSR_API(int, LLA2ACalcSlots, (int maxElts, int maxEltSize)) {
  if (maxElts < 0 || maxEltSize < 0) return 0;
  return maxElts * (maxEltSize / 8 + (maxEltSize % 8 != 0));
}
TSR_API(ncclTeam_t, TeamWorld, (ncclComm_t comm)) { return world(comm, "ncclTeamWorld"); }
TSR_API(ncclTeam_t, TeamLsa, (ncclComm_t comm)) { return world(comm, "ncclTeamLsa"); }
TSR_API(ncclTeam_t, TeamRail, (ncclComm_t comm)) {
  const ncclTeam_t all = world(comm, "ncclTeamRail");
  return {all.nRanks == 0 ? 0 : 1, 0, all.nRanks};
}
TSR_API(int, TeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank)) {
  return to_world(comm, team, rank, "ncclTeamRankToWorld");
}
TSR_API(int, TeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank)) {
  return to_world(comm, team, rank, "ncclTeamRankToLsa");
}
