/* The fused executor's kernels: runs single nodes, and groups of nodes block by block of their common rows.
 *
 * A table holds one pointer per node of the program, to its value in row-major order. Nothing here owns a value. */
#include "floats.h"
#include "map.h"
#include "moves.h"
#include "scratch.h"
#include "team.h"

typedef int64_t (*Dot)(const void *plan, const void *a, const void *ea, const void *b, const void *eb, void *out,
                       void *raw, int64_t threads);

static int run_op(const Op *op, int64_t lo, int64_t hi, void **table, char *work)
{
    switch (op->kind) {
    case MAP: run_map(op, lo, hi, table, work); return 1;
    case GATHER: run_gather(op, lo, hi, table); return 1;
    case RANDOM: run_random(op, lo, hi, table); return 1;
    case SCATTER_SUM: return run_scatter(op, table, work);
    default: run_reduction(op, lo, hi, table, work); return 1;
    }
}

typedef struct {
    const Group *group;
    void **table;
    int64_t nodes, parts, threads;
    atomic_int failed;
} Job;

/* One part of a group's blocks. Values that live in a block only are placed so that their rows have the usual
 * addresses, in a table of this thread's own. */
static void run_part(void *context, int64_t part)
{
    Job *job = context;
    const Group *g = job->group;
    int64_t blocks = (g->rows + g->block - 1) / g->block;
    int64_t from = blocks * part / job->parts * g->block, to = blocks * (part + 1) / job->parts * g->block;
    if (to > g->rows) to = g->rows;
    int64_t table_bytes = g->n_scratch ? (job->nodes * 8 + 63) / 64 * 64 : 0;
    char *memory = scratch(0, WORK_BYTES + table_bytes + g->scratch_bytes);
    if (!memory) {
        job->failed = 1;
        return;
    }
    /* Another library may have changed how this thread rounds. */
    float_control control = floats_begin();
    void **table = job->table;
    char *own = memory + WORK_BYTES + table_bytes;
    if (g->n_scratch) {
        table = (void **)(memory + WORK_BYTES);
        memcpy(table, job->table, (size_t)job->nodes * 8);
    }
    for (int64_t lo = from; lo < to; lo += g->block) {
        int64_t hi = lo + g->block < to ? lo + g->block : to;
        for (int64_t s = 0; s < g->n_scratch; s++)
            table[g->scratch_node[s]] = own + g->scratch_offset[s] - lo * g->scratch_row_bytes[s];
        for (int64_t k = 0; k < g->n_ops; k++)
            if (job->threads > 1 && job->parts == 1 && is_divisible(g->ops[k])) {
                if (!reduce_divided(g->ops[k], table, job->threads)) job->failed = 1;
            } else if (!run_op(g->ops[k], lo * g->per_row[k], hi * g->per_row[k], table, memory)) job->failed = 1;
    }
    floats_set(control);
}

static int run_group(const Group *g, void **table, int64_t nodes, int64_t threads)
{
    const Op *op = g->ops[0];
    if (op->kind == DOT) {
        Dot run = (Dot)(intptr_t)op->dot.run;
        return run(op->dot.plan, table[op->dot.a], table[op->dot.exponent_a], table[op->dot.b],
                   table[op->dot.exponent_b], table[op->node], 0, op->dot.threaded ? threads : 1) == 0;
    }
    Job job = {g, table, nodes, 1, threads, 0};
    int64_t blocks = (g->rows + g->block - 1) / g->block;
    if (threads > 1) job.parts = blocks < 4 * threads ? blocks : 4 * threads;
    if (job.parts < 1) job.parts = 1;
    share_work(run_part, &job, job.parts, threads);
    return !job.failed;
}

/* Run groups first .. last - 1 on a table of `nodes` pointers; 0, or -1 when memory is out. */
EXPORT int assay_run_groups(const Group *const *groups, int64_t first, int64_t last, void **table, int64_t nodes,
                            int64_t threads)
{
    for (int64_t g = first; g < last; g++)
        if (!run_group(groups[g], table, nodes, threads)) return -1;
    return 0;
}

/* Sizes of the structures, by which Python checks that it lays them out alike. */
EXPORT int64_t assay_layout(int64_t which)
{
    const int64_t sizes[] = {sizeof(View), sizeof(Space), sizeof(Code), sizeof(Op), sizeof(Group), SLOTS};
    return sizes[which];
}
