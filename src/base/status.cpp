#include "base/status.h"

namespace tessera {

const char* to_string(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kInvalidUsage:
      return "invalid usage";
    case Code::kSystem:
      return "system error";
    case Code::kInternal:
      return "internal error";
    case Code::kRemote:
      return "remote error";
    case Code::kTimeout:
      return "timeout";
    case Code::kInProgress:
      return "in progress";
    case Code::kPlanInvalid:
      return "malformed plan";
    case Code::kPlanCoverage:
      return "plan coverage";
    case Code::kPlanCounter:
      return "plan counter";
    case Code::kPlanDeadlock:
      return "plan deadlock";
    case Code::kPlanRace:
      return "plan race";
  }
  return "unknown code";
}

const std::string& Status::message() const {
  static const std::string empty;
  return ok() ? empty : detail_->message;
}

}  // namespace tessera
