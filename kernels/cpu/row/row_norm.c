// row_norm.c: LayerNorm and RMS norm, forward and backward.
#include "machine/split.h"
#include "machine/table.h"

#include <string.h>

// Backward computes the sums for gamma and beta in at most this many blocks of consecutive rows. It
// adds the rows of each block in order, and then the blocks in order. So the order depends only on
// the number of rows.
#define NORM_BLOCKS 64u

// The size in bytes of the blocks' sums. Each block has `each` vectors of width d. `rows` must be
// at least 1.
static uint64_t sums_bytes(uint32_t rows, uint64_t each, uint64_t d) {
    const uint64_t piece = rlhf__split_count(rows, NORM_BLOCKS);
    return rlhf__split_count(rows, piece) * each * d * sizeof(float);
}

struct norm {
    const struct rlhf__cpu *cpu;
    char *out;
    float *stats; // or NULL
    const float *x, *gamma, *beta;
    float eps;
    int32_t bf16; // 1 if out is bf16
    uint64_t rows, width, piece;
};

static void norm_piece(const void *job, int64_t i) {
    const struct norm *n = job;
    const uint64_t r = (uint64_t)i * n->piece, size = n->bf16 ? 2 : 4;
    n->cpu->hot.norm(n->out + r * n->width * size, n->bf16, n->stats ? n->stats + 2 * r : NULL,
                     n->x + r * n->width, n->gamma, n->beta, n->eps,
                     rlhf__split_len(n->rows, n->piece, (uint64_t)i), n->width);
}

static rlhf_status norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                        rlhf_dev gamma, rlhf_dev beta, double eps, uint32_t rows, int32_t d) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "norm", d));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "norm", out_dtype));
    const uint64_t width = (uint64_t)d, piece = rlhf__split_rows(width);
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width),
                    (int64_t)rlhf__split_count(rows, piece), norm_piece,
                    &(const struct norm){cpu, rlhf__cpu_mem(out),
                                         stats ? rlhf__cpu_f32(stats) : NULL, rlhf__cpu_f32(x),
                                         rlhf__cpu_f32(gamma), rlhf__cpu_f32(beta), (float)eps,
                                         out_dtype == RLHF_BF16, rows, width, piece});
    return RLHF_OK;
}

// The backward pass of both norms.
struct norm_bwd {
    const struct rlhf__cpu *cpu;
    float *dx, *sums; // sums: of the blocks, or NULL
    const char *dy;
    const float *x, *stats, *gamma;
    float offset; // of rms_norm
    int32_t accumulate, bf16;
    uint64_t rows, width, piece;
};

// The sums of block i, set to zero: `each` vectors of the rows' width. NULL without sums.
static float *sums_of(const struct norm_bwd *n, int64_t i, uint64_t each) {
    const uint64_t floats = each * n->width;
    return n->sums ? memset(n->sums + (uint64_t)i * floats, 0, floats * sizeof(float)) : NULL;
}

static void norm_bwd_block(const void *job, int64_t i) {
    const struct norm_bwd *n = job;
    const uint64_t r = (uint64_t)i * n->piece, at = r * n->width;
    n->cpu->hot.norm_bwd(n->dx + at, n->accumulate, sums_of(n, i, 2),
                         n->dy + at * (n->bf16 ? 2 : 4), n->bf16, n->x + at, n->stats + 2 * r,
                         n->gamma, rlhf__split_len(n->rows, n->piece, (uint64_t)i), n->width);
}

static rlhf_status norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                            rlhf_dev dbeta, rlhf_dev dy, int32_t dy_dtype, rlhf_dev x,
                            rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "norm_bwd", d));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "norm_bwd", dy_dtype));
    if (!rows) return RLHF_OK;
    uint64_t width = (uint64_t)d, piece = rlhf__split_count(rows, NORM_BLOCKS);
    int64_t count = (int64_t)rlhf__split_count(rows, piece);
    void *ws = NULL;
    if (dgamma || dbeta)
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PARTIAL, sums_bytes(rows, 2, width), &ws));
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width), count, norm_bwd_block,
                    &(const struct norm_bwd){cpu, rlhf__cpu_f32(dx), ws, rlhf__cpu_mem(dy),
                                             rlhf__cpu_f32(x), rlhf__cpu_f32(stats),
                                             rlhf__cpu_f32(gamma), 0, accumulate,
                                             dy_dtype == RLHF_BF16, rows, width, piece});
    if (dgamma) cpu->hot.sum_parts(rlhf__cpu_f32(dgamma), ws, 2 * width, (size_t)count, width);
    if (dbeta)
        cpu->hot.sum_parts(rlhf__cpu_f32(dbeta), (float *)ws + width, 2 * width, (size_t)count,
                           width);
    return RLHF_OK;
}

