/* Views and tiles. A tile is a short run of an index space as a flat array in cache: f32 and i32 as they are, storage
 * types widened to i32, bools as 0 or all ones, i64 as i64. Structures are filled by
 * `assay/engine/runtime/fused/layout.py`. */
#ifndef ASSAY_TILE_H
#define ASSAY_TILE_H

#include "vec.h"

#define MAX_RANK 16

enum { F32, I32, I64, BOOL, U8, I8, U16 };

typedef struct {
    int64_t node; /* whose pointer is read */
    int64_t dtype;
    int64_t mode;    /* see below */
    int64_t offset;  /* element of the source */
    int64_t bounded; /* some index reads the fill */
    int64_t fill;
    int64_t stride[MAX_RANK], lo[MAX_RANK], hi[MAX_RANK];
} View;

/* DIRECT: element offset + flat index, nothing to copy. SCALAR: one element. ROW_SCALAR: one element per run of the
 * last dimension, a tile being such a run. REPEATED: depends on the last dimension only, tiles being whole runs of it.
 * STRIDED: anything else. */
enum { DIRECT, SCALAR, ROW_SCALAR, REPEATED, STRIDED };

typedef struct {
    int64_t rank;
    int64_t size[MAX_RANK];
} Space;

static const int64_t SIZE_OF[] = {4, 4, 8, 1, 1, 1, 2};

/* One element at an address, widened as in a tile. */
INLINE void put_element(void *out, int64_t at, const void *base, int64_t from, int64_t dtype)
{
    int32_t *o = out;
    switch (dtype) {
    case F32:
    case I32: o[at] = ((const int32_t *)base)[from]; break;
    case I64: ((int64_t *)out)[at] = ((const int64_t *)base)[from]; break;
    case BOOL: o[at] = -(((const uint8_t *)base)[from] != 0); break;
    case U8: o[at] = ((const uint8_t *)base)[from]; break;
    case I8: o[at] = ((const int8_t *)base)[from]; break;
    default: o[at] = ((const uint16_t *)base)[from]; break;
    }
}

INLINE void fill_run(void *out, int64_t at, int64_t n, int64_t fill, int64_t dtype)
{
    int32_t *o = out;
    int32_t word = (int32_t)fill;
    switch (dtype) {
    case I64:
        for (int64_t i = 0; i < n; i++) ((int64_t *)out)[at + i] = fill;
        return;
    case BOOL: word = -(fill != 0); break;
    case U8: word = (uint8_t)fill; break;
    case I8: word = (int8_t)fill; break;
    case U16: word = (uint16_t)fill; break;
    default: break;
    }
    for (int64_t i = 0; i < n; i++) o[at + i] = word;
}

#define RUN(type, target, value)                                                                                       \
    {                                                                                                                  \
        const type *s = (const type *)base + from;                                                                     \
        target *o = (target *)out + at;                                                                                \
        if (stride == 1)                                                                                               \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                type x = s[i];                                                                                         \
                o[i] = (target)(value);                                                                                \
            }                                                                                                          \
        else if (stride == 0) {                                                                                        \
            type x = s[0];                                                                                             \
            target v = (target)(value);                                                                                \
            for (int64_t i = 0; i < n; i++) o[i] = v;                                                                  \
        } else                                                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                type x = s[i * stride];                                                                                \
                o[i] = (target)(value);                                                                                \
            }                                                                                                          \
        return;                                                                                                        \
    }

/* n elements from an address on, a stride apart. Of none the address may lie anywhere: well-formedness says nothing of
 * what is not read. */
INLINE void copy_run(void *restrict out, int64_t at, int64_t n, const void *restrict base, int64_t from, int64_t stride,
                     int64_t dtype)
{
    if (n <= 0) return;
    switch (dtype) {
    case F32:
    case I32: RUN(int32_t, int32_t, x)
    case I64: RUN(int64_t, int64_t, x)
    case BOOL: RUN(uint8_t, int32_t, -(x != 0))
    case U8: RUN(uint8_t, int32_t, x)
    case I8: RUN(int8_t, int32_t, x)
    default: RUN(uint16_t, int32_t, x)
    }
}

#define SHORT_RUN 16

/* Several short runs, whose own loops would cost more than what they copy. */
INLINE void copy_short_runs(int32_t *restrict out, const int32_t *restrict x, int64_t runs, int64_t apart, int64_t n,
                            int64_t stride)
{
    if (n == 2)
        for (int64_t r = 0; r < runs; r++) {
            out[2 * r] = x[r * apart];
            out[2 * r + 1] = x[r * apart + stride];
        }
    else
        for (int64_t r = 0; r < runs; r++)
            for (int64_t i = 0; i < n; i++) out[r * n + i] = x[r * apart + i * stride];
}

