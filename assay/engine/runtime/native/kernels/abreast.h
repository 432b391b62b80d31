/* Functions of many instructions in one pass over a tile. */
#ifndef ASSAY_ABREAST_H
#define ASSAY_ABREAST_H

#include "scalar.h"

/* Vectors whose instructions stand beside each other: each waits for the one before it, and a processor does not look
 * far enough ahead to find the next vector's by itself. */
#define ABREAST 4

#define EACH(r, value)                                                                                                 \
    vi r[ABREAST];                                                                                                     \
    for (int u = 0; u < ABREAST; u++) r[u] = value;
#define WORD(bits) splat_i((int32_t)bits##u)
#define ARGUMENT(r, from) EACH(r, load_i(from + u * LANES))
#define RESULT(r)                                                                                                      \
    for (int u = 0; u < ABREAST; u++) store_i(out + u * LANES, r[u]);

/* A function of tiles by what stands behind the macro, which takes ABREAST vectors of one or two arguments. The last
 * elements are copied: of what lies behind them nothing is read or written. `out` may be an argument. */
#define FUNCTION(name, in_one_pass, second)                                                                            \
    INLINE void name##_abreast(int32_t *out, const int32_t *a, const int32_t *b);                                      \
    static void in_one_pass(void *out, const void *a, const void *b, const void *c, int64_t n)                         \
    {                                                                                                                  \
        enum { STEP = ABREAST * LANES };                                                                               \
        int32_t x[STEP] = {0}, y[STEP] = {0}, *o = out;                                                                \
        const int32_t *p = a, *q = second;                                                                             \
        (void)b, (void)c;                                                                                              \
        for (int64_t i = 0; i < n; i += STEP) {                                                                        \
            int whole = n - i >= STEP;                                                                                 \
            if (!whole) {                                                                                              \
                memcpy(x, p + i, (size_t)(n - i) * 4);                                                                 \
                memcpy(y, q + i, (size_t)(n - i) * 4);                                                                 \
            }                                                                                                          \
            name##_abreast(whole ? o + i : x, whole ? p + i : x, whole ? q + i : y);                                   \
            if (!whole) memcpy(o + i, x, (size_t)(n - i) * 4);                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE void name##_abreast(int32_t *out, const int32_t *a, const int32_t *b __attribute__((unused)))

#define FUNCTION_1(name) FUNCTION(name, name, a)
#define FUNCTION_2(name) FUNCTION(name, name##_vv, b)

#endif
