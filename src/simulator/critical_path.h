// Finds out why a simulation took as long as it did. For simulate.cpp.
#pragma once

#include "simulator/model.h"
#include "simulator/simulate.h"

namespace tessera::simulator {

// From record `last` back to the start. Its times add up to `total_us`.
CriticalPath trace_back(Model& model, const Timeline& timeline, uint32_t last, double total_us);

// "gpu0 -> switch (nvlink)"
std::string link_name(const topology::Graph& graph, int link);

}  // namespace tessera::simulator
