#include "simulator/simulate.h"

#include "simulator/engine.h"

namespace tessera::simulator {
namespace {

Status check(const Source& source, const Routes& routes, const Message& message, const Cost& cost) {
  if (source.ranks() != routes.ranks()) {
    return Status::error(Code::kInvalidArgument,
                         "plan \"{}\" is for {} ranks; on the machine are {}", source.name(),
                         source.ranks(), routes.ranks());
  }
  const auto nodes = static_cast<int>(routes.graph().nodes.size());
  for (int rank = 0; rank < routes.ranks(); ++rank) {
    if (const int node = routes.node(rank); node < 0 || node >= nodes) {
      return Status::error(Code::kInvalidArgument, "rank {} sits on node {} of a graph of {}", rank,
                           node, nodes);
    }
  }
  if (message.element_bytes < 1) {
    return Status::error(Code::kInvalidArgument, "elements of {} bytes: at least 1 is possible",
                         message.element_bytes);
  }
  if (message.slice != 0 && message.count / message.slice > (1u << 24)) {
    return Status::error(Code::kInvalidArgument, "{} elements in slices of {}: too many passes",
                         message.count, message.slice);
  }
  const uint64_t passes = message.slice == 0 ? 1 : message.count / message.slice + 1;
  if (source.steps_per_pass() * passes >= kNoRecord) {
    return Status::error(Code::kInvalidArgument, "{} passes of {} steps are too many to simulate",
                         passes, source.steps_per_pass());
  }
  if (const std::string fault = fault_of(cost); !fault.empty())
    return Status(Code::kInvalidArgument, "cost: " + fault);
  return {};
}

}  // namespace

Result<Outcome> simulate(const Source& source, const Routes& routes, const Message& message,
                         const Cost& cost, const SimulateOptions& options) {
  if (Status status = check(source, routes, message, cost); !status.ok()) return status;
  Engine engine(source, routes, message, cost, options);
  if (Status status = engine.run(); !status.ok()) return status;
  return engine.take_outcome();
}

}  // namespace tessera::simulator