struct rms_norm {
    const struct rlhf__cpu *cpu;
    char *out;
    float *stats; // or NULL
    const float *x, *gamma;
    float offset, eps;
    int32_t bf16; // 1 if out is bf16
    uint64_t rows, width, piece;
};

static void rms_norm_piece(const void *job, int64_t i) {
    const struct rms_norm *n = job;
    const uint64_t r = (uint64_t)i * n->piece, at = r * n->width;
    n->cpu->hot.rms_norm(n->out + at * (n->bf16 ? 2 : 4), n->bf16, n->stats ? n->stats + r : NULL,
                         n->x + at, n->gamma, n->offset, n->eps,
                         rlhf__split_len(n->rows, n->piece, (uint64_t)i), n->width);
}

static rlhf_status rms_norm(void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x,
                            rlhf_dev gamma, double offset, double eps, uint32_t rows, int32_t d) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "rms_norm", d));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "rms_norm", out_dtype));
    const uint64_t width = (uint64_t)d, piece = rlhf__split_rows(width);
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width),
                    (int64_t)rlhf__split_count(rows, piece), rms_norm_piece,
                    &(const struct rms_norm){cpu, rlhf__cpu_mem(out),
                                             stats ? rlhf__cpu_f32(stats) : NULL, rlhf__cpu_f32(x),
                                             rlhf__cpu_f32(gamma), (float)offset, (float)eps,
                                             out_dtype == RLHF_BF16, rows, width, piece});
    return RLHF_OK;
}

static void rms_norm_bwd_block(const void *job, int64_t i) {
    const struct norm_bwd *n = job;
    const uint64_t r = (uint64_t)i * n->piece, at = r * n->width;
    n->cpu->hot.rms_norm_bwd(n->dx + at, n->accumulate, sums_of(n, i, 1),
                             n->dy + at * (n->bf16 ? 2 : 4), n->bf16, n->x + at, n->stats + r,
                             n->gamma, n->offset, rlhf__split_len(n->rows, n->piece, (uint64_t)i),
                             n->width);
}

static rlhf_status rms_norm_bwd(void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma,
                                rlhf_dev dy, int32_t dy_dtype, rlhf_dev x, rlhf_dev stats,
                                rlhf_dev gamma, double offset, uint32_t rows, int32_t d) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "rms_norm_bwd", d));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "rms_norm_bwd", dy_dtype));
    if (!rows) return RLHF_OK;
    uint64_t width = (uint64_t)d, piece = rlhf__split_count(rows, NORM_BLOCKS);
    int64_t count = (int64_t)rlhf__split_count(rows, piece);
    void *ws = NULL;
    if (dgamma)
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PARTIAL, sums_bytes(rows, 1, width), &ws));
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width), count, rms_norm_bwd_block,
                    &(const struct norm_bwd){cpu, rlhf__cpu_f32(dx), ws, rlhf__cpu_mem(dy),
                                             rlhf__cpu_f32(x), rlhf__cpu_f32(stats),
                                             rlhf__cpu_f32(gamma), (float)offset, accumulate,
                                             dy_dtype == RLHF_BF16, rows, width, piece});
    if (dgamma) cpu->hot.sum_parts(rlhf__cpu_f32(dgamma), ws, width, (size_t)count, width);
    return RLHF_OK;
}

void rlhf__cpu_needs_norm(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    const uint64_t each = c->op == RLHF_COMPUTE_OP(norm_bwd)       ? 2
                          : c->op == RLHF_COMPUTE_OP(rms_norm_bwd) ? 1
                                                                   : 0;
    (void)cpu;
    if (each && c->rows && c->d > 0 && c->flags & RLHF_CALL_PARAM_GRAD)
        rlhf__cpu_need(n, RLHF__WS_PARTIAL, sums_bytes(c->rows, each, (uint64_t)c->d));
}

void rlhf__cpu_fill_norm(rlhf_compute *t) {
    t->norm = norm;
    t->norm_bwd = norm_bwd;
    t->rms_norm = rms_norm;
    t->rms_norm_bwd = rms_norm_bwd;
}
