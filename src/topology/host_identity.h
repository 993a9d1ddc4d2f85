// Tells whether processes share a host, without trusting the host name: clones of a machine image
// have one name, and containers of one host have many.
//
// The token is compared as a whole. It names
//   boot  the boot of the kernel: a random number drawn at boot, the same in all containers
//   net   the network namespace, to which the sockets belong over which processes pass memory to
//         each other (device and inode number; unique within one boot)
//
// Equal tokens mean: same kernel, and its processes can share memory. Different tokens mean:
// treat as different hosts, which is always right, if sometimes slower.
//
// Two hosts are never taken for one: a part that cannot be read (/proc masked, as by some
// sandboxes) is replaced by a random number of the process, so that the process shares its host
// with its own threads and children only. What no kernel can tell is that a virtual machine was
// resumed twice from one snapshot: both copies have one boot id until they boot again. The host's
// name is part of the token for them; it never joins hosts, it can only part them.
#pragma once

#include <string>

namespace tessera::topology {

// "boot=588aeed0-...;net=4:4026531839;name=node7". `proc` is where procfs is mounted.
std::string host_token(const std::string& proc = "/proc");

}  // namespace tessera::topology
