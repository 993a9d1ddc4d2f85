#include "base/nap.h"

#include <sys/prctl.h>

namespace tessera {

// Where the kernel refuses, sleeps end a little later: nothing to report.
SharpTimer::SharpTimer() : slack_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) {
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

SharpTimer::~SharpTimer() {
  if (slack_ > 0) prctl(PR_SET_TIMERSLACK, slack_, 0, 0, 0);
}

}  // namespace tessera
