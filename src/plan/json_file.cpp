#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "plan/json.h"

namespace tessera {
namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Status unreadable(const std::string& name, int error) {
  return Status::error(Code::kInvalidArgument, "plan file {}: cannot be read: {}", name,
                       std::generic_category().message(error));
}

}  // namespace

Result<Plan> read_plan(const std::string& text_or_file) {
  const size_t begin = text_or_file.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && text_or_file[begin] == '{') return load_json(text_or_file);
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(text_or_file.c_str(), "rb"));
  if (!file) return unreadable(text_or_file, errno);
  std::string text;
  char part[1 << 16];
  while (const size_t got = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, got);
    if (text.size() > kMaxPlanText) break;  // load_json() says so
  }
  if (std::ferror(file.get()) != 0) return unreadable(text_or_file, errno);
  Result<Plan> plan = load_json(text);
  if (plan.ok()) return plan;
  return Status(plan.status().code(), "plan file " + text_or_file + ": " + plan.status().message());
}

}  // namespace tessera
