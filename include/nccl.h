/* NCCL's C API, version 2.28.9, as tessera implements it. C99 and C++; the binary interface is
 * NCCL's.
 *
 * The ranks of a communicator may be plain host memory (host ranks). Then
 *   - every buffer is ordinary memory of the process; ncclMemAlloc gives memory that peers can map;
 *   - stream NULL, and any stream that tsrStreamCreate (tessera/stream.h) did not create, means:
 * the operation is complete before the call, or the outermost ncclGroupEnd, returns;
 *   - "device" in the names below is the rank's place among the host ranks of its process, nothing
 * else.
 *
 * CUDA: the toolkit's headers are included where the compiler finds them, as NCCL's own header
 * does. Without them, or with TESSERA_NO_CUDA defined, cudaStream_t is declared here as the same
 * opaque pointer; cuda_runtime.h may still be included, before or after. A HIP compiler sees HIP's
 * stream under that name.
 *
 * Thread safety: every function may be called from any thread. Calls on one communicator are
 * serialised; ncclCommAbort, ncclCommRevoke and ncclCommGetAsyncError do not wait for a call that
 * is in progress. Group state belongs to the calling thread.
 *
 * Errors: ncclSuccess or a code. The text of the last failure, with cause, ids and a hint:
 * ncclGetLastError. A handle that is NULL, stale or not a handle at all gives ncclInvalidArgument;
 * its memory is never touched.
 *
 * Every function exists as ncclX (weak) and pncclX (strong), so that a profiler may define ncclX
 * and call pncclX. */
#ifndef NCCL_H_
#define NCCL_H_

#if !defined(TESSERA_NO_CUDA) && !defined(__HIPCC__) && defined(__has_include)
#if __has_include(<cuda_runtime.h>) && __has_include(<cuda_fp16.h>)
#define TESSERA_HAS_CUDA_HEADERS 1
#endif
#endif

#ifdef TESSERA_HAS_CUDA_HEADERS
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#if CUDART_VERSION >= 11000
#include <cuda_bf16.h>
#endif
#if defined(__cplusplus) && CUDART_VERSION >= 11080
#include <cuda_fp8.h>
#endif
#elif defined(__HIPCC__)
#include <hip/hip_runtime_api.h>
typedef hipStream_t cudaStream_t;
#elif !defined(CUDART_VERSION)
/* The toolkit's own declaration; C11 and C++ accept it twice. */
typedef struct CUstream_st* cudaStream_t;
#endif

#include <limits.h>
#include <stddef.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""

/* Versions up to 2.8 have three digits after the major number, later ones four. */
#define NCCL_VERSION(X, Y, Z) \
  (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE 22809

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---- */

/* A rank's membership in a communicator. Not a pointer: a number that names a slot and its
 * generation. */
typedef struct ncclComm* ncclComm_t;
#define NCCL_COMM_NULL NULL

/* Memory registered by all ranks of a communicator. */
typedef struct ncclWindow_vidmem* ncclWindow_t;

/* Names a communicator to be. Made by one process, passed by the application to all ranks. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,     /* a system call or an allocation failed */
  ncclInternalError = 3,   /* a defect of the library */
  ncclInvalidArgument = 4, /* a parameter is wrong */
  ncclInvalidUsage = 5,    /* wrong in its context: ranks disagree, group misuse */
  ncclRemoteError = 6,     /* a peer died, aborted, or did not answer before the deadline */
  ncclInProgress = 7,      /* not finished; see ncclCommGetAsyncError */
  ncclNumResults = 8
} ncclResult_t;

/* "Not set" in ncclConfig_t and ncclSimInfo_t. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f

/* Colour of a rank that gets no communicator from ncclCommSplit. */
#define NCCL_SPLIT_NOCOLOR -1

/* winFlags of ncclCommWindowRegister. */
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

/* Bits of ncclConfig_t.CTAPolicy. */
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

/* shrinkFlags of ncclCommShrink. ABORT ends the parent's running operations first. */
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01

/* revokeFlags of ncclCommRevoke. */
#define NCCL_REVOKE_DEFAULT 0x00

/* Options of a communicator. Start from NCCL_CONFIG_INITIALIZER; fields left alone keep their
 * default (or, for ncclCommSplit and ncclCommShrink, the parent's value). Fields without meaning
 * for host ranks are checked and otherwise ignored. */
typedef struct ncclConfig_v22800 {
  size_t size; /* set by the initialiser, as are magic and version */
  unsigned int magic;
  unsigned int version;
  int blocking;         /* 1 (default): calls return when done; 0: they may return ncclInProgress */
  int cgaClusterSize;   /* GPU only */
  int minCTAs;          /* GPU only */
  int maxCTAs;          /* GPU only */
  const char* netName;  /* GPU only */
  int splitShare;       /* accepted */
  int trafficClass;     /* accepted */
  const char* commName; /* appears in messages */
  int collnetEnable;    /* GPU only */
  int CTAPolicy;        /* GPU only */
  int shrinkShare;      /* accepted */
  int nvlsCTAs;         /* GPU only */
  int nChannelsPerNetPeer; /* accepted */
  int nvlinkCentricSched;  /* GPU only */
} ncclConfig_t;

