// The site of ranks whose links are emulated: what a communicator chooses by, and what an explanation
// has to assume.
//
// Thread safety: pure function.
#pragma once

#include "transports/emulated/links.h"
#include "tuner/candidate.h"

namespace tessera {

// Sets `hosts` to those of the description, and, if there are several, who is on which and what lies
// between them: that of rank 0 and the first rank of another host. The rest of `site` stays: the
// ranks share this machine's cores.
void describe_emulated(const emulated::Links& links, Site& site);

}  // namespace tessera
