/* Products of quantized matrices: what packing, kernels and driver share (docs/protocol.md, section 3: dot).

   An operand is read at data[batch[b] + own[o] + red[k]]; a place outside the bounds of its view has OUTSIDE in one of
   the three tables and reads the fill. Bounds belong to single dimensions and every dimension to one table, so tables
   describe every view exactly. */
#ifndef ASSAY_DOT_H
#define ASSAY_DOT_H

#include "common.h"

#define OUTSIDE INT64_MIN
#define PANEL 16 /* rows or columns that are packed side by side */
#define E_NONFINITE 129
#define E_LOWEST -400 /* with an exponent below, every result is a zero: 2^62 2^(128-400) < 2^-150 */

#define RED_BLOCK 32

/* How digits are multiplied: pairs of i16, fours of i8 by vectors (VNNI), i8 on matrix tiles (AMX). */
enum { PAIRS = 0, BYTES = 1, TILES = 2 };

enum { GENERAL = 0, INSIDE = 1, UNIT = 3 }; /* of a block of table entries: all inside; all inside and one apart */

typedef struct {
    const int64_t *batch, *own, *red;
    const int64_t *e_batch, *e_own; /* the exponents, over batch and own */
    uint8_t *own_kind, *red_kind;   /* per PANEL of own, per RED_BLOCK of red */
    int64_t fill, e_fill;           /* bits of an f32, an i32 */
    int64_t precision;
    int64_t digits, shift; /* of q: how many, and bits between them */
    int64_t own_exponents; /* they are those of the very rows: nothing lies beyond them */
} dot_side;

typedef struct {
    int64_t batches, m, n, k;
    dot_side a, b;
    const int64_t *c_batch, *c_row, *c_column;
    uint8_t *c_kind; /* per PANEL of columns */
    /* What `assay/engine/runtime/exact/limits.py` has decided: the variant; pairs of terms per pair of digits that 32
       bits add, and what they may add up to; whether neighbouring places of tiles are joined in 32 bits. */
    int64_t variant, run[2][2], room, joined;
    const void *kept; /* B packed before, by assay_dot_keep of this plan; NULL where every call packs it */
} dot_plan;

typedef struct { /* digits of an operand: q = sum digit_i 2^(i shift) */
    int count, shift;
} dot_digits;

#define SEGMENT 64 /* pairs whose squares are summed: a run that norms allow is a multiple of it */

/* Pairs of terms as packed: a multiple of 16. */
static inline int64_t padded_pairs(int64_t k) { return (k + 31) / 32 * 16; }

#endif
