/* Memory that a thread keeps for its next call: pages that are fresh at every call cost more than the work in them. */
#ifndef ASSAY_SCRATCH_H
#define ASSAY_SCRATCH_H

#include <pthread.h>
#include <stdlib.h>

#include "common.h"

#define SCRATCH_SLOTS 2

typedef struct {
    char *memory[SCRATCH_SLOTS];
    int64_t bytes[SCRATCH_SLOTS];
} own_memory;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void drop(void *arg)
{
    own_memory *s = arg;
    for (int i = 0; i < SCRATCH_SLOTS; i++) free(s->memory[i]);
    free(s);
}

static void make_key(void) { pthread_key_create(&key, drop); }

/* Memory of this thread, aligned to 64 bytes, kept until it asks for more in the same slot; NULL when there is none. */
static char *scratch(int slot, int64_t bytes)
{
    pthread_once(&once, make_key);
    own_memory *s = pthread_getspecific(key);
    if (!s) {
        s = calloc(1, sizeof *s);
        if (!s) return NULL;
        pthread_setspecific(key, s);
    }
#if defined(__SANITIZE_ADDRESS__)
    /* Anew each time, and not a byte more: what reads beyond the end shall not find what an earlier call needed. */
    free(s->memory[slot]);
    if (posix_memalign((void **)&s->memory[slot], 64, (size_t)bytes)) s->memory[slot] = NULL;
    return s->memory[slot];
#endif
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
