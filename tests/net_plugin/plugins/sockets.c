/* A net plugin for the tests, over Unix sockets, written against the C interface alone. VERSION: of
   the interface, 8 to 12. NO_ISEND: lacks a function. ONLY_GPU: no device for host memory.

   Its faults come from the environment, looked at with every call:
     TEST_NET_RARELY=n      isend and irecv give no request n times of n + 1, nor is a test done
     TEST_NET_LATER=n       connect and accept give null at the first n calls for a connection
     TEST_NET_PIECES=n      a system call moves n bytes at most
     TEST_NET_FAIL=f:n      the n-th call of function f fails with result 2, and all after it
     TEST_NET_DEAF=1        a lost connection is not noticed
   plugin_open() counts what is open: contexts, connections, registrations. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "interface.h"

enum { kRequests = 32 };

static int open_things;
static int inits;
int plugin_open(void) { return __atomic_load_n(&open_things, __ATOMIC_SEQ_CST); }
int plugin_inits(void) { return __atomic_load_n(&inits, __ATOMIC_SEQ_CST); }
static void count(int by) { __atomic_add_fetch(&open_things, by, __ATOMIC_SEQ_CST); }

static int number(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? 0 : atoi(text);
}

static int fails(const char* function) {
  static int calls;
  const char* text = getenv("TEST_NET_FAIL");
  const size_t length = strlen(function);
  if (text == NULL || strncmp(text, function, length) != 0 || text[length] != ':') {
    if (text == NULL) __atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
    return 0;
  }
  return __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) >= atoi(text + length + 1);
}

static int rarely(void) {
  static __thread uint32_t state = 1;
  const int n = number("TEST_NET_RARELY");
  state = state * 1664525 + 1013904223; /* by chance: no rhythm that callers could fall into */
  return n > 0 && (state >> 16) % (uint32_t)(n + 1) != 0;
}

struct Comm;
typedef struct {
  struct Comm* comm;
  char* data;
  size_t size;  /* of a receive: the room, then what comes */
  size_t moved; /* header included */
  uint64_t header;
  int done, used;
} Request;
typedef struct Comm {
  int fd, sends;
  unsigned first, next; /* of the requests that are not done */
  Request requests[kRequests];
} Comm;
typedef struct {
  int fd, later;
} Listener;
typedef struct {
  void* data;
  size_t size;
} Registration;

#if VERSION >= 11
static int finalize(void* context) {
  free(context);
  count(-1);
  return kOk;
}

