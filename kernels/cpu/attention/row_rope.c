// row_rope.c: rotary positions on queries and keys, with norms, forward and backward.
#include "machine/split.h"
#include "machine/table.h"

#include <string.h>

// Backward computes the sums for gamma_q and gamma_k in at most this many blocks of consecutive
// rows. It adds the rows and heads of a block in order, and then the blocks in order.
#define ROPE_BLOCKS 64u

// Reads and checks the caller's struct.
static rlhf_status read_rope(struct rlhf__cpu *cpu, const char *op, rlhf_rope *g,
                             const rlhf_rope *from, uint32_t rows) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, g, sizeof *g, from, RLHF_SIZE_TO(rlhf_rope, stats)));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, op, g->dtype));
    if (!g->kv_heads) g->kv_heads = g->heads;
    if (!g->rotary_dim) g->rotary_dim = g->head_dim;
    if (g->heads < 1 || g->kv_heads < 1 || g->head_dim < 2 || g->head_dim % 2 || g->n_pos < 1)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: %d heads, %d of keys, head_dim %d, n_pos %d: all are at least 1 "
                              "and head_dim is even",
                              op, g->heads, g->kv_heads, g->head_dim, g->n_pos);
    if (g->rotary_dim < 0 || g->rotary_dim > g->head_dim || g->rotary_dim % 2)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: rotary_dim %d must be even and at most head_dim %d", op,
                              g->rotary_dim, g->head_dim);
    const int64_t width = ((int64_t)g->heads + g->kv_heads) * g->head_dim;
    if (g->stride < width)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: stride is %lld, queries and keys have %lld elements", op,
                              (long long)g->stride, (long long)width);
    if (!g->gamma_q != !g->gamma_k || !g->raw != !g->stats)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: gamma_q and gamma_k, and raw and stats, must both be NULL or "
                              "none",
                              op);
    if (g->raw && !g->gamma_q)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: raw and stats are there without gamma", op);
    const int32_t *pos = rlhf__cpu_i32(g->pos);
    for (uint32_t t = 0; t < rows; t++)
        if (pos[t] < 0 || pos[t] >= g->n_pos)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: pos[%u] is %d, allowed are 0 to %d", op,
                                  t, pos[t], g->n_pos - 1);
    return RLHF_OK;
}

static uint64_t row_width(const rlhf_rope *g) {
    return ((uint64_t)g->heads + (uint64_t)g->kv_heads) * (uint64_t)g->head_dim;
}

// Rows r .. r+n-1 of x.
static struct rlhf__rope_rows rows_at(const rlhf_rope *g, rlhf_dev x, uint64_t r, uint64_t n) {
    const uint64_t size = rlhf_dtype_size(g->dtype), width = row_width(g);
    const uint64_t norms = g->whole ? 2 : (uint64_t)g->heads + (uint64_t)g->kv_heads;
    return (struct rlhf__rope_rows){
        .x = rlhf__cpu_mem(rlhf_dev_at(x, r * (uint64_t)g->stride * size)),
        .raw = g->raw ? rlhf__cpu_mem(rlhf_dev_at(g->raw, r * width * size)) : NULL,
        .pos = rlhf__cpu_i32(g->pos) + r,
        .turn = rlhf__cpu_f32(g->turn),
        .gamma_q = rlhf__cpu_f32(g->gamma_q),
        .gamma_k = rlhf__cpu_f32(g->gamma_k),
        .stats = g->stats ? rlhf__cpu_f32(g->stats) + r * norms : NULL,
        .rows = n,
        .stride = (size_t)g->stride,
        .heads = (size_t)g->heads,
        .kv_heads = (size_t)g->kv_heads,
        .half = (size_t)g->rotary_dim / 2,
        .rest = (size_t)(g->head_dim - g->rotary_dim) / 2,
        .eps = (float)g->eps,
        .offset = (float)g->gamma_offset,
        .whole = g->whole,
    };
}

struct rope {
    const struct rlhf__cpu *cpu;
    const rlhf_rope *g;
    rlhf_dev x;
    uint64_t rows, piece;
    float *sums; // backward: of the blocks, `both` floats each; or NULL
    uint64_t both;
};

