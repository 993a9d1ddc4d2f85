// The whole of a perf program: arguments to exit code.
#pragma once

namespace tessera::perf {

int run_program(int argc, char** argv);

}  // namespace tessera::perf
