/* FAILS: every question fails, after the table was spoilt. NOWHERE: chooses what does not exist.
   THREE: the ring with Simple, as a plugin of version 3. Else: looks and changes nothing. */
#include <stddef.h>

#ifdef THREE
#define REGISTERED
#define ncclTunerPlugin_v4 ncclTunerPlugin_v3
#else
#define REGISTERED int registered,
#endif

static int calls;
static float seen[7][3];
int plugin_calls(void) { return calls; }
float plugin_cost(int algorithm, int protocol) { return seen[algorithm][protocol]; }

static int init(size_t ranks, size_t nodes,
                void (*log)(int, unsigned long, const char*, int, const char*, ...),
                void** context) {
  (void)nodes;
  *context = NULL;
  log(3, ~0UL, __FILE__, __LINE__, "ready for %d ranks", (int)ranks);
  return 0;
}
static int ask(void* context, int function, size_t bytes, int operations, float** table,
               int algorithms, int protocols, REGISTERED int* channels) {
  float(*costs)[3] = (float(*)[3])table;
  (void)context, (void)function, (void)bytes, (void)operations, (void)channels;
  ++calls;
  if (algorithms != 7 || protocols != 3 || *channels != 0) return 4;
#ifndef THREE
  if (registered != 0) return 4;
#endif
  for (int a = 0; a < 7; ++a)
    for (int p = 0; p < 3; ++p) seen[a][p] = costs[a][p];
#if defined(FAILS)
  costs[1][2] = 0;
  return 3;
#elif defined(NOWHERE)
  costs[4][2] = 0;
#elif defined(THREE)
  costs[1][2] = 0;
#endif
  return 0;
}
static int destroy(void* context) { return context == NULL ? 0 : 4; }

const struct {
  const char* name;
  int (*init)(size_t, size_t, void (*)(int, unsigned long, const char*, int, const char*, ...),
              void**);
  int (*ask)(void*, int, size_t, int, float**, int, int, REGISTERED int*);
  int (*destroy)(void*);
} ncclTunerPlugin_v4 = {"example four", init, ask, destroy};
