#include "common/program.h"

int main(int argc, char** argv) { return tessera::perf::run_program(argc, argv); }
