/* NCCL's interface for net plugins as far as the tests' plugins serve it, in version VERSION. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { kOk = 0, kSystem = 2, kInternal = 3, kArgument = 4 };

typedef void (*Log)(int, unsigned long, const char*, int, const char*, ...);
typedef int (*Profile)(void**, int, void*, int64_t, void*);

#if VERSION >= 10
#define EVENT , void* event
#define EVENTS , void** events
#else
#define EVENT
#define EVENTS
#endif
#if VERSION >= 9
typedef size_t Size;
#else
typedef int Size;
#endif

typedef struct {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointers, global;
#if VERSION >= 9
  int flush;
#endif
  int speed, port;
  float latency;
  int most_comms, most_receives, offload, offload_version;
#if VERSION >= 9
  int merged;
#if VERSION >= 12
  int members[8];
#else
  int members[4];
#endif
  size_t p2p, coll;
#endif
#if VERSION >= 11
  int multi;
#endif
#if VERSION >= 12
  int16_t rail, plane;
#endif
} Properties;

typedef struct {
  const char* name;
#if VERSION >= 11
  int (*init)(void**, uint64_t, const int*, Log, Profile);
#elif VERSION == 10
  int (*init)(Log, Profile);
#else
  int (*init)(Log);
#endif
  int (*devices)(int*);
  int (*properties)(int, Properties*);
#if VERSION >= 11
  int (*listen)(void*, int, void*, void**);
  int (*connect)(void*, int, void*, void**, void**);
#elif VERSION == 10
  int (*listen)(int, void*, void**);
  int (*connect)(int, const int*, void*, void**, void**);
#else
  int (*listen)(int, void*, void**);
  int (*connect)(int, void*, void**, void**);
#endif
  int (*accept)(void*, void**, void**);
  int (*register_)(void*, void*, size_t, int, void**);
  void* register_dmabuf;
  int (*deregister)(void*, void*);
  int (*isend)(void*, void*, Size, int, void* EVENT, void**);
  int (*irecv)(void*, int, void**, Size*, int*, void** EVENTS, void**);
  void* flush;
  int (*test)(void*, int*, int*);
  int (*close_send)(void*);
  int (*close_receive)(void*);
  int (*close_listen)(void*);
  void* device_registration;
  void* consumed;
#if VERSION >= 9
  void* merge;
#endif
#if VERSION >= 11
  int (*finalize)(void*);
  void* attributes;
#endif
} Net;
