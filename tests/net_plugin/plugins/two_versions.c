/* Exports versions 8 and 12; the older must not be touched. */
#include "sockets.c"

const char ncclNetPlugin_v8[sizeof SYMBOL(VERSION)] = {0};
