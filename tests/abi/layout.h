/* The binary layout of NCCL 2.28.9, in a form that C99 and C++17 compile: a wrong line does not
 * compile. */
#ifndef TESSERA_TESTS_ABI_LAYOUT_H_
#define TESSERA_TESTS_ABI_LAYOUT_H_

#include <nccl.h>
#include <stddef.h>

/* C99 has no _Static_assert: an array of negative size does the same. */
#define ABI_JOIN2(a, b) a##b
#define ABI_JOIN(a, b) ABI_JOIN2(a, b)
#define ABI_CHECK(condition) typedef char ABI_JOIN(abi_check_, __LINE__)[(condition) ? 1 : -1]
#define ABI_OFFSET(field, offset) ABI_CHECK(offsetof(ncclConfig_t, field) == (offset))

ABI_CHECK(sizeof(ncclUniqueId) == 128);
ABI_CHECK(NCCL_UNIQUE_ID_BYTES == 128);
ABI_CHECK(sizeof(ncclComm_t) == sizeof(void*));
ABI_CHECK(sizeof(ncclWindow_t) == sizeof(void*));
ABI_CHECK(sizeof(cudaStream_t) == sizeof(void*));

ABI_CHECK(sizeof(ncclConfig_t) == 80);
ABI_OFFSET(size, 0);
ABI_OFFSET(magic, 8);
ABI_OFFSET(version, 12);
ABI_OFFSET(blocking, 16);
ABI_OFFSET(cgaClusterSize, 20);
ABI_OFFSET(minCTAs, 24);
ABI_OFFSET(maxCTAs, 28);
ABI_OFFSET(netName, 32);
ABI_OFFSET(splitShare, 40);
ABI_OFFSET(trafficClass, 44);
ABI_OFFSET(commName, 48);
ABI_OFFSET(collnetEnable, 56);
ABI_OFFSET(CTAPolicy, 60);
ABI_OFFSET(shrinkShare, 64);
ABI_OFFSET(nvlsCTAs, 68);
ABI_OFFSET(nChannelsPerNetPeer, 72);
ABI_OFFSET(nvlinkCentricSched, 76);

ABI_CHECK(sizeof(ncclSimInfo_t) == 24);
ABI_CHECK(offsetof(ncclSimInfo_t, magic) == 8);
ABI_CHECK(offsetof(ncclSimInfo_t, version) == 12);
ABI_CHECK(offsetof(ncclSimInfo_t, estimatedTime) == 16);

ABI_CHECK(sizeof(ncclResult_t) == 4);
ABI_CHECK(ncclSuccess == 0 && ncclUnhandledCudaError == 1 && ncclSystemError == 2);
ABI_CHECK(ncclInternalError == 3 && ncclInvalidArgument == 4 && ncclInvalidUsage == 5);
ABI_CHECK(ncclRemoteError == 6 && ncclInProgress == 7 && ncclNumResults == 8);

ABI_CHECK(sizeof(ncclRedOp_t) == 4);
ABI_CHECK(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4);
ABI_CHECK(ncclNumOps == 5 && ncclMaxRedOp == 0x7fffffff);

ABI_CHECK(sizeof(ncclDataType_t) == 4);
ABI_CHECK(ncclInt8 == 0 && ncclChar == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclInt == 2);
ABI_CHECK(ncclUint32 == 3 && ncclInt64 == 4 && ncclUint64 == 5 && ncclFloat16 == 6);
ABI_CHECK(ncclHalf == 6 && ncclFloat32 == 7 && ncclFloat == 7 && ncclFloat64 == 8);
ABI_CHECK(ncclDouble == 8 && ncclBfloat16 == 9 && ncclFloat8e4m3 == 10 && ncclFloat8e5m2 == 11);
ABI_CHECK(ncclNumTypes == 12);

ABI_CHECK(sizeof(ncclScalarResidence_t) == 4);
ABI_CHECK(ncclScalarDevice == 0 && ncclScalarHostImmediate == 1);

ABI_CHECK(NCCL_VERSION_CODE == 22809 && NCCL_VERSION(2, 28, 9) == 22809);
ABI_CHECK(NCCL_VERSION(2, 8, 4) == 2804);
ABI_CHECK(NCCL_MAJOR == 2 && NCCL_MINOR == 28 && NCCL_PATCH == 9);
ABI_CHECK(NCCL_SPLIT_NOCOLOR == -1);
ABI_CHECK(NCCL_WIN_DEFAULT == 0 && NCCL_WIN_COLL_SYMMETRIC == 1);
ABI_CHECK(NCCL_WIN_REQUIRED_ALIGNMENT == 4096);
ABI_CHECK(NCCL_CTA_POLICY_DEFAULT == 0 && NCCL_CTA_POLICY_EFFICIENCY == 1);
ABI_CHECK(NCCL_CTA_POLICY_ZERO == 2);
ABI_CHECK(NCCL_SHRINK_DEFAULT == 0 && NCCL_SHRINK_ABORT == 1 && NCCL_REVOKE_DEFAULT == 0);

#endif /* TESSERA_TESTS_ABI_LAYOUT_H_ */
