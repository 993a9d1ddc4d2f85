/* Prefers the tree with LL up to 4 KiB and the ring with Simple beyond, by making all else dear,
   and chunks of twice the size. NO_INIT: does not begin. ONLY_ONCE: not for a second rank.
   DIFFERS: two ranks get different answers: 0 one eager, 1 both eager, 2 both bulk. */
#include <stddef.h>
#include <stdint.h>

static int calls;
#if defined ONLY_ONCE || defined DIFFERS
static int begun;
#endif
#ifdef DIFFERS
static int ranks_calls[2];
#endif
int plugin_calls(void) { return calls; }

static int init(void** context, uint64_t communicator, size_t ranks, size_t nodes, void* log,
                int* domains, double* constants) {
  (void)log;
  *context = &calls;
#ifdef NO_INIT
  return 2;
#endif
#ifdef ONLY_ONCE
  if (__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED) > 0) return 2;
#endif
#ifdef DIFFERS
  *context = &ranks_calls[__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED) % 2];
#endif
  constants[143] = 1;
  return communicator != 0 && nodes == 1 && domains[2] == (int)ranks ? 0 : 4;
}
static int ask(void* context, int function, size_t bytes, int operations, float** table,
               int algorithms, int protocols, int registered, int* channels) {
  float(*costs)[3] = (float(*)[3])table;
  (void)function, (void)operations, (void)registered, (void)channels;
  ++*(int*)context;
#ifdef DIFFERS
  const int second = context != ranks_calls;
#endif
  for (int a = 0; a < algorithms; ++a) {
    for (int p = 0; p < protocols; ++p) {
#ifdef DIFFERS
      const int wanted = a == second && p == (DIFFERS == 1 || (DIFFERS == 0 && second) ? 0 : 2);
#else
      const int wanted = bytes <= 4096 ? a == 0 && p == 0 : a == 1 && p == 2;
#endif
      if (costs[a][p] >= 0 && !wanted) costs[a][p] += 1e6f;
    }
  }
  return 0;
}
static int finalize(void* context) {
  (void)context;
  return 0;
}
static int chunk(void* context, int function, size_t bytes, int algorithm, int protocol,
                 int channels, size_t* size) {
  (void)context, (void)function, (void)bytes;
  if (algorithm != 1 || protocol != 2 || channels != 1) return 4;
  *size *= 2;
  return 0;
}

const struct {
  const char* name;
  int (*init)(void**, uint64_t, size_t, size_t, void*, int*, double*);
  int (*ask)(void*, int, size_t, int, float**, int, int, int, int*);
  int (*finalize)(void*);
  int (*chunk)(void*, int, size_t, int, int, int, size_t*);
} ncclTunerPlugin_v6 = {"example six", init, ask, finalize, chunk};
