/* Calls functions of a shared object, under an emulator, for a process of another kind of machine.

   driver OBJECT reads calls from standard input. Pointers are those of the caller's memory: a page that is touched
   first is fetched from there, at the same address, and what a call has changed is written back before it is answered.
   All numbers are words of 64 bits (tests/harness/engine/emulator/library.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define MOST_PAGES (1 << 17)

enum { CALL = 1, TEXT = 2, CONTROL = 3 };                                      /* from the caller */
enum { FETCH = 1, CHANGED = 2, ANSWER = 3, STRING = 4, FAULT = 5, TAKEN = 6 }; /* to the caller */

typedef struct {
    uint8_t *at;
    uint8_t before[PAGE];
} page;

static page *pages;
static int64_t held;

static void take(void *to, size_t n)
{
    for (uint8_t *p = to; n;) {
        ssize_t got = read(0, p, n);
        if (got <= 0) _exit(0);
        p += got, n -= (size_t)got;
    }
}

static void give(const void *from, size_t n)
{
    for (const uint8_t *p = from; n;) {
        ssize_t put = write(1, p, n);
        if (put <= 0) _exit(0);
        p += put, n -= (size_t)put;
    }
}

static void say(int64_t kind, int64_t a, int64_t b)
{
    int64_t words[3] = {kind, a, b};
    give(words, sizeof words);
}

static void fetch(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    uint8_t *at = (uint8_t *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
    int64_t is_there = 0;
    if (held < MOST_PAGES) {
        say(FETCH, (int64_t)at, 0);
        take(&is_there, sizeof is_there);
    }
    if (!is_there) say(FAULT, (int64_t)info->si_addr, 0), _exit(1);
    page *p = pages + held++;
    take(p->before, PAGE);
    p->at = mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->at != at) say(TAKEN, (int64_t)at, 0), _exit(1);
    memcpy(at, p->before, PAGE);
}

static void give_back(void)
{
    for (page *p = pages; p < pages + held; p++) {
        for (int64_t i = 0, end; i < PAGE; i = end + 1) {
            while (i < PAGE && p->at[i] == p->before[i]) i++;
            for (end = i; end < PAGE && p->at[end] != p->before[end];) end++;
            if (i < end) say(CHANGED, (int64_t)(p->at + i), end - i), give(p->at + i, (size_t)(end - i));
        }
        munmap(p->at, PAGE);
    }
    held = 0;
}

static void set_control(uint64_t control)
{
#if defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    (void)control;
#endif
}

int main(int count, char **arguments)
{
    void *object = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    pages = mmap(NULL, sizeof(page) * MOST_PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (!object || pages == MAP_FAILED) return 2;
    struct sigaction action = {.sa_sigaction = fetch, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    say(ANSWER, 0, 0);
    uint64_t control = 0;
    for (;;) {
        char name[64] = "";
        int64_t head[2], a[8];
        take(head, sizeof head);
        if (head[0] == CONTROL) control = (uint64_t)head[1];
        if (head[0] == TEXT) {
            const char *text = (const char *)head[1];
            say(STRING, 0, (int64_t)strlen(text)), give(text, strlen(text));
        }
        if (head[0] != CALL) continue;
        take(name, (size_t)head[1]), take(a, sizeof a);
        int64_t (*function)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
        void *found = dlsym(object, name);
        if (!found) found = dlsym(RTLD_DEFAULT, name);
        if (!found) return 3;
        memcpy(&function, &found, sizeof found);
        set_control(control);
        int64_t answer = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
        set_control(0);
        give_back();
        say(ANSWER, answer, 0);
    }
}
