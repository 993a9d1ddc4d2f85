// Groups: what a thread collects between ncclGroupStart and the outermost ncclGroupEnd.
//
// Thread safety: a group belongs to its thread. Whatever ncclGroupEnd returns, no group is open
// afterwards.
#pragma once

#include <nccl.h>

#include <vector>

#include "api/jobs.h"
#include "api/requests.h"

namespace tessera::api {

// True between ncclGroupStart and the outermost ncclGroupEnd of this thread.
bool in_group();

// Remembers a checked call for the end of the group.
Status collect(const Request& request, const std::shared_ptr<CommState>& state, const Call& call);

// Runs the job now or, inside a group, with the others at its end.
Status run_or_collect(Job job, bool blocking);

// A call inside the open group failed: nothing of it will run. Returns the status.
Status note_in_group(Status status);

}  // namespace tessera::api