/* n words a stride apart. */
INLINE void copy_words(int32_t *restrict out, const int32_t *restrict x, int64_t n, int64_t stride)
{
    int64_t i = 0;
    if (stride == 1)
        for (; i + LANES <= n; i += LANES) store_i(out + i, load_i(x + i));
    else if (stride == 0)
        for (vi same = splat_i(x[0]); i + LANES <= n; i += LANES) store_i(out + i, same);
    for (; i < n; i++) out[i] = x[i * stride];
}

/* Where coordinate d has come to its size it begins again, and the one before it goes on, and so on outwards. */
INLINE int64_t carried(int64_t *index, int64_t d, int64_t first, const View *v, const Space *space, int64_t address)
{
    while (index[d] == space->size[d]) {
        address -= space->size[d] * v->stride[d];
        index[d] = 0;
        if (--d < first) break;
        index[d]++;
        address += v->stride[d];
    }
    return address;
}

/* Words that nothing bounds, of at least two dimensions, from an index on. Most tiles of pooled values and heads are
 * runs of a few vectors each: what a run costs beside its words is kept small. */
static void gather_words(int32_t *restrict out, const View *v, const Space *space, int64_t first, int64_t *index,
                         int64_t address, int64_t count, const int32_t *restrict x)
{
    int64_t last = space->rank - 1, stride = v->stride[last], size = space->size[last];
    int64_t rows = space->size[last - 1], apart = v->stride[last - 1], n = size - index[last];
    while (count > 0) {
        if (n < size || count < size) { /* the first and the last run, of which there may be a part */
            n = n < count ? n : count;
            copy_words(out, x + address, n, stride);
            address += apart - index[last] * stride;
            index[last] = 0, index[last - 1]++;
            out += n, count -= n, n = size;
        } else if (size < SHORT_RUN) {
            int64_t runs = count / size, left = rows - index[last - 1];
            runs = runs < left ? runs : left;
            copy_short_runs(out, x + address, runs, apart, size, stride);
            address += runs * apart, index[last - 1] += runs;
            out += runs * size, count -= runs * size;
        } else {
            int64_t r = index[last - 1];
            for (; r < rows && count >= size; r++, out += size, count -= size, address += apart)
                copy_words(out, x + address, size, stride);
            index[last - 1] = r;
        }
        address = carried(index, last - 1, first, v, space, address);
    }
}

/* Elements start .. start + count of a view over `space` from dimension `first` on; `address` is what the dimensions
 * before it add up to with the view's offset. */
static void gather(void *out, const View *v, const Space *space, int64_t first, int64_t address, int64_t start,
                   int64_t count, const void *base)
{
    int64_t rank = space->rank, index[MAX_RANK] = {0};
    if (rank == first) {
        for (int64_t i = 0; i < count; i++) put_element(out, i, base, address, v->dtype);
        return;
    }
    for (int64_t d = rank - 1, rest = start; d >= first; d--) {
        index[d] = rest % space->size[d];
        rest /= space->size[d];
        address += index[d] * v->stride[d];
    }
    int64_t last = rank - 1, stride = v->stride[last], lo = v->lo[last], hi = v->hi[last];
    int is_word = v->dtype == F32 || v->dtype == I32;
    if (last > first && !v->bounded && is_word) {
        gather_words(out, v, space, first, index, address, count, base);
        return;
    }
    for (int64_t done = 0; done < count;) {
        int64_t n = space->size[last] - index[last];
        if (n > count - done) n = count - done;
        if (!v->bounded) {
            copy_run(out, done, n, base, address, stride, v->dtype);
        } else {
            int inside = 1;
            for (int64_t d = first; d < last; d++) inside &= index[d] >= v->lo[d] && index[d] < v->hi[d];
            int64_t from = lo - index[last], to = hi - index[last];
            from = from < 0 ? 0 : from > n ? n : from;
            to = to < from ? from : to > n ? n : to;
            if (!inside) from = to = n;
            fill_run(out, done, from, v->fill, v->dtype);
            if (is_word && from < to)
                copy_words((int32_t *)out + done + from, (const int32_t *)base + address + from * stride, to - from,
                           stride);
            else copy_run(out, done + from, to - from, base, address + from * stride, stride, v->dtype);
            fill_run(out, done + to, n - to, v->fill, v->dtype);
        }
        done += n;
        address += n * stride;
        index[last] += n;
        address = carried(index, last, first, v, space, address);
    }
}

/* The address of a flat index over the dimensions before `end`; -1 in *inside when one is out of bounds. */
INLINE int64_t address_of(const View *v, const Space *space, int64_t end, int64_t flat, int *inside)
{
    int64_t address = v->offset;
    *inside = 1;
    for (int64_t d = end - 1; d >= 0; d--) {
        int64_t i = flat % space->size[d];
        flat /= space->size[d];
        address += i * v->stride[d];
        *inside &= i >= v->lo[d] && i < v->hi[d];
    }
    return address;
}

#endif
