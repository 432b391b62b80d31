/* Threads that wait for parts of a loop, and memory that each keeps for itself. A forked child starts its own. */
#ifndef ASSAY_POOL_H
#define ASSAY_POOL_H

#include "common.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 64

static __thread char *own_memory;
static __thread size_t own_bytes;

/* At least this much memory of the calling thread's own, 64-byte aligned; what it held before is gone. */
static char *thread_memory(size_t bytes)
{
    if (bytes > own_bytes) {
        free(own_memory);
        own_memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
        own_bytes = own_memory ? bytes : 0;
    }
    return own_memory;
}

typedef void (*Part)(void *context, int64_t part);

static struct {
    pthread_mutex_t one_at_a_time, lock;
    pthread_cond_t begin, end;
    pid_t owner;
    int64_t started, parts, left;
    uint64_t round;
    Part part;
    void *context;
} pool = {.one_at_a_time = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER,
          .begin = PTHREAD_COND_INITIALIZER, .end = PTHREAD_COND_INITIALIZER};

static void *worker(void *number)
{
    int64_t own = (int64_t)(intptr_t)number;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.round == seen) pthread_cond_wait(&pool.begin, &pool.lock);
        seen = pool.round;
        if (own >= pool.parts) continue;
        pthread_mutex_unlock(&pool.lock);
        pool.part(pool.context, own);
        pthread_mutex_lock(&pool.lock);
        if (--pool.left == 0) pthread_cond_signal(&pool.end);
    }
    return 0;
}

/* part(context, 0 .. parts - 1), each once; part 0 here, the others on threads of the pool. */
static void run_parallel(Part part, void *context, int64_t parts)
{
    if (parts > MOST_THREADS) parts = MOST_THREADS;
    pthread_mutex_lock(&pool.one_at_a_time);
    pthread_mutex_lock(&pool.lock);
    if (pool.owner != getpid()) pool.owner = getpid(), pool.started = 1;
    pool.round++;
    while (pool.started < parts) {
        pthread_t thread;
        if (pthread_create(&thread, 0, worker, (void *)(intptr_t)pool.started)) break;
        pthread_detach(thread);
        pool.started++;
    }
    int64_t others = pool.started < parts ? pool.started : parts;
    pool.part = part, pool.context = context, pool.parts = others, pool.left = others - 1;
    pthread_cond_broadcast(&pool.begin);
    pthread_mutex_unlock(&pool.lock);
    part(context, 0);
    for (int64_t rest = others; rest < parts; rest++) part(context, rest);
    pthread_mutex_lock(&pool.lock);
    while (pool.left > 0) pthread_cond_wait(&pool.end, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&pool.one_at_a_time);
}

#endif
