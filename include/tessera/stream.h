/* Asynchronous streams for host ranks. C99 and C++.
 *
 * A stream runs the operations given to it one after the other, on a thread of its own. Pass it as
 * the stream argument of any NCCL call: the call enqueues and returns. Operations of one
 * communicator run in the order in which they were issued, also when they were issued on different
 * streams; apart from that, streams are independent.
 *
 * Buffers must stay valid until the operation has ended, which tsrStreamSynchronize waits for.
 * Thread safety: every function may be called from any thread.
 * A stream that is NULL, destroyed, or not from tsrStreamCreate gives ncclInvalidArgument here. */
#ifndef TESSERA_STREAM_H_
#define TESSERA_STREAM_H_

#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Not a pointer: a number that names the stream. Of the same type as the stream argument of the
 * NCCL calls. */
typedef cudaStream_t tsrStream_t;

/* Starts a stream. ncclSystemError when no thread can be started. */
ncclResult_t tsrStreamCreate(tsrStream_t* stream);

/* Waits for what was enqueued, then ends the stream. Errors that were not collected are dropped. */
ncclResult_t tsrStreamDestroy(tsrStream_t stream);

/* Waits for everything enqueued so far. Returns the first error since the last call, and forgets
 * it. */
ncclResult_t tsrStreamSynchronize(tsrStream_t stream);

/* ncclInProgress while something is enqueued or running; else as tsrStreamSynchronize. Does not
 * wait. */
ncclResult_t tsrStreamQuery(tsrStream_t stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_STREAM_H_ */
