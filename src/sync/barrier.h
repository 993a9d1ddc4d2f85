// Barriers on other processors' behalf, by the kernel's membarrier: what makes a lock or a sleeper
// pay, so that the hurried other side needs no fence of its own.
//
// A barrier hits every processor that runs a thread of a registered process (of this process only,
// process_barrier()) while the call lasts: of any two accesses, in program order, of such a thread
// at least the first is complete or at least the second comes after the barrier.
//
// Thread safety: any thread. Source: membarrier(2); Linux, Documentation on expedited membarrier.
#pragma once

namespace tessera {

// Makes this process's threads subject to the barriers; call before they rely on one. Idempotent;
// may take milliseconds the first time (the kernel waits for a grace period). False where the
// kernel does not let it: then global barriers do not hit this process.
bool register_for_barriers();

// On all registered processes; without effect where the kernel has none.
void global_barrier();
bool has_global_barrier();
// On the threads of this process. False where the kernel has none, or it is not registered.
bool process_barrier();

}  // namespace tessera
