#include <mutex>
#include <new>
#include <unordered_map>

#include "api/errors.h"
#include "api/fused.h"
#include "api/handles.h"
#include "fusion/operator.h"

namespace tessera::api {
namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<uintptr_t, std::shared_ptr<Fused>> operators;
  uintptr_t next = 1;
};

// Never destroyed: operators may be in use while the process ends.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

Result<std::shared_ptr<Fused>> find_fused(tsrFused_t handle, const char* function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.operators.find(reinterpret_cast<uintptr_t>(handle));
  if (found != all.operators.end()) return found->second;
  return fail(Code::kInvalidArgument,
              "{}: operator {} is not one that tsrFusedCreate returned, or was destroyed", function,
              static_cast<const void*>(handle));
}

tsrFused_t add_fused(std::shared_ptr<Fused> fused) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const uintptr_t number = kFusedTag << kHandleTagShift | all.next++;
  all.operators.emplace(number, std::move(fused));
  return reinterpret_cast<tsrFused_t>(number);
}

void drop_fused(tsrFused_t handle) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.operators.erase(reinterpret_cast<uintptr_t>(handle));
}

void forget_fused_after_fork() {
  Registry& all = registry();
  // The lock may be held by a thread that does not exist here: everything is left behind.
  new (&all.mutex) std::mutex;
  new (&all.operators) decltype(all.operators);
}

}  // namespace tessera::api
