/* The product of two quantized operands, from f32 views to f32 results: quantize, pack, multiply, round once.

   B is packed whole, A a few panels at a time by the thread that multiplies them; a tile of exact sums is finished
   while it is still in cache. Which thread computes which tile changes nothing: every sum is an exact integer. */
#include <math.h>
#include <string.h>

#include "dot.h"
#include "dot_bytes.h"
#include "dot_finish.h"
#include "dot_kernel.h"
#include "dot_pack.h"
#include "dot_pack_tiles.h"
#include "dot_tiles.h"
#include "floats.h"
#include "scratch.h"
#include "team.h"

#define BLOCK_PAIRS 256       /* pairs of a tile's rows that stay in the first cache beside those of its columns */
#define BLOCK_BYTES (1 << 18) /* of packed A per thread */
#define SUMS_BYTES (1 << 22)  /* of a block's sums, where A is packed some terms at a time */
#define MOST_PANELS 4         /* of A in a block */

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Whether digits can be multiplied by this variant here; for which sizes they are is decided by
 * `assay/engine/runtime/exact/limits.py`. */
EXPORT int64_t assay_dot_has(int64_t variant)
{
    return variant == TILES ? tiles_available() : variant == BYTES ? HAS_BYTES : variant == PAIRS;
}

static uint8_t kind_of(const int64_t *t, int64_t count)
{
    uint8_t kind = UNIT;
    for (int64_t i = 0; i < count; i++) {
        if (t[i] == OUTSIDE) return GENERAL;
        if (i && t[i] != t[i - 1] + 1) kind = INSIDE;
    }
    return kind;
}

static void kinds(const int64_t *t, int64_t count, int64_t block, uint8_t *out)
{
    for (int64_t i = 0; i < count; i += block) out[i / block] = kind_of(t + i, count - i < block ? count - i : block);
}

/* Fill in what follows from the tables; once per plan. */
EXPORT void assay_dot_prepare(dot_plan *p)
{
    kinds(p->a.own, p->m, PANEL, p->a.own_kind);
    kinds(p->b.own, p->n, PANEL, p->b.own_kind);
    kinds(p->a.red, p->k, RED_BLOCK, p->a.red_kind);
    kinds(p->b.red, p->k, RED_BLOCK, p->b.red_kind);
    kinds(p->c_column, p->n, PANEL, p->c_kind);
}

/* Bytes of some packed panels with what is known of them, and where these lie in memory. */
static int64_t panel_bytes(int64_t panels, int64_t bytes)
{
    int64_t each = bytes + PANEL * (int64_t)sizeof(double) + (int64_t)sizeof(float) + (int64_t)sizeof(scales);
    return (panels * each + 63) / 64 * 64;
}

static packed panels_at(char *memory, int64_t panels, int64_t bytes)
{
    double *up = (double *)(memory + panels * bytes);
    float *square = (float *)(up + panels * PANEL);
    return (packed){memory, up, square, (scales *)(square + panels)};
}

static packed panel_of(packed p, int64_t panel, int64_t bytes)
{
    return (packed){p.data + panel * bytes, p.up + panel * PANEL, p.square + panel, p.by + panel};
}

#define PACK_BLOCK 128 /* terms: a multiple of 2 SEGMENT and of RED_BLOCK */

/* Pack the terms [begin, end) of some neighbouring panels of A or B. Where rows lie side by side in memory, all panels
   take a few terms in turn, so that whole lines are read; else a panel takes all of its terms at once. */
static void pack(const job *j, int is_b, int64_t batch, int64_t panel, int64_t panels, int64_t begin, int64_t end,
                 packed to)
{
    const dot_plan *p = j->plan;
    const dot_side *s = is_b ? &p->b : &p->a;
    const float *x = is_b ? j->b : j->a;
    dot_digits d = is_b ? j->db : j->da;
    int64_t all = is_b ? p->n : p->m, bytes = is_b ? j->bytes_b : j->bytes_a;
    int64_t step = s->red_kind[0] == UNIT && p->k > 1 ? end - begin : PACK_BLOCK;
    for (int64_t k0 = begin; k0 < end; k0 += step) {
        int64_t stop = end - k0 < step ? end : k0 + step;
        for (int64_t i = 0; i < panels; i++) {
            packed t = panel_of(to, i, bytes);
            int64_t first = (panel + i) * PANEL, rows = all - first < PANEL ? all - first : PANEL;
            if (k0 == begin) make_scales(s, is_b ? j->eb : j->ea, batch, first, rows, t.by, t.up), *t.square = 0.0f;
            if (p->variant != PAIRS)
                pack_tiles(s, d.count, is_b, p->variant == BYTES && !is_b ? BYTES_FLIP : 0, x, batch, first, rows, p->k,
                           k0, stop, (int8_t *)t.data, t.by);
            else
                pack_pairs(s, d, x, batch, first, rows, p->k, k0, stop, (int16_t *)t.data + (k0 - begin) * PANEL,
                           bytes / 2 / d.count, t.by, j->by_norm ? t.square : NULL);
        }
    }
}