static int init(void** context, uint64_t communicator, const int* traffic_class, Log log,
                Profile profile) {
  (void)communicator;
  if (*traffic_class != -1 || profile == NULL) return kArgument;
#elif VERSION == 10
static int init(Log log, Profile profile) {
  if (profile == NULL) return kArgument;
#else
static int init(Log log) {
#endif
  if (fails("init")) return kSystem;
  __atomic_add_fetch(&inits, 1, __ATOMIC_SEQ_CST);
#if VERSION >= 11
  *context = malloc(1);
  count(1);
#endif
  log(3, ~0UL, __FILE__, __LINE__, "version %d is ready", VERSION);
  return kOk;
}

static int devices(int* count) {
  *count = 3;
  return kOk;
}

/* Device 2 is the fastest that knows host memory. */
static int properties(int device, Properties* p) {
  static char* names[] = {"slow0", "gpu1", "fast2"};
  memset(p, 0, sizeof *p);
  p->name = names[device];
  p->pointers = device == 1 ? 2 : 3;
#ifdef ONLY_GPU
  p->pointers = 2;
#endif
  p->speed = device == 0 ? 1000 : 10000;
  p->most_comms = 1024;
  p->most_receives = 1;
#if VERSION >= 9
  p->p2p = VERSION == 9 ? 5000 : (size_t)1 << 30;
  p->coll = p->p2p;
#endif
#if VERSION >= 12
  p->rail = p->plane = -1;
#endif
  return device < 0 || device > 2 ? kArgument : kOk;
}

static int new_socket(void) {
  return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

#if VERSION >= 11
static int listen_(void* context, int device, void* handle, void** out) {
  if (context == NULL) return kArgument;
#else
static int listen_(int device, void* handle, void** out) {
#endif
  if (device != 2) return kArgument;
  if (fails("listen")) return kSystem;
  Listener* listener = calloc(1, sizeof *listener);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  socklen_t bytes = sizeof address;
  listener->fd = new_socket();
  if (bind(listener->fd, (struct sockaddr*)&address, sizeof(sa_family_t)) != 0 ||
      listen(listener->fd, 16) != 0 ||
      getsockname(listener->fd, (struct sockaddr*)&address, &bytes) != 0)
    return kSystem;
  const uint32_t length = bytes;
  memset(handle, 0, 128);
  memcpy(handle, &length, sizeof length);
  memcpy((char*)handle + sizeof length, &address, length);
  /* the rest of the handle is the connecting side's: how often it has tried */
  count(1);
  *out = listener;
  return kOk;
}

static Comm* new_comm(int fd, int sends) {
  Comm* comm = calloc(1, sizeof *comm);
  comm->fd = fd;
  comm->sends = sends;
  count(1);
  return comm;
}

#if VERSION >= 11
static int connect_(void* context, int device, void* handle, void** out, void** offload) {
  if (context == NULL) return kArgument;
#elif VERSION == 10
static int connect_(int device, const int* traffic_class, void* handle, void** out,
                    void** offload) {
  if (*traffic_class != -1) return kArgument;
#else
static int connect_(int device, void* handle, void** out, void** offload) {
#endif
  if (device != 2 || *offload != NULL) return kArgument;
  *out = NULL;
  if (fails("connect")) return kSystem;
  int* tries = (int*)((char*)handle + 124);
  if ((*tries)++ < number("TEST_NET_LATER")) return kOk;
  uint32_t length;
  struct sockaddr_un address;
  memcpy(&length, handle, sizeof length);
  if (length > sizeof address) return kArgument;
  memcpy(&address, (char*)handle + sizeof length, length);
  const int fd = new_socket();
  if (connect(fd, (struct sockaddr*)&address, length) == 0) {
    *out = new_comm(fd, 1);
    return kOk;
  }
  const int error = errno;
  close(fd);
  return error == EAGAIN ? kOk : kSystem;
}

static int accept_(void* listening, void** out, void** offload) {
  Listener* listener = listening;
  *out = NULL;
  if (*offload != NULL) return kArgument;
  if (fails("accept")) return kSystem;
  if (listener->later++ < number("TEST_NET_LATER")) return kOk;
  const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return errno == EAGAIN ? kOk : kSystem;
  *out = new_comm(fd, 0);
  return kOk;
}

static int register_(void* comm, void* data, size_t size, int type, void** out) {
  if (comm == NULL || type != 1) return kArgument;
  if (fails("regMr")) return kSystem;
  Registration* registration = malloc(sizeof *registration);
  registration->data = data;
  registration->size = size;
  count(1);
  *out = registration;
  return kOk;
}
static int deregister(void* comm, void* registration) {
  (void)comm;
  free(registration);
  count(-1);
  return kOk;
}

static int covers(const Registration* registration, const char* data, size_t size) {
  const char* base = registration->data;
  return data >= base && size <= registration->size &&
         (size_t)(data - base) <= registration->size - size;
}

static int request(Comm* comm, char* data, size_t size, const Registration* registration,
                   void** out) {
  *out = NULL;
  if (!covers(registration, data, size)) return kInternal;
  Request* r = &comm->requests[comm->next % kRequests];
  if (rarely()) return kOk;
  if (r->used) return kInternal; /* more than NCCL promises */
  memset(r, 0, sizeof *r);
  r->comm = comm;
  r->data = data;
  r->size = r->header = size;
  r->used = 1;
  ++comm->next;
  *out = r;
  return kOk;
}

static int isend(void* comm, void* data, Size size, int tag, void* registration EVENT, void** out) {
  if (tag != 0) return kArgument;
#if VERSION >= 10
  if (event != NULL) return kArgument;
#endif
  if (fails("isend")) return kSystem;
  return request(comm, data, (size_t)size, registration, out);
}

static int irecv(void* comm, int n, void** data, Size* sizes, int* tags,
                 void** registrations EVENTS, void** out) {
  if (n != 1 || tags[0] != 0) return kArgument;
#if VERSION >= 10
  if (events[0] != NULL) return kArgument;
#endif
  if (fails("irecv")) return kSystem;
  return request(comm, data[0], (size_t)sizes[0], registrations[0], out);
}

/* Moves the request's next bytes. 1: all are there, 0: not now, -1: failed. */
static int move(Comm* comm, Request* r) {
  for (;;) {
    const int heads = r->moved < sizeof r->header;
    char* at = heads ? (char*)&r->header + r->moved : r->data + (r->moved - sizeof r->header);
    size_t left = heads ? sizeof r->header - r->moved : r->header + sizeof r->header - r->moved;
    if (left == 0) return 1;
    const int most = number("TEST_NET_PIECES");
    if (most > 0 && left > (size_t)most) left = (size_t)most;
    const ssize_t n = comm->sends ? send(comm->fd, at, left, MSG_NOSIGNAL | MSG_DONTWAIT)
                                  : recv(comm->fd, at, left, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) return number("TEST_NET_DEAF") ? 0 : -1;
    r->moved += (size_t)n;
    if (!comm->sends && r->moved == sizeof r->header && r->header > r->size) return -1;
  }
}

static int test(void* request, int* done, int* sizes) {
  Request* r = request;
  Comm* comm = r->comm;
  *done = 0;
  if (!r->used) return kInternal; /* it was done before */
  if (fails("test")) return kSystem;
  if (rarely()) return kOk;
  while (comm->first != comm->next) {
    Request* head = &comm->requests[comm->first % kRequests];
    const int moved = move(comm, head);
    if (moved < 0 && !r->done) return kSystem;
    if (moved <= 0) break;
    head->done = 1;
    ++comm->first;
  }
  if (!r->done) return kOk;
  *done = 1;
  if (sizes != NULL) *sizes = (int)r->header;
  r->used = 0;
  return kOk;
}

static int close_comm(void* comm) {
  close(((Comm*)comm)->fd);
  free(comm);
  count(-1);
  return kOk;
}
static int close_listener(void* listener) {
  close(((Listener*)listener)->fd);
  free(listener);
  count(-1);
  return kOk;
}

#ifdef NO_ISEND
#define ISEND NULL
#else
#define ISEND isend
#endif

#define SYMBOL_OF(version) ncclNetPlugin_v##version
#define SYMBOL(version) SYMBOL_OF(version)
const Net SYMBOL(VERSION) = {
  .name = "sockets",
  .init = init,
  .devices = devices,
  .properties = properties,
  .listen = listen_,
  .connect = connect_,
  .accept = accept_,
  .register_ = register_,
  .deregister = deregister,
  .isend = ISEND,
  .irecv = irecv,
  .test = test,
  .close_send = close_comm,
  .close_receive = close_comm,
  .close_listen = close_listener,
#if VERSION >= 11
  .finalize = finalize,
#endif
};
