/* Ends the program with the library's own words when a call fails. */
#ifndef EXAMPLES_CHECK_H_
#define EXAMPLES_CHECK_H_

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) check(call, #call)

static inline void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "%s: %s\n%s\n", call, ncclGetErrorString(result), ncclGetLastError(NULL));
  exit(1);
}

#endif /* EXAMPLES_CHECK_H_ */