static void rope_piece(const void *job, int64_t i) {
    const struct rope *j = job;
    const struct rlhf__rope_rows r = rows_at(j->g, j->x, (uint64_t)i * j->piece,
                                             rlhf__split_len(j->rows, j->piece, (uint64_t)i));
    j->cpu->hot.rope(&r, j->g->dtype == RLHF_BF16);
}

static rlhf_status rope(void *ctx, const rlhf_rope *from, rlhf_dev x, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_rope g;
    RLHF_TRY(read_rope(cpu, "rope", &g, from, rows));
    const uint64_t width = row_width(&g), piece = rlhf__split_rows(width);
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width),
                    (int64_t)rlhf__split_count(rows, piece), rope_piece,
                    &(const struct rope){cpu, &g, x, rows, piece, NULL, 0});
    return RLHF_OK;
}

// The numbers of elements of gamma_q and of gamma_k.
static uint64_t q_gammas(const rlhf_rope *g) {
    return (uint64_t)(g->whole ? g->heads : 1) * (uint64_t)g->head_dim;
}
static uint64_t k_gammas(const rlhf_rope *g) {
    const int32_t heads = g->kv_heads ? g->kv_heads : g->heads;
    return (uint64_t)(g->whole ? heads : 1) * (uint64_t)g->head_dim;
}

// The size in bytes of the blocks' sums for both gammas. There is at least one row.
static uint64_t sums_bytes(uint32_t rows, const rlhf_rope *g) {
    const uint64_t piece = rlhf__split_count(rows, ROPE_BLOCKS);
    return rlhf__split_count(rows, piece) * (q_gammas(g) + k_gammas(g)) * sizeof(float);
}

static void rope_bwd_piece(const void *job, int64_t i) {
    const struct rope *j = job;
    struct rlhf__rope_rows r = rows_at(j->g, j->x, (uint64_t)i * j->piece,
                                       rlhf__split_len(j->rows, j->piece, (uint64_t)i));
    if (j->sums) r.part = memset(j->sums + (uint64_t)i * j->both, 0, j->both * sizeof(float));
    j->cpu->hot.rope_bwd(&r, j->g->dtype == RLHF_BF16);
}

static rlhf_status rope_bwd(void *ctx, const rlhf_rope *from, rlhf_dev dx, rlhf_dev dgamma_q,
                            rlhf_dev dgamma_k, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_rope g;
    RLHF_TRY(read_rope(cpu, "rope_bwd", &g, from, rows));
    if (g.gamma_q && !g.raw)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "rope_bwd: raw and stats are NULL with gamma");
    if (!g.gamma_q && (dgamma_q || dgamma_k))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "rope_bwd: dgamma is there without gamma");
    if (!rows) return RLHF_OK;
    int sums = dgamma_q || dgamma_k;
    uint64_t width = row_width(&g), of_q = q_gammas(&g), of_k = k_gammas(&g), both = of_q + of_k;
    uint64_t piece = sums ? rlhf__split_count(rows, ROPE_BLOCKS) : rlhf__split_rows(width);
    int64_t count = (int64_t)rlhf__split_count(rows, piece);
    void *ws = NULL;
    if (sums) RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PARTIAL, sums_bytes(rows, &g), &ws));
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width), count, rope_bwd_piece,
                    &(const struct rope){cpu, &g, dx, rows, piece, ws, both});
    if (dgamma_q) cpu->hot.sum_parts(rlhf__cpu_f32(dgamma_q), ws, both, (size_t)count, of_q);
    if (dgamma_k)
        cpu->hot.sum_parts(rlhf__cpu_f32(dgamma_k), (float *)ws + of_q, both, (size_t)count, of_k);
    return RLHF_OK;
}

void rlhf__cpu_needs_rope(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    rlhf_rope g;
    (void)cpu;
    if (c->op != RLHF_COMPUTE_OP(rope_bwd) || !c->rope || !c->rows) return;
    if (rlhf_copy_in(&g, sizeof g, c->rope, RLHF_SIZE_TO(rlhf_rope, stats)) < 0) return;
    if (g.head_dim > 0 && c->flags & RLHF_CALL_PARAM_GRAD)
        rlhf__cpu_need(n, RLHF__WS_PARTIAL, sums_bytes(c->rows, &g));
}

void rlhf__cpu_fill_rope(rlhf_compute *t) {
    t->rope = rope;
    t->rope_bwd = rope_bwd;
}
