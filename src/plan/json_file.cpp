#include "base/file.h"
#include "plan/json.h"

namespace tessera {

Result<Plan> read_plan(const std::string& text_or_file) {
  const size_t begin = text_or_file.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text_or_file[begin] == '{') return load_json(text_or_file);
  const Result<std::string> text = read_file(text_or_file, kMaxPlanText);
  // The name is an argument.
  if (!text.ok()) return Status(Code::kInvalidArgument, "plan file " + text.status().message());
  Result<Plan> plan = load_json(text.value());
  if (plan.ok()) return plan;
  return Status(plan.status().code(), "plan file " + text_or_file + ": " + plan.status().message());
}

}  // namespace tessera
