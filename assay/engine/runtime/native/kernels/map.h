/* Maps: the scalar program on one tile after another. */
#ifndef ASSAY_MAP_H
#define ASSAY_MAP_H

#include "functions.h"
#include "nodes.h"

#define ONE(name) X(name)
#define TWO(name) X(name##_vv) X(name##_vs) X(name##_sv)
#define THREE(name) X(name##_vvv) X(name##_vvs) X(name##_vsv) X(name##_vss) X(name##_svv) X(name##_svs) X(name##_ssv)
/* clang-format off */
#define TILE_FUNCTIONS                                                                                                 \
    TWO(f32_add) TWO(f32_sub) TWO(f32_mul) TWO(f32_div) ONE(f32_sqrt) ONE(f32_neg) ONE(f32_abs) TWO(f32_min)           \
    TWO(f32_max) TWO(f32_eq) TWO(f32_lt) TWO(f32_le) ONE(f32_rint) ONE(f32_floor) TWO(f32_scale2) ONE(f32_exponent)    \
    ONE(i32_to_f32) ONE(f32_to_i32) ONE(bool_to_i32) ONE(i32_to_bool) ONE(f32_bits) ONE(copy) TWO(i32_add)             \
    TWO(i32_sub) TWO(i32_mul) TWO(i32_mulhi) TWO(i32_and) TWO(i32_or) TWO(i32_xor) ONE(i32_not) TWO(i32_shl)           \
    TWO(i32_shr_logical) TWO(i32_shr_arith) TWO(i32_min) TWO(i32_max) TWO(i32_eq) TWO(i32_lt) TWO(i32_ltu)             \
    THREE(select_word) THREE(mul_add) THREE(mul_sub) THREE(sub_mul) THREE(add_mul) THREE(dif_mul) ONE(spread)          \
    ONE(i64_to_f32) ONE(f32_to_i64) ONE(i64_to_i32) ONE(i32_to_i64) ONE(i64_add) ONE(i64_sub) ONE(i64_mul)             \
    ONE(i64_eq) ONE(i64_lt) ONE(spread_i64) ONE(copy_i64) ONE(select_i64) ONE(store_byte) ONE(store_bool)              \
    ONE(store_u16) ONE(f32_gelu_vv) ONE(f32_gelu_grad_vv) ONE(f32_erf) ONE(f32_tanh) ONE(f32_sigmoid) ONE(f32_log)      \
    ONE(f32_sin) ONE(f32_cos) ONE(f32_gauss) ONE(f32_exp)
/* clang-format on */

#define X(name) name,
static const TileFunction FUNCTIONS[] = {TILE_FUNCTIONS};
#undef X
#define X(name) #name " "
/* The functions in order: how Python learns their numbers. */
EXPORT const char *assay_tile_functions(void) { return TILE_FUNCTIONS; }
#undef X

INLINE void execute(const Code *code, int64_t count, void **slot, void *destination, int64_t n)
{
    for (int64_t i = 0; i < count; i++) {
        const Code *k = code + i;
        void *out = k->out == DESTINATION ? destination : slot[k->out];
        FUNCTIONS[k->function](out, slot[k->a], slot[k->b], slot[k->c], k->single ? 1 : n);
    }
}

#define FAR_BYTES (1 << 20) /* of a map's value, from which memory is asked for before it is read or written */

/* Ask for what the next tile reads, or writes: processors look ahead in one page, and a tile is one or less. */
INLINE void ask_for(const char *from, int64_t bytes, const int writes)
{
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, writes, 2);
}

static void run_map(const Op *op, int64_t lo, int64_t hi, void **table, char *work)
{
    void *slot[SLOTS];
    char *cells = work, *tiles = work + SLOTS * VBYTES;
    const Space *space = &op->space;
    int64_t inner = space->rank ? space->size[space->rank - 1] : 1, width = SIZE_OF[op->dtype];
    int64_t tile = op->tile;
    int repeated = lo % inner == 0 && tile % inner == 0, is_far = op->numel * width >= FAR_BYTES;
    /* Slots: operands, then constants and single elements in cells of one vector, then tiles. */
    for (int64_t s = 0, used = 0; s < op->n_slots; s++) {
        int64_t at = op->constants[s];
        if (at == CELL) slot[s] = cells + s * VBYTES;
        else if (at == TILE_SLOT) slot[s] = tiles + op->slot_bytes * used++;
        else slot[s] = (void *)at;
    }
    for (int64_t k = 0; k < op->n_views; k++) {
        const View *v = op->views + k;
        if (v->mode == SCALAR) put_element(slot[k], 0, table[v->node], v->offset, v->dtype);
        else if (v->mode == REPEATED && repeated)
            gather(slot[k], v, space, 0, v->offset, lo, tile < hi - lo ? tile : hi - lo, table[v->node]);
    }
    execute(op->code, op->n_first, slot, 0, 1);
    for (int64_t at = lo; at < hi;) {
        int64_t n = hi - at < tile ? hi - at : tile;
        if (op->by_runs && n > inner - at % inner) n = inner - at % inner;
        for (int64_t k = 0; k < op->n_views; k++) {
            const View *v = op->views + k;
            void *base = table[v->node];
            int64_t size = SIZE_OF[v->dtype];
            switch (v->mode) {
            case SCALAR: break;
            case DIRECT:
                if (size >= 4) {
                    slot[k] = (char *)base + (v->offset + at) * size;
                    if (is_far) ask_for((char *)slot[k] + n * size, n * size, 0);
                } else copy_run(slot[k], 0, n, base, v->offset + at, 1, v->dtype);
                break;
            case ROW_SCALAR: gather(slot[k], v, space, 0, v->offset, at, 1, base); break;
            case REPEATED:
                if (repeated) break;
                __attribute__((fallthrough));
            default:
                if (op->by_runs && size >= 4 && !v->bounded && v->stride[space->rank - 1] == 1) {
                    int inside;
                    slot[k] = (char *)base + address_of(v, space, space->rank, at, &inside) * size;
                } else gather(slot[k], v, space, 0, v->offset, at, n, base);
            }
        }
        char *to = (char *)table[op->node] + at * width;
        if (is_far) ask_for(to + n * width, n * width, 1);
        execute(op->code + op->n_first, op->n_code - op->n_first, slot, to, n);
        at += n;
    }
}

#endif
