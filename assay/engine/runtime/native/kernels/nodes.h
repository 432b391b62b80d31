/* What a node is to the kernels, and groups of nodes that run block by block of their common rows. */
#ifndef ASSAY_NODES_H
#define ASSAY_NODES_H

#include "tile.h"

enum { MAP, ROWEXP, MAX, SUM, GATHER, SCATTER_SUM, RANDOM, DOT };

/* How a reduction finds its terms. BY_ROWS: the innermost reduced dimension has stride 1. BY_COLUMNS: the innermost
 * dimension of out has stride 1. BY_TILES: any view, the terms of an element copied into a tile first. BY_PLANES: any
 * view, one term of many elements copied into a tile, term by term. */
enum { BY_ROWS, BY_COLUMNS, BY_TILES, BY_PLANES };

/* One instruction of a map: function, and slots of result and operands; once: on one element, not on the tile. */
typedef struct {
    int32_t function, out, a, b, c, single;
} Code;

#define DESTINATION (-1)
#define CELL (-1)
#define TILE_SLOT (-2)

typedef struct {
    int64_t kind, node, dtype, numel;
    int64_t out_rank; /* the first dimensions of `space` are those of out, the rest are reduced */
    Space space;
    int64_t n_views;
    const View *views; /* sum: x, e over out; scatter_sum: x, index, e; gather: table, index */
    int64_t strategy;
    int64_t terms;
    int64_t own_exponents; /* of a sum: they are those of its very terms, so that nothing lies beyond them */
    /* map */
    int64_t tile, by_runs, n_code, n_first, n_slots, slot_bytes;
    const Code *code;
    const int64_t *constants; /* per slot: CELL, TILE_SLOT, or the address of its one element */
    /* What one kind alone has. */
    union {
        struct {
            int64_t entries, stride; /* of the table: how many, and from one to the next */
            int64_t same_inside;     /* whether the index is the same along the last dimension */
        } gather;
        struct {
            int64_t rest;            /* how many dimensions of the space are those of a row of out */
            int64_t rows;            /* of out */
            int64_t exponent_stride; /* from one row's exponents to the next's */
        } scatter_sum;
        struct {
            int64_t stream, key, step; /* a number, and the nodes of the others */
        } random;
        struct {
            int64_t run; /* the function of the unit `dot` */
            const int64_t *plan;
            int64_t a, exponent_a, b, exponent_b; /* nodes */
            int64_t threaded;                     /* whether threads are worth it */
        } dot;
    };
} Op;

typedef struct {
    int64_t n_ops;
    const Op *const *ops;
    const int64_t *per_row; /* elements of each op in a row */
    int64_t rows, block;
    int64_t n_scratch; /* values that live in a block only */
    const int64_t *scratch_node, *scratch_offset, *scratch_row_bytes;
    int64_t scratch_bytes;
} Group;

#define SLOTS 96
#define WORK_BYTES (1 << 20)

/* Coordinates over dimensions [first, end) of a space, with the address that a view gives them. */
typedef struct {
    int64_t index[MAX_RANK], first, end, address;
} Walk;

INLINE void walk_start(Walk *w, const View *v, const Space *space, int64_t first, int64_t end, int64_t flat,
                       int64_t address)
{
    w->first = first, w->end = end, w->address = address;
    for (int64_t d = end - 1; d >= first; d--) {
        w->index[d] = flat % space->size[d];
        flat /= space->size[d];
        w->address += w->index[d] * v->stride[d];
    }
}

/* Advance by n along the last dimension, to its end at most. */
INLINE void walk_on(Walk *w, const View *v, const Space *space, int64_t n)
{
    int64_t d = w->end - 1;
    if (d < w->first) return;
    w->index[d] += n;
    w->address += n * v->stride[d];
    while (w->index[d] == space->size[d]) {
        w->address -= space->size[d] * v->stride[d];
        w->index[d] = 0;
        if (--d < w->first) return;
        w->index[d]++;
        w->address += v->stride[d];
    }
}

INLINE int walk_inside(const Walk *w, const View *v)
{
    for (int64_t d = w->first; d < w->end; d++)
        if (w->index[d] < v->lo[d] || w->index[d] >= v->hi[d]) return 0;
    return 1;
}

INLINE int64_t product(const Space *space, int64_t first, int64_t end)
{
    int64_t n = 1;
    for (int64_t d = first; d < end; d++) n *= space->size[d];
    return n;
}

#endif
