/* Gather, scatter_sum and random. */
#ifndef ASSAY_MOVES_H
#define ASSAY_MOVES_H

#include "philox.h"
#include "columns.h"
#include <stdlib.h>

INLINE void move_run(char *out, const char *from, int64_t n, int64_t stride, int64_t size)
{
    if (stride == 1) memcpy(out, from, (size_t)(n * size));
    else
        for (int64_t i = 0; i < n; i++) memcpy(out + i * size, from + i * stride * size, (size_t)size);
}

/* table[index[o], o]: the space is out. No bounds. */
static void run_gather(const Op *op, int64_t lo, int64_t hi, void **table)
{
    const View *t = op->views, *v = op->views + 1;
    const Space *space = &op->space;
    int64_t size = SIZE_OF[op->dtype], entries = op->gather.entries, entry = op->gather.stride;
    int64_t last = space->rank - 1, inner = op->gather.same_inside ? space->size[last] : 1;
    const char *base = table[t->node];
    char *out = (char *)table[op->node] + lo * size;
    Walk at, from;
    walk_start(&at, v, space, 0, space->rank, lo, v->offset);
    walk_start(&from, t, space, 0, space->rank, lo, t->offset);
    for (int64_t i = lo; i < hi;) {
        int64_t n = inner == 1 ? 1 : inner - from.index[last];
        n = n < hi - i ? n : hi - i;
        int64_t which;
        int32_t index;
        put_element(&which, 0, table[v->node], at.address, v->dtype);
        memcpy(&index, &which, 4);
        if (index >= 0 && index < entries)
            move_run(out, base + (index * entry + from.address) * size, n, space->rank ? t->stride[last] : 0, size);
        else if (op->dtype == F32)
            for (int64_t k = 0; k < n; k++) ((int32_t *)out)[k] = NAN_BITS;
        else memset(out, 0, (size_t)(n * size));
        i += n;
        out += n * size;
        walk_on(&at, v, space, n);
        walk_on(&from, t, space, n);
    }
}

/* Per row of out the terms whose index is that row. The space is (rest of out, terms); the index depends on the terms
 * only. Terms are ordered by their row first, so that each is read once. Returns 0 when there is no memory. */
static int run_scatter(const Op *op, void **table, char *work)
{
    const View *v = op->views, *vi_ = op->views + 1, *ve = op->views + 2;
    const Space *space = &op->space;
    int64_t outer = op->scatter_sum.rest, rows = op->scatter_sum.rows, by_row = op->scatter_sum.exponent_stride;
    int64_t terms = op->terms, rest = product(space, 0, outer);
    Space out = *space;
    out.rank = outer;
    size_t need = (size_t)(2 * terms + rows + 2) * 8 + (size_t)(rest + LANES) * 24;
    char *memory = malloc(need);
    if (!memory) return 0;
    int64_t *total = (int64_t *)memory, *start = total + rest + LANES, *order = start + rows + 2,
            *address = order + terms;
    int32_t *e = (int32_t *)(address + terms);
    float *first = (float *)(e + rest + LANES), *second = first + rest + LANES;
    int32_t *tile = (int32_t *)work;
    memset(start, 0, (size_t)(rows + 2) * 8);
    Walk k, a;
    for (int pass = 0; pass < 2; pass++) {
        walk_start(&k, vi_, space, outer, space->rank, 0, vi_->offset);
        walk_start(&a, v, space, outer, space->rank, 0, v->offset);
        for (int64_t t = 0; t < terms; t++) {
            int64_t which;
            int32_t row;
            put_element(&which, 0, table[vi_->node], k.address, vi_->dtype);
            memcpy(&row, &which, 4);
            if (row >= 0 && row < rows) {
                if (pass == 0) start[row + 2]++;
                else address[start[row + 1]++] = a.address;
            }
            walk_on(&k, vi_, space, 1);
            walk_on(&a, v, space, 1);
        }
        if (pass == 0)
            for (int64_t r = 2; r < rows + 2; r++) start[r] += start[r - 1];
    }
    for (int64_t r = 0; r < rows; r++) {
        if (r == 0 || by_row) {
            gather(e, ve, &out, 0, ve->offset + r * by_row, 0, rest, table[ve->node]);
            if (r == 0 || start[r] < start[r + 1])
                for (int64_t c = 0; c < rest; c += LANES)
                    scale_of(load_i(e + c), (vf *)(first + c), (vf *)(second + c));
        }
        memset(total, 0, (size_t)(rest + LANES) * 8);
        for (int64_t t = start[r]; t < start[r + 1]; t++)
            for (int64_t c = 0; c < rest; c += WIDTH) {
                int64_t n = rest - c < WIDTH ? rest - c : WIDTH;
                const int32_t *x = (const int32_t *)table[v->node] + address[t];
                if (v->mode == DIRECT) x += c;
                else gather(tile, v, &out, 0, address[t], c, n, table[v->node]), x = tile;
                column_totals(total + c, x, n, 1, 0, first + c, second + c, ANY);
            }
        float *o = (float *)table[op->node] + r * rest;
        for (int64_t c = 0; c < rest; c++) put_sum(o + c, total[c], e[c]);
    }
    free(memory);
    return 1;
}

static void run_random(const Op *op, int64_t lo, int64_t hi, void **table)
{
    philox_words((uint32_t *)table[op->node] + lo, lo, hi, (uint32_t)op->random.stream, table[op->random.key],
                 table[op->random.step]);
}

#endif
