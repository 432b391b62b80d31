/* Tiles of 16 by 16 sums of i8 digits: on AMX, by the dot products of NEON, or nowhere. */
#ifndef ASSAY_DOT_TILES_H
#define ASSAY_DOT_TILES_H

#include "machine.h"

#define TILES_SUMS 6 /* pairs of digits at most */

/* Weights of the sums that `tiles_multiply` gives, as powers of 256, by the digits of A and B. */
static const int TILE_PLACES[4][4][TILES_SUMS] = {
    [1] = {[1] = {0, 0}},
    [2] = {[2] = {0, 1, 1, 2}, [3] = {0, 1, 1, 2, 2, 3}},
    [3] = {[2] = {0, 1, 2, 1, 2, 3}},
};

#if defined(VNNI)
#include "dot_amx.h"
#elif defined(DOTPROD)
#include "dot_neon.h"
#else

/* Never called: no plan asks for tiles where they are not available. */
static int tiles_available(void) { return 0; }
static void tiles_begin(void) {}
static void tiles_end(void) {}
static int tiles_multiply(const int8_t *a, const int8_t *b, int64_t tiles, int digits_a, int digits_b, int32_t *sums)
{
    (void)a, (void)b, (void)tiles, (void)digits_a, (void)digits_b, (void)sums;
    return 0;
}

#endif

#endif