/* Ask for the memory that a tile is about to be stored to. */
static inline void fetch_places(const job *j, int64_t batch, int64_t row, int64_t column, int64_t columns)
{
    const dot_plan *p = j->plan;
    if (j->raw || p->c_kind[column / PANEL] != UNIT) return;
    const float *to = j->out + p->c_batch[batch] + p->c_column[column];
    for (int64_t r = row; r < row + TILE_ROWS && r < p->m; r++)
        for (int64_t c = 0; c < columns; c += PANEL) __builtin_prefetch(to + p->c_row[r] + c, 1);
}

#define TILE_SUMS (PANEL * PANEL)

/* Add up the sums of equal places, and where 32 bits hold it (the plan says so) neighbouring places; returns the terms
   of S. */
static int join_places(int32_t *sums, const int *places, int count, int64_t joined, term *t)
{
    int32_t *at[4] = {NULL};
    for (int i = 0; i < count; i++) {
        int32_t *more = sums + TILE_SUMS * i, *to = at[places[i]];
        if (!to) at[places[i]] = more;
        else
            for (int c = 0; c < TILE_SUMS; c++) to[c] += more[c];
    }
    int terms = 0;
    for (int p = 0; p < 4 && at[p]; p++) {
        t[terms++] = (term){at[p], (double)(1 << 8 * p)};
        if (!joined || p == 3 || !at[p + 1]) continue;
        for (int c = 0; c < TILE_SUMS; c++) at[p][c] += 256 * at[p + 1][c];
        p++;
    }
    return terms;
}

/* One block of rows of one batch against all columns, on matrix tiles. */
static void multiply_tiles(const job *j, int64_t batch, int64_t panel, int64_t panels, packed a, packed b)
{
    const dot_plan *p = j->plan;
    int32_t sums[TILES_SUMS * TILE_SUMS] __attribute__((aligned(64)));
    int64_t tiles = ceil_div(p->k, 64);
    for (int64_t n = 0; n < j->panels_n; n++)
        for (int64_t m = 0; m < panels; m++) {
            int64_t row = (panel + m) * PANEL, column = n * PANEL;
            int64_t rows = p->m - row < PANEL ? p->m - row : PANEL;
            int64_t columns = p->n - column < PANEL ? p->n - column : PANEL;
            fetch_places(j, batch, row, column, columns), fetch_places(j, batch, row + TILE_ROWS, column, columns);
            int count =
                tiles_multiply((const int8_t *)(a.data + m * j->bytes_a), (const int8_t *)(b.data + n * j->bytes_b),
                               tiles, j->da.count, j->db.count, sums);
            term t[4] = {{NULL, 0.0}};
            int terms = join_places(sums, TILE_PLACES[j->da.count][j->db.count], count, p->joined, t);
            finish_tile(j, batch, row, rows, column, columns, t, terms, PANEL, panel_of(a, m, j->bytes_a), b);
        }
}

/* How many pairs may be added in 32 bits (limits.py). Runs of norms start at multiples of SEGMENT, so that each is some
   whole segments, the squares of which bound it; the margin covers the rounding of these sums, 2^-24 for each of 128
   additions. */
static int64_t run_of(const job *j, int x, int y, double norm_a, double norm_b)
{
    if (!j->by_norm) return j->run[x][y];
    double most = norm_a * norm_b * (1.0 + 1e-4), room = (double)j->plan->room;
    if (BLOCK_PAIRS / SEGMENT * most <= room) return BLOCK_PAIRS;
    return most > room ? j->run[x][y] : (int64_t)(room / most) * SEGMENT;
}

