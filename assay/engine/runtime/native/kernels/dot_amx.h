/* The product of i8 digits on matrix tiles (AMX), where processor and operating system offer them.

   A tile holds 16 rows of 64 digits. Each accumulator adds one pair of digit planes in 32 bits, for as many terms as
   `assay/engine/runtime/exact/limits.py` admits. Planes have accumulators of their own: an instruction waits 52 cycles
   for the one before it on the same accumulator, but starts every 16 cycles. */
#ifndef ASSAY_DOT_AMX_H
#define ASSAY_DOT_AMX_H

#include <string.h>

#include "dot.h"
#include "machine.h"

#if defined(VNNI)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REQUEST_PERMISSION 0x1023 /* ARCH_REQ_XCOMP_PERM */
#define TILE_DATA 18
#define AMX __attribute__((target("amx-tile,amx-int8")))

static int tiles_available(void)
{
    static int known = -1;
    if (known >= 0) return known;
    unsigned a, b, c, d;
    int has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) && (d >> 25 & 1);
    return known = has && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

AMX static void tiles_begin(void)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } __attribute__((packed)) config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int t = 0; t < 8; t++) config.bytes[t] = 64, config.rows[t] = 16;
    __asm__ volatile("" : : "r"(&config) : "memory"); /* the intrinsic says that it reads one word only */
    _tile_loadconfig(&config);
}

AMX static void tiles_end(void) { _tile_release(); }

#define ZERO4                                                                                                          \
    _tile_zero(0);                                                                                                     \
    _tile_zero(1);                                                                                                     \
    _tile_zero(2);                                                                                                     \
    _tile_zero(3)
#define KEEP(t) _tile_stored(t, sums + 256 * (t), 64)

AMX static void one_by_one(const int8_t *a, const int8_t *b, int64_t tiles, int32_t *sums)
{
    ZERO4;
    int64_t t = 0;
    for (; t + 2 <= tiles; t += 2) {
        _tile_loadd(4, a + 1024 * t, 64);
        _tile_loadd(5, b + 1024 * t, 64);
        _tile_dpbssd(0, 4, 5);
        _tile_loadd(6, a + 1024 * t + 1024, 64);
        _tile_loadd(7, b + 1024 * t + 1024, 64);
        _tile_dpbssd(1, 6, 7);
    }
    if (t < tiles) {
        _tile_loadd(4, a + 1024 * t, 64);
        _tile_loadd(5, b + 1024 * t, 64);
        _tile_dpbssd(0, 4, 5);
    }
    KEEP(0);
    KEEP(1);
}

AMX static void two_by_two(const int8_t *a, const int8_t *b, int64_t tiles, int32_t *sums)
{
    int64_t plane = 1024 * tiles;
    ZERO4;
    for (int64_t t = 0; t < plane; t += 1024) {
        _tile_loadd(4, a + t, 64);
        _tile_loadd(6, b + t, 64);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(5, a + plane + t, 64);
        _tile_dpbssd(1, 5, 6);
        _tile_loadd(7, b + plane + t, 64);
        _tile_dpbssd(2, 4, 7);
        _tile_dpbssd(3, 5, 7);
    }
    KEEP(0);
    KEEP(1);
    KEEP(2);
    KEEP(3);
}

/* Three digits of one operand by two of the other; with the places of both in the order of the sums. */
AMX static void three_by_two(const int8_t *a, const int8_t *b, int64_t tiles, int32_t *sums)
{
    int64_t plane = 1024 * tiles;
    ZERO4;
    _tile_zero(4);
    _tile_zero(5);
    for (int64_t t = 0; t < plane; t += 1024) {
        _tile_loadd(6, a + t, 64);
        _tile_loadd(7, b + t, 64);
        _tile_dpbssd(0, 6, 7);
        _tile_loadd(7, b + plane + t, 64);
        _tile_dpbssd(3, 6, 7);
        _tile_loadd(6, a + plane + t, 64);
        _tile_dpbssd(4, 6, 7);
        _tile_loadd(7, b + t, 64);
        _tile_dpbssd(1, 6, 7);
        _tile_loadd(6, a + 2 * plane + t, 64);
        _tile_dpbssd(2, 6, 7);
        _tile_loadd(7, b + plane + t, 64);
        _tile_dpbssd(5, 6, 7);
    }
    KEEP(0);
    KEEP(1);
    KEEP(2);
    KEEP(3);
    KEEP(4);
    KEEP(5);
}

AMX static void two_by_three(const int8_t *a, const int8_t *b, int64_t tiles, int32_t *sums)
{
    int64_t plane = 1024 * tiles;
    ZERO4;
    _tile_zero(4);
    _tile_zero(5);
    for (int64_t t = 0; t < plane; t += 1024) {
        _tile_loadd(6, a + t, 64);
        _tile_loadd(7, b + t, 64);
        _tile_dpbssd(0, 6, 7);
        _tile_loadd(6, a + plane + t, 64);
        _tile_dpbssd(1, 6, 7);
        _tile_loadd(7, b + plane + t, 64);
        _tile_dpbssd(3, 6, 7);
        _tile_loadd(6, a + t, 64);
        _tile_dpbssd(2, 6, 7);
        _tile_loadd(7, b + 2 * plane + t, 64);
        _tile_dpbssd(4, 6, 7);
        _tile_loadd(6, a + plane + t, 64);
        _tile_dpbssd(5, 6, 7);
    }
    KEEP(0);
    KEEP(1);
    KEEP(2);
    KEEP(3);
    KEEP(4);
    KEEP(5);
}

/* Writes sums [16][16] of pairs of digits and returns how many; the weight of each is 256^place (TILE_PLACES). */
static int tiles_multiply(const int8_t *a, const int8_t *b, int64_t tiles, int digits_a, int digits_b, int32_t *sums)
{
    switch (10 * digits_a + digits_b) {
    case 11: return one_by_one(a, b, tiles, sums), 2;
    case 22: return two_by_two(a, b, tiles, sums), 4;
    case 32: return three_by_two(a, b, tiles, sums), 6;
    default: return two_by_three(a, b, tiles, sums), 6;
    }
}

#undef KEEP

#endif

#endif
