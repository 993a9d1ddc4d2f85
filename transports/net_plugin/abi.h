// The tables of functions that net plugins of NCCL export, versions 8 to 12, as C structures.
//
//   symbol              structure  what is new
//   ncclNetPlugin_v8    NetV8      the oldest that is understood; sizes are ints
//   ncclNetPlugin_v9    NetV9      sizes are size_t, properties know the largest message
//   ncclNetPlugin_v10   NetV10     a callback for profilers; connect() is given a traffic class
//   ncclNetPlugin_v11   NetV11     a context for each communicator, and its end
//   ncclNetPlugin_v12   NetV12     more in the properties
//
// Names are this library's; order and types of the members are NCCL's and must stay. Enumerations
// are ints in the C ABI. What host ranks do not call has a type of no meaning. Thread safety: plain
// data. Source: NCCL's headers for plugins, net_v8.h to net_v12.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::net_plugin::abi {

inline constexpr int kOldest = 8, kNewest = 12;
inline constexpr size_t kHandleBytes = 128;
inline constexpr int kHostPointers = 1;  // of `pointers`, and the type of registered memory
inline constexpr int kHostDevice = 0;    // of `offload`: the processor drives the device
enum LogLevel : int { kLogWarn = 2, kLogInfo = 3, kLogAbort = 4 };

using Outcome = int;  // ncclResult_t; 0 is success
// NOLINTNEXTLINE(google-runtime-int): the type is NCCL's
using Logger = void (*)(int level, unsigned long subsystems, const char* file, int line,
                        const char* format, ...);
using Profiler = Outcome (*)(void** event, int type, void* parent, int64_t plugin, void* data);
using Unused = void (*)();

struct Traffic {
  int traffic_class;
};
inline constexpr Traffic kAnyTraffic{-1};

struct PropertiesV8 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointers;
  int registers_for_all;  // memory, not for one connection
  int speed_mbps;
  int port;
  float latency_us;
  int most_connections;
  int most_receives;  // in one group
  int offload;
  int offload_version;
};

template <int devices>
struct MergedDevices {
  int count;
  int numbers[devices];
};

template <int devices>
struct PropertiesV9On {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointers;
  int registers_for_all;
  int flush;
  int speed_mbps;
  int port;
  float latency_us;
  int most_connections;
  int most_receives;
  int offload;
  int offload_version;
  MergedDevices<devices> merged;
  size_t largest_message;
  size_t largest_collective;
};
using PropertiesV9 = PropertiesV9On<4>;
using PropertiesV10 = PropertiesV9;
struct PropertiesV11 : PropertiesV9On<4> {
  int most_requests_in_one;
};
struct PropertiesV12 : PropertiesV9On<8> {
  int most_requests_in_one;
  int16_t rail;
  int16_t plane;
};
static_assert(sizeof(PropertiesV8) == 64);
static_assert(sizeof(PropertiesV9) == 104);
static_assert(sizeof(PropertiesV11) == 112);
static_assert(sizeof(PropertiesV12) == 128);

using InitV8 = Outcome (*)(Logger log);
using InitV10 = Outcome (*)(Logger log, Profiler profiler);
using InitV11 = Outcome (*)(void** context, uint64_t communicator, const Traffic* traffic,
                            Logger log, Profiler profiler);
using ListenV8 = Outcome (*)(int device, void* handle, void** listening);
using ListenV11 = Outcome (*)(void* context, int device, void* handle, void** listening);
// `offload` points to null: the device is not to be driven by a GPU.
using ConnectV8 = Outcome (*)(int device, void* handle, void** sending, void** offload);
using ConnectV10 = Outcome (*)(int device, const Traffic* traffic, void* handle, void** sending,
                               void** offload);
using ConnectV11 = Outcome (*)(void* context, int device, void* handle, void** sending,
                               void** offload);
using SendV8 = Outcome (*)(void* sending, void* data, int bytes, int tag, void* registration,
                           void** request);
using SendV9 = Outcome (*)(void* sending, void* data, size_t bytes, int tag, void* registration,
                           void** request);
using SendV10 = Outcome (*)(void* sending, void* data, size_t bytes, int tag, void* registration,
                            void* event, void** request);
using ReceiveV8 = Outcome (*)(void* receiving, int count, void** data, int* bytes, int* tags,
                              void** registrations, void** request);
using ReceiveV9 = Outcome (*)(void* receiving, int count, void** data, size_t* bytes, int* tags,
                              void** registrations, void** request);
using ReceiveV10 = Outcome (*)(void* receiving, int count, void** data, size_t* bytes, int* tags,
                               void** registrations, void** events, void** request);

// What all versions have, in this order.
template <class InitFn, class PropertiesT, class ListenFn, class ConnectFn, class SendFn,
          class ReceiveFn>
struct Table {
  using Properties = PropertiesT;

  const char* name;
  InitFn init;
  Outcome (*devices)(int* count);
  Outcome (*properties)(int device, Properties* properties);
  ListenFn listen;
  ConnectFn connect;
  Outcome (*accept)(void* listening, void** receiving, void** offload);
  Outcome (*register_memory)(void* connection, void* data, size_t bytes, int type,
                             void** registration);
  Unused register_dmabuf;
  Outcome (*deregister_memory)(void* connection, void* registration);
  SendFn send;
  ReceiveFn receive;
  Unused flush;
  Outcome (*test)(void* request, int* done, int* bytes);
  Outcome (*close_sending)(void* sending);
  Outcome (*close_receiving)(void* receiving);
  Outcome (*close_listening)(void* listening);
  Unused device_registration;
  Unused consumed;
};

struct NetV8 : Table<InitV8, PropertiesV8, ListenV8, ConnectV8, SendV8, ReceiveV8> {
  static constexpr int kVersion = 8;
};
struct NetV9 : Table<InitV8, PropertiesV9, ListenV8, ConnectV8, SendV9, ReceiveV9> {
  static constexpr int kVersion = 9;
  Unused merge_devices;
};
struct NetV10 : Table<InitV10, PropertiesV10, ListenV8, ConnectV10, SendV10, ReceiveV10> {
  static constexpr int kVersion = 10;
  Unused merge_devices;
};
template <class PropertiesT>
struct NetV11To12 : Table<InitV11, PropertiesT, ListenV11, ConnectV11, SendV10, ReceiveV10> {
  Unused merge_devices;
  Outcome (*finalize)(void* context);
  Unused set_attributes;
};
struct NetV11 : NetV11To12<PropertiesV11> {
  static constexpr int kVersion = 11;
};
struct NetV12 : NetV11To12<PropertiesV12> {
  static constexpr int kVersion = 12;
};
static_assert(sizeof(NetV8) == 19 * sizeof(void*));
static_assert(sizeof(NetV12) == 22 * sizeof(void*));

}  // namespace tessera::net_plugin::abi