/* The same by pairs of i16, of the terms [begin, end): tiles of 8 rows and 32 columns, K in blocks, for every pair of
   digits. Where these are not all terms, sums are those of all columns, and wait for the others. */
static void multiply_pairs(const job *j, int64_t batch, int64_t panel, int64_t panels, int64_t begin, int64_t end,
                           packed a, packed b, int32_t *sums)
{
    const dot_plan *p = j->plan;
    int64_t plane_a = j->bytes_a / 2 / j->da.count, plane_b = j->bytes_b / 2 / j->db.count;
    int64_t pairs = ceil_div(p->k, 2), from = begin / 2, to = ceil_div(end, 2), halves = 2 * panels;
    int products = j->da.count * j->db.count;
    double norms[MOST_PANELS] = {0.0};
    for (int64_t i = 0; i < panels && j->by_norm; i++) norms[i] = sqrt(a.square[i]);
    for (int64_t n = 0; n < j->panels_n; n += 2, sums += j->terms < p->k ? halves * products * 2 * TILE : 0) {
        int64_t column = n * PANEL, columns = p->n - column < TILE_COLUMNS ? p->n - column : TILE_COLUMNS;
        const int16_t *pb = (const int16_t *)(b.data + n * j->bytes_b);
        double norm = 0.0;
        if (j->by_norm) norm = sqrt(columns > PANEL && b.square[n + 1] > b.square[n] ? b.square[n + 1] : b.square[n]);
        for (int64_t done = from; done < to; done += BLOCK_PAIRS) {
            int64_t count = to - done < BLOCK_PAIRS ? to - done : BLOCK_PAIRS;
            for (int64_t h = 0; h < halves; h++) {
                int64_t row = (panel * 2 + h) * TILE_ROWS;
                if (row >= p->m) break;
                if (done + count == pairs) fetch_places(j, batch, row, column, columns);
                const int16_t *pa =
                    (const int16_t *)(a.data + h / 2 * j->bytes_a) + h % 2 * 2 * TILE_ROWS + (done - from) * 2 * PANEL;
                int32_t *s = sums + h * products * 2 * TILE;
                for (int x = 0; x < j->da.count; x++)
                    for (int y = 0; y < j->db.count; y++, s += 2 * TILE) {
                        multiply_tile(pa + x * plane_a, pb + y * plane_b + done * 2 * PANEL, j->bytes_b / 2, count,
                                      run_of(j, x, y, norms[h / 2], norm), columns > PANEL ? 2 * PANEL : PANEL,
                                      done == 0, done + count == pairs, s, s + TILE);
                    }
            }
        }
        for (int64_t h = 0; h < halves && to == pairs; h++) {
            int64_t row = (panel * 2 + h) * TILE_ROWS, rows = p->m - row < TILE_ROWS ? p->m - row : TILE_ROWS;
            if (rows <= 0) break;
            term t[8];
            int terms = 0;
            const int32_t *s = sums + h * products * 2 * TILE;
            for (int x = 0; x < j->da.count; x++)
                for (int y = 0; y < j->db.count; y++, s += 2 * TILE) {
                    double weight = (double)(1LL << (x * j->da.shift + y * j->db.shift));
                    t[terms++] = (term){s, weight};
                    if (pairs > BLOCK_PAIRS || run_of(j, x, y, norms[h / 2], norm) < pairs)
                        t[terms++] = (term){s + TILE, weight * 65536.0};
                }
            finish_tile(j, batch, row, rows, column, columns, t, terms, TILE_COLUMNS, panel_of(a, h / 2, j->bytes_a),
                        b);
        }
    }
}

