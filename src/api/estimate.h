// How long works would take.
#pragma once

#include <span>

#include "comm/communicator.h"

namespace tessera::api {

// Microseconds. A rough latency and bandwidth model of host memory: rounds times a fixed latency
// plus the bytes that the busiest rank moves at a fixed rate. Good for comparing groups, not for
// predicting a machine.
double estimate_microseconds(std::span<const Work> works);

}  // namespace tessera::api
