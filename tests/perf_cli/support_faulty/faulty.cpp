// ncclAllReduce with a defect, chosen by the variable FAULT: "value" flips a bit of the result,
// "before" and "after" write just outside of the receive buffer, "send" changes the input, "hang"
// never returns until the communicator is aborted.
#include <nccl.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::condition_variable changed;
bool aborted = false;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const std::lock_guard lock(mutex);
    aborted = true;
  }
  changed.notify_all();
  return pncclCommAbort(comm);
}

__attribute__((visibility("default"))) ncclResult_t ncclAllReduce(const void* send, void* recv,
                                                                  size_t count, ncclDataType_t type,
                                                                  ncclRedOp_t op, ncclComm_t comm,
                                                                  cudaStream_t stream) {
  const ncclResult_t result = pncclAllReduce(send, recv, count, type, op, comm, stream);
  const char* fault = std::getenv("FAULT");
  const std::string kind = fault == nullptr ? "" : fault;
  auto* bytes = static_cast<unsigned char*>(recv);
  if (kind == "value") bytes[0] ^= 1;
  if (kind == "before") bytes[-1] ^= 1;
  if (kind == "after") bytes[count * 4] ^= 1;  // the tests use a type of 4 bytes
  if (kind == "send") static_cast<unsigned char*>(const_cast<void*>(send))[0] ^= 1;
  if (kind == "hang") {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return aborted; });
    return ncclRemoteError;
  }
  return result;
}

}  // extern "C"
