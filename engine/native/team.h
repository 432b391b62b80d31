/* Work shared between threads, and memory that a thread keeps for its next call.

   The threads are those of torch's OpenMP runtime: they wait for work for a while without sleeping, so a second pool
   would find its cores taken. */
#ifndef ASSAY_TEAM_H
#define ASSAY_TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common.h"

typedef void (*region)(void (*)(void *), void *, unsigned, unsigned);

static region team; /* GOMP_parallel of the runtime that torch has loaded */

/* Name the function that runs a region on a team of threads; without one everything runs on the caller. */
EXPORT void assay_set_team(void *function) { team = (region)function; }

typedef struct {
  void (*work)(void *, int64_t);
  void *arg;
  int64_t count, step;
  atomic_llong next;
} shared;

static void member(void *arg) {
  shared *s = arg;
  for (;;) {
    int64_t first = atomic_fetch_add(&s->next, s->step);
    if (first >= s->count) return;
    int64_t end = first + s->step < s->count ? first + s->step : s->count;
    for (int64_t i = first; i < end; i++) s->work(s->arg, i);
  }
}

/* work(arg, i) for i below count, in any order, on at most `threads` threads; returns when all are done. */
static void share_work(void (*work)(void *, int64_t), void *arg, int64_t count, int64_t threads) {
  shared s = {.work = work, .arg = arg, .count = count, .step = count / (threads * 8) > 1 ? count / (threads * 8) : 1};
  atomic_init(&s.next, 0);
  if (threads > 1 && count > 1 && team)
    team(member, &s, (unsigned)(threads < count ? threads : count), 0);
  else
    member(&s);
}

#define SCRATCH_SLOTS 2

typedef struct {
  char *memory[SCRATCH_SLOTS];
  int64_t bytes[SCRATCH_SLOTS];
} own_memory;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void drop(void *arg) {
  own_memory *s = arg;
  for (int i = 0; i < SCRATCH_SLOTS; i++) free(s->memory[i]);
  free(s);
}

static void make_key(void) { pthread_key_create(&key, drop); }

/* Memory of this thread, aligned to 64 bytes, kept until it asks for more in the same slot; NULL when there is none. */
static char *scratch(int slot, int64_t bytes) {
  pthread_once(&once, make_key);
  own_memory *s = pthread_getspecific(key);
  if (!s) {
    s = calloc(1, sizeof *s);
    if (!s) return NULL;
    pthread_setspecific(key, s);
  }
  if (s->bytes[slot] < bytes) {
    free(s->memory[slot]);
    s->bytes[slot] = 0;
    bytes = (bytes + bytes / 4 + 4095) / 4096 * 4096;
    s->memory[slot] = aligned_alloc(64, (size_t)bytes);
    if (s->memory[slot]) s->bytes[slot] = bytes;
  }
  return s->memory[slot];
}

#endif
