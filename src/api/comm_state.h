// Everything api/ keeps of one communicator.
//
// Who may touch what (the locks are those of the communicator's slot, see handles.h):
//   constant     settings, clique, device: set before the handle exists
//   both locks   comm, phase, init_error: written under Slot::call and Slot::state, read under
//   either Slot::call   ordered, operations, registrations, derived own locks    turns, progress,
//   worker
#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "api/cliques.h"
#include "api/operations.h"
#include "api/progress.h"
#include "api/settings.h"
#include "api/streams.h"
#include "api/turns.h"
#include "comm/communicator.h"

namespace tessera::api {

enum class Phase : uint8_t {
  kInitialising,  // comm is null
  kReady,
  kFailed,  // initialisation failed; init_error tells why
  kRevoked,
  kFinalized,
};

// Windows and registered buffers by the handle the user holds.
struct Registrations {
  std::unordered_map<uintptr_t, uint64_t> windows;
  std::unordered_map<uintptr_t, size_t> buffers;
  uint32_t next = 1;
};

struct CommState {
  CommState(Settings the_settings, std::shared_ptr<Clique> the_clique, int the_device)
      : settings(std::move(the_settings)), clique(std::move(the_clique)), device(the_device) {
    clique->join();
  }
  ~CommState() { clique->leave(phase == Phase::kFinalized); }
  CommState(const CommState&) = delete;
  CommState& operator=(const CommState&) = delete;

  bool blocking() const { return settings.blocking(); }
  // For messages: communicator "tp" rank 3.
  std::string label() const;

  const Settings settings;
  const std::shared_ptr<Clique> clique;
  const int device;

  std::shared_ptr<Communicator> comm;
  Phase phase = Phase::kInitialising;
  Status init_error;

  bool ordered = false;  // some operation was asynchronous: from then on everything takes its turn
  Operations operations;
  Registrations registrations;
  // Splits and shrinks so far by who makes them together (DeriveRequest::callers): equal on those
  // ranks.
  std::unordered_map<uint64_t, uint64_t> derived;

  Turns turns;
  Progress progress;
  std::shared_ptr<Stream> worker;  // of a non-blocking communicator; set before the handle exists
};

}  // namespace tessera::api