/* Order: size, magic, version, then the fields as declared. */
#define NCCL_CONFIG_INITIALIZER                                                         \
  {                                                                                     \
    sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,            \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,            \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,            \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,            \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                                    \
  }

/* What ncclGroupSimulateEnd tells. estimatedTime is in microseconds. */
typedef struct ncclSimInfo_v22200 {
  size_t size; /* set by the initialiser, as are magic and version */
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                        \
  {                                                                                      \
    sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
        NCCL_UNDEF_FLOAT                                                                 \
  }

/* Values from ncclNumOps on name operations of one communicator (ncclRedOpCreatePreMulSum).
 * ncclMaxRedOp makes the enum 4 bytes. */
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4, /* integers: the wrapped sum, divided; floats: the sum of contributions times 1/n */
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

/* When a scalar given by address is read. */
typedef enum {
  ncclScalarDevice = 0, /* whenever an operation uses it (host ranks: at the collective call) */
  ncclScalarHostImmediate = 1 /* before the creating call returns */
} ncclScalarResidence_t;

/* ---- the library ---- */

/* The version code of the API implemented, 22809. */
ncclResult_t ncclGetVersion(int* version);
ncclResult_t pncclGetVersion(int* version);

/* A fixed text for a code; never NULL. */
const char* ncclGetErrorString(ncclResult_t result);
const char* pncclGetErrorString(ncclResult_t result);

/* The last warning of this process, whichever communicator it concerns (comm is ignored, NULL
 * allowed); "" when there was none. At most 1023 characters. The text stays valid until the calling
 * thread calls this function again. */
const char* ncclGetLastError(ncclComm_t comm);
const char* pncclGetLastError(ncclComm_t comm);

/* Does nothing. Kept for programs that still call it. */
__attribute__((deprecated("debug settings are read when a communicator is created"))) void
ncclResetDebugInit(void);
__attribute__((deprecated("debug settings are read when a communicator is created"))) void
pncclResetDebugInit(void);

/* Memory that the peers of any communicator can map: page aligned, zeroed. Collectives on buffers
 * inside it, registered by ncclCommWindowRegister, need no staging copy. size 0 gives NULL. */
ncclResult_t ncclMemAlloc(void** ptr, size_t size);
ncclResult_t pncclMemAlloc(void** ptr, size_t size);

/* Frees what ncclMemAlloc returned; NULL is allowed, anything else is ncclInvalidArgument. */
ncclResult_t ncclMemFree(void* ptr);
ncclResult_t pncclMemFree(void* ptr);

/* ---- communicators ---- */

/* Names a new communicator and starts to serve its rendezvous in the background, until all ranks
 * have joined, one of them has waited for the deadline (TESSERA_TIMEOUT_MS, 30 s by default), or
 * nobody has come for 20 times as long. With NCCL_COMM_ID=host:port set, the address is that one. */
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId);

/* Joins a new communicator as `rank` of `nranks`. Blocks until all ranks have joined. One thread
 * that initialises several ranks puts the calls into one group (or uses ncclCommInitAll); the
 * handles are then valid after ncclGroupEnd. */
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);

/* The same with options; config NULL means the defaults. With blocking = 0 the handle is valid at
 * once, the result is ncclInProgress, and the communicator may be used when ncclCommGetAsyncError
 * reports ncclSuccess. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config);
ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t* config);

/* The same with 1 to nranks ids, all equal in content and order on every rank. Host ranks of one
 * machine meet at the first. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                      ncclUniqueId* commIds, ncclConfig_t* config);
ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                       ncclUniqueId* commIds, ncclConfig_t* config);

/* Makes one communicator whose ndev ranks all belong to the calling process: comm[i] is rank i.
 * devlist NULL means 0 to ndev - 1; otherwise its entries are non-negative and differ. ndev 0 does
 * nothing. Several host ranks in one process need no more than that. */
ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);
ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);

/* Collective over comm. Ranks of equal colour form a new communicator, ordered by key, then by rank
 * in comm. NCCL_SPLIT_NOCOLOR gives *newcomm = NULL; other negative colours are
 * ncclInvalidArgument. config NULL inherits the options of comm. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                            ncclConfig_t* config);

/* Collective over the ranks of comm not listed; works when the listed ones are dead. The list is
 * not modified; it must be non-empty, in range, without duplicates and without the own rank.
 * NCCL_SHRINK_ABORT ends the running operations of comm first. */
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                            ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);
ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                             ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);

