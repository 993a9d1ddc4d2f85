// How long works would take.
#pragma once

#include <span>

#include "comm/communicator.h"

namespace tessera::api {

// Microseconds: the tuner's estimates (tuner/estimate.h), communicators side by side.
double estimate_microseconds(std::span<const Work> works);

}  // namespace tessera::api