/* The same by fours of bytes, with one digit of either operand. */
static void multiply_bytes(const job *j, int64_t batch, int64_t panel, int64_t panels, packed a, packed b,
                           int32_t *sums)
{
    const dot_plan *p = j->plan;
    int64_t fours = ceil_div(p->k, 4), most = BLOCK_TILES * 16;
    int32_t start[TILE_COLUMNS] __attribute__((aligned(64)));
    for (int64_t n = 0; n < j->panels_n; n += 2) {
        int64_t column = n * PANEL, columns = p->n - column < TILE_COLUMNS ? p->n - column : TILE_COLUMNS;
        const int8_t *pb = (const int8_t *)(b.data + n * j->bytes_b);
        int wide = columns > PANEL ? 2 : 1;
        for (int v = 0; v < wide; v++) byte_starts(pb + v * j->bytes_b, fours, start + v * PANEL);
        for (int64_t done = 0; done < fours; done += most) {
            int64_t count = fours - done < most ? fours - done : most;
            for (int64_t h = 0; h < 2 * panels; h++) {
                int64_t row = (panel * 2 + h) * TILE_ROWS, rows = p->m - row < TILE_ROWS ? p->m - row : TILE_ROWS;
                if (rows <= 0) break;
                const int8_t *pa = (const int8_t *)(a.data + h / 2 * j->bytes_a) + h % 2 * TILE_ROWS * 64 + done * 64;
                int32_t *s = sums + h * TILE;
                int last = done + count == fours;
                if (last) fetch_places(j, batch, row, column, columns);
                multiply_fours(pa, pb + done * 64, j->bytes_b, count, wide, done ? NULL : start, s);
                term t = {s, 1.0};
                if (last)
                    finish_tile(j, batch, row, rows, column, columns, &t, 1, TILE_COLUMNS,
                                panel_of(a, h / 2, j->bytes_a), b);
            }
        }
    }
}

/* Bytes of the sums of a block of so many panels: of a tile's rows, or of all columns where these wait for terms. */
static int64_t sums_bytes(const job *j, int64_t panels)
{
    int64_t each = panels * 2 * j->da.count * j->db.count * 2 * TILE * (int64_t)sizeof(int32_t);
    return j->terms < j->plan->k ? each * ceil_div(j->panels_n, 2) : each;
}

static void multiply_block(job *j, int64_t batch, int64_t block, packed b)
{
    const dot_plan *p = j->plan;
    int64_t panel = block * j->panels_block, sums = sums_bytes(j, j->panels_block);
    int64_t panels = j->panels_m - panel < j->panels_block ? j->panels_m - panel : j->panels_block;
    char *memory = scratch(0, sums + panel_bytes(j->panels_block, j->bytes_a));
    if (!memory) {
        j->failed = 1;
        return;
    }
    packed a = panels_at(memory + sums, j->panels_block, j->bytes_a);
    for (int64_t k = 0; k < p->k; k += j->terms) {
        int64_t stop = p->k - k < j->terms ? p->k : k + j->terms;
        pack(j, 0, batch, panel, panels, k, stop, a);
        if (p->variant == TILES) multiply_tiles(j, batch, panel, panels, a, b);
        else if (p->variant == BYTES) multiply_bytes(j, batch, panel, panels, a, b, (int32_t *)memory);
        else multiply_pairs(j, batch, panel, panels, k, stop, a, b, (int32_t *)memory);
    }
}

static float_control begin(const job *j)
{
    if (j->plan->variant == TILES) tiles_begin();
    return floats_begin();
}

static void end(const job *j, float_control before)
{
    if (j->plan->variant == TILES) tiles_end();
    floats_set(before);
}

static void one_batch(void *arg, int64_t batch)
{
    job *j = arg;
    float_control before = begin(j);
    int is_kept = j->plan->kept != NULL;
    char *memory = is_kept ? (char *)j->plan->kept : scratch(1, panel_bytes(j->panels_n, j->bytes_b));
    if (memory) {
        packed b = panels_at(memory, j->panels_n, j->bytes_b);
        if (!is_kept) pack(j, 1, batch, 0, j->panels_n, 0, j->plan->k, b);
        for (int64_t block = 0; block < j->blocks; block++) multiply_block(j, batch, block, b);
    } else {
        j->failed = 1;
    }
    end(j, before);
}

#define PACK_PANELS 8 /* that a thread packs at a time */

static void some_panels(void *arg, int64_t at)
{
    job *j = arg;
    int64_t groups = ceil_div(j->panels_n, PACK_PANELS), batch = at / groups, panel = at % groups * PACK_PANELS;
    int64_t panels = j->panels_n - panel < PACK_PANELS ? j->panels_n - panel : PACK_PANELS;
    float_control before = floats_begin();
    pack(j, 1, batch, panel, panels, 0, j->plan->k, panel_of(j->b_panels, batch * j->panels_n + panel, j->bytes_b));
    floats_set(before);
}