/* Collective: waits for the operations of comm and announces that no more will come; only
 * ncclCommDestroy may follow. Several ranks of one process may call it one after the other. NULL is
 * allowed; a second call is ncclInvalidArgument. */
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommFinalize(ncclComm_t comm);

/* Frees the handle after its outstanding operations. Local: never waits for peers. NULL is allowed;
 * a second call is ncclInvalidArgument. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/* Ends this rank's operations soon, tells the peers, frees the handle. Local and bounded in time,
 * also while another thread is inside a call on comm (that call returns ncclRemoteError or
 * ncclInvalidUsage). NULL is allowed. */
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/* Ends this rank's operations soon and tells the peers, but keeps the handle for ncclCommSplit,
 * ncclCommShrink and ncclCommDestroy. Later collectives are ncclInvalidUsage. revokeFlags must be
 * NCCL_REVOKE_DEFAULT. NULL is allowed. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags);

/* The state of comm: ncclInProgress while a non-blocking call or operation runs, then ncclSuccess
 * or the first error. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);

/* Number of ranks. */
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int* count);

/* The device of this rank: the entry of devlist given to ncclCommInitAll, else 0 on a host rank. */
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device);

/* This rank. */
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank);

/* ---- registration ---- */

/* Local. Accepted and remembered; host ranks need no registration of single buffers. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);

/* Undoes ncclCommRegister; handle NULL is allowed. */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle);

/* Collective. Memory from ncclMemAlloc becomes mapped by every peer on this host. Other memory is
 * accepted and gains nothing. buff must be aligned to NCCL_WIN_REQUIRED_ALIGNMENT. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int winFlags);
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                     int winFlags);

/* Collective. Undoes ncclCommWindowRegister; win NULL is allowed. */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/* ---- reduction operations ---- */

/* An operation of comm that multiplies this rank's contribution by *scalar, in `datatype`, before
 * it is summed. The ranks may use different factors. */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm);

/* Ends the handle. Operations already issued, also those of an open group, keep their scalar. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* ---- collectives ---- */

/* Counts are elements, not bytes. Every rank passes the same count, type, operation and root; ranks
 * that differ get ncclInvalidUsage with a text that names both. A count of zero checks the
 * arguments and succeeds. Buffers may overlap only as "in place" says. Return: when the operation
 * is complete (see the top of this file), or when it is enqueued on a stream of tsrStreamCreate.
 * Non-blocking communicators return ncclInProgress; ncclCommGetAsyncError tells the end. */

/* recvbuff of root = the reduction of all sendbuff. recvbuff is used on root only. In place: equal
 * pointers. */
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                         cudaStream_t stream);

/* buff of every rank = buff of root. */
ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream);

/* recvbuff of every rank = sendbuff of root. sendbuff is used on root only. In place: equal
 * pointers. */
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                            ncclDataType_t datatype, int root, ncclComm_t comm,
                            cudaStream_t stream);

/* recvbuff of every rank = the reduction of all sendbuff. In place: equal pointers. */
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                            ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                            cudaStream_t stream);

/* recvbuff of rank r = block r of the reduction of all sendbuff, which hold nranks * recvcount
 * elements. In place: recvbuff == sendbuff + rank * recvcount. */
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream);
ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream);

/* Block r of every recvbuff = sendbuff of rank r. recvbuff holds nranks * sendcount elements. In
 * place: sendbuff == recvbuff + rank * sendcount. */
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                            ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/* Block s of recvbuff on rank r = block r of sendbuff on rank s; blocks hold count elements. Not in
 * place. */
ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/* Block r of recvbuff on root = sendbuff of rank r. In place on root: sendbuff == recvbuff + root *
 * count. */
ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);

/* recvbuff of rank r = block r of sendbuff on root. In place on root: recvbuff == sendbuff + root *
 * count. */
ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);

/* Sends to peer, which must receive the same count and type. Sends and receives that must progress
 * together belong into one group; a send to the own rank needs its receive in the same group. Also
 * with a count of zero. */
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream);

/* Receives what peer sends; see ncclSend. */
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream);

/* ---- groups ---- */

/* Opens a group of this thread; groups nest. Calls inside are checked and collected. */
ncclResult_t ncclGroupStart(void);
ncclResult_t pncclGroupStart(void);

/* Closes a group. The outermost one runs everything collected; all of it progresses together. If
 * any call inside the group failed, nothing runs and the first error is returned. Whatever the
 * result, no group is open afterwards. */
ncclResult_t ncclGroupEnd(void);
ncclResult_t pncclGroupEnd(void);

/* As ncclGroupEnd, but nothing runs: simInfo gets an estimate of the time the group would take,
 * from a rough latency and bandwidth model. NULL is allowed. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* simInfo);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* NCCL_H_ */
