// No fused operators on fake communicators.
#include "api/fused.h"

namespace tessera::api {

void forget_fused_after_fork() {}

}  // namespace tessera::api
