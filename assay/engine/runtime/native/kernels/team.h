/* Work shared between threads.

   The threads are those of torch's OpenMP runtime: they wait for work for a while without sleeping, so a second pool
   would find its cores taken. */
#ifndef ASSAY_TEAM_H
#define ASSAY_TEAM_H

#include <stdatomic.h>

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

static void member(void *arg)
{
    shared *s = arg;
    for (;;) {
        int64_t first = atomic_fetch_add(&s->next, s->step);
        if (first >= s->count) return;
        int64_t end = first + s->step < s->count ? first + s->step : s->count;
        for (int64_t i = first; i < end; i++) s->work(s->arg, i);
    }
}

/* work(arg, i) for i below count, in any order, on at most `threads` threads; returns when all are done. */
static void share_work(void (*work)(void *, int64_t), void *arg, int64_t count, int64_t threads)
{
    shared s = {.work = work, .arg = arg, .count = count};
    s.step = count / (threads * 8) > 1 ? count / (threads * 8) : 1;
    atomic_init(&s.next, 0);
    if (threads > 1 && count > 1 && team) team(member, &s, (unsigned)(threads < count ? threads : count), 0);
    else member(&s);
}

#endif