static void one_block(void *arg, int64_t at)
{
    job *j = arg;
    float_control before = begin(j);
    int64_t batch = at / j->blocks;
    multiply_block(j, batch, at % j->blocks, panel_of(j->b_panels, batch * j->panels_n, j->bytes_b));
    end(j, before);
}

/* Bytes of a packed panel of either operand, and how many panels there are. */
static void measure(job *j)
{
    const dot_plan *p = j->plan;
    j->da = (dot_digits){(int)p->a.digits, (int)p->a.shift}, j->db = (dot_digits){(int)p->b.digits, (int)p->b.shift};
    if (p->variant != PAIRS) {
        j->bytes_a = ceil_div(p->k, 64) * 1024 * j->da.count, j->bytes_b = ceil_div(p->k, 64) * 1024 * j->db.count;
    } else {
        memcpy(j->run, p->run, sizeof j->run);
        j->by_norm = j->da.count * j->db.count == 1 && j->run[0][0] < SEGMENT && 2 * j->run[0][0] < p->k;
        j->bytes_a = padded_pairs(p->k) * 64 * j->da.count, j->bytes_b = padded_pairs(p->k) * 64 * j->db.count;
    }
    j->panels_m = ceil_div(p->m, PANEL), j->panels_n = ceil_div(p->n, PANEL), j->terms = p->k;
}

/* How many panels of A a thread packs together, and how many of their terms. Every block reads all of B: where K is
   long, some terms of more panels are better than all of fewer, as long as the sums have room. */
static void divide(job *j, int64_t threads)
{
    const dot_plan *p = j->plan;
    int64_t share = ceil_div(j->panels_m * p->batches, 4 * threads);
    int64_t panels = threads > 1 && share < MOST_PANELS ? share : MOST_PANELS;
    if (panels > j->panels_m) panels = j->panels_m;
    int64_t most = BLOCK_BYTES / (32 * j->da.count * panels) / (2 * BLOCK_PAIRS) * (2 * BLOCK_PAIRS);
    if (p->variant == PAIRS && most < p->k) {
        j->terms = most;
        if (sums_bytes(j, panels) <= SUMS_BYTES) j->bytes_a = padded_pairs(most) * 64 * j->da.count;
        else j->terms = p->k;
    }
    int64_t fit = BLOCK_BYTES / j->bytes_a;
    j->panels_block = fit < 1 ? 1 : fit < panels ? fit : panels;
    j->blocks = ceil_div(j->panels_m, j->panels_block);
}

/* Pack B of a plan of one batch into memory (of lines of 64 bytes), for calls whose plan keeps it. Without memory: the
   bytes that it takes. */
EXPORT int64_t assay_dot_keep(const dot_plan *p, const float *b, const int32_t *eb, void *memory)
{
    job j = {.plan = p, .b = b, .eb = eb};
    measure(&j);
    if (!memory) return panel_bytes(j.panels_n, j.bytes_b);
    float_control before = floats_begin();
    pack(&j, 1, 0, 0, j.panels_n, 0, p->k, panels_at(memory, j.panels_n, j.bytes_b));
    floats_set(before);
    return 0;
}

/* out f32 by the plan's places, or raw f64 [batches][m][n] when given: the exact sums. 0: done, 1: no memory. */
EXPORT int64_t assay_dot(const dot_plan *p, const float *a, const int32_t *ea, const float *b, const int32_t *eb,
                         float *out, double *raw, int64_t threads)
{
    job j = {.plan = p, .a = a, .b = b, .ea = ea, .eb = eb, .out = out, .raw = raw};
    measure(&j);
    divide(&j, threads);
    if (threads == 1 || p->batches >= 2 * threads) {
        share_work(one_batch, &j, p->batches, threads);
    } else if (p->kept) {
        j.b_panels = panels_at((char *)p->kept, j.panels_n, j.bytes_b);
        share_work(one_block, &j, p->batches * j.blocks, threads);
    } else {
        int64_t panels = p->batches * j.panels_n;
        char *memory = scratch(1, panel_bytes(panels, j.bytes_b));
        if (!memory) return 1;
        j.b_panels = panels_at(memory, panels, j.bytes_b);
        share_work(some_panels, &j, p->batches * ceil_div(j.panels_n, PACK_PANELS), threads);
        share_work(one_block, &j, p->batches * j.blocks, threads);
    }
    return j.failed;
}
