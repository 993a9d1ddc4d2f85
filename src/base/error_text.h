// What an error number of a system call means to a user.
#pragma once

#include <string>

namespace tessera {

// As strerror() says it; where descriptors or memory have run out, followed by the limit that
// applies to this process and how to raise it. Thread safety: any thread.
std::string error_text(int error);

// Descriptors or memory have run out: another way of doing the same would only hide it.
bool ran_out(int error);

}  // namespace tessera
