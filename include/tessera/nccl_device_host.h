/* The host side of NCCL 2.28.9's device API, for programs built without the toolkit's
 * nccl_device.h. C99 and C++.
 *
 * Kernels that communicate by themselves do not exist on host ranks: the functions that would set
 * them up return ncclInvalidUsage with a text that says so. They exist so that programs which link
 * them start. Teams are real. Include either this header or nccl_device.h, not both. Thread safety:
 * as nccl.h. */
#ifndef TESSERA_NCCL_DEVICE_HOST_H_
#define TESSERA_NCCL_DEVICE_HOST_H_

#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclDevComm ncclDevComm_t;
typedef struct ncclDevCommRequirements ncclDevCommRequirements_t;
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;

/* Ranks rank + k * stride of a communicator, seen from one of them. */
typedef struct ncclTeam {
  int nRanks;
  int rank;
  int stride;
} ncclTeam_t;

/* ncclInvalidUsage on host ranks. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t* requirements,
                               ncclDevComm_t* outDevComm);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t* devComm);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                             ncclGinBarrierHandle_t* outHandle,
                                             ncclDevResourceRequirements_t* outReq);
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
                                             ncclLsaBarrierHandle_t* outHandle,
                                             ncclDevResourceRequirements_t* outReq);
ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle,
                                        ncclDevResourceRequirements_t* outReq);

/* Slots of eight bytes that maxElts elements of maxEltSize bytes take; 0 for negative arguments. */
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);

/* All ranks; those whose memory this rank can load and store (host ranks: all); those with the same
 * place among such (host ranks: this rank alone). A bad communicator gives a team of zero ranks. */
ncclTeam_t ncclTeamWorld(ncclComm_t comm);
ncclTeam_t ncclTeamLsa(ncclComm_t comm);
ncclTeam_t ncclTeamRail(ncclComm_t comm);

/* The rank in the world, or in the Lsa team, of a rank of `team`; -1 when the communicator is bad.
 */
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);

ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t* requirements,
                                ncclDevComm_t* outDevComm);
ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t* devComm);
ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                              ncclGinBarrierHandle_t* outHandle,
                                              ncclDevResourceRequirements_t* outReq);
ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
                                              ncclLsaBarrierHandle_t* outHandle,
                                              ncclDevResourceRequirements_t* outReq);
ncclResult_t pncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle,
                                         ncclDevResourceRequirements_t* outReq);
int pncclLLA2ACalcSlots(int maxElts, int maxEltSize);
ncclTeam_t pncclTeamWorld(ncclComm_t comm);
ncclTeam_t pncclTeamLsa(ncclComm_t comm);
ncclTeam_t pncclTeamRail(ncclComm_t comm);
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_NCCL_DEVICE_HOST_H_ */
