/* The fused executor's kernels: runs single nodes, and groups of nodes block by block of their common rows.
 *
 * A table holds one pointer per node of the program, to its value in row-major order. Nothing here owns a value. */
#include "map.h"
#include "moves.h"
#include "pool.h"

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
    int64_t nodes, threads;
    int failed;
} Job;

/* The blocks of one of the threads. Values that live in a block only are placed so that their rows have the usual
 * addresses, in a table of this thread's own. */
static void run_blocks(void *context, int64_t thread)
{
    Job *job = context;
    const Group *g = job->group;
    int64_t share = (g->rows + job->threads - 1) / job->threads;
    int64_t from = thread * share, to = from + share < g->rows ? from + share : g->rows;
    if (from >= to) return;
    unsigned control = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1f80);
    size_t table_bytes = g->n_scratch ? (size_t)job->nodes * 8 : 0;
    char *memory = thread_memory(WORK_BYTES + table_bytes + (size_t)g->scratch_bytes + 256);
    if (!memory) {
        job->failed = 1;
        return;
    }
    void **table = job->table;
    char *scratch = memory + WORK_BYTES + ((table_bytes + 63) & ~(size_t)63);
    if (g->n_scratch) {
        table = (void **)(memory + WORK_BYTES);
        memcpy(table, job->table, table_bytes);
    }
    for (int64_t lo = from; lo < to; lo += g->block) {
        int64_t hi = lo + g->block < to ? lo + g->block : to;
        for (int64_t s = 0; s < g->n_scratch; s++)
            table[g->scratch_node[s]] = scratch + g->scratch_offset[s] - lo * g->scratch_row_bytes[s];
        for (int64_t k = 0; k < g->n_ops; k++)
            if (!run_op(g->ops[k], lo * g->per_row[k], hi * g->per_row[k], table, memory)) job->failed = 1;
    }
    __builtin_ia32_ldmxcsr(control);
}

/* Run groups first .. last - 1 on a table of `nodes` pointers; 0, or -1 when memory is out. */
EXPORT int assay_run_groups(const Group *const *groups, int64_t first, int64_t last, void **table, int64_t nodes, int64_t threads)
{
    for (int64_t g = first; g < last; g++) {
        Job job = {groups[g], table, nodes, threads, 0};
        int64_t blocks = (groups[g]->rows + groups[g]->block - 1) / groups[g]->block;
        if (job.threads > blocks) job.threads = blocks > 0 ? blocks : 1;
        if (job.threads <= 1) run_blocks(&job, 0);
        else run_parallel(run_blocks, &job, job.threads);
        if (job.failed) return -1;
    }
    return 0;
}

/* Sizes of the structures, by which Python checks that it lays them out alike. */
EXPORT int64_t assay_layout(int64_t which)
{
    const int64_t sizes[] = {sizeof(View), sizeof(Space), sizeof(Code), sizeof(Op), sizeof(Group), SLOTS};
    return sizes[which];
}
