// row_gated.c: gated_norm and multiply, forward and backward.
#include "machine/split.h"
#include "machine/table.h"
#include "row/row_act.h"

#include <string.h>

// gated_norm_bwd adds the gradients of gamma in at most this many blocks of consecutive rows, and
// then the blocks in order. So the order depends only on the number of rows.
#define NORM_BLOCKS 64u

static rlhf_status read_norm(struct rlhf__cpu *cpu, const char *op, rlhf_gated_norm *n,
                             const rlhf_gated_norm *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, n, sizeof *n, from, RLHF_SIZE_TO(rlhf_gated_norm, gamma)));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, op, n->dtype));
    RLHF_TRY(rlhf__cpu_check_act(cpu, op, n->act, 0));
    const int64_t width = (int64_t)n->heads * n->head_dim;
    if (n->heads < 1 || n->head_dim < 1 || n->x_stride < width || n->gate_stride < width ||
        n->out_stride < width)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: %d heads of %d do not fit the strides %lld, %lld and %lld", op,
                              n->heads, n->head_dim, (long long)n->x_stride,
                              (long long)n->gate_stride, (long long)n->out_stride);
    return RLHF_OK;
}

// The arguments of a call.
struct norm {
    struct rlhf__cpu *cpu;
    const rlhf_gated_norm *n;
    const char *x, *gate, *dout;
    char *out, *dx, *dgate;
    float *stats, *sums; // sums: of the blocks, or NULL
    uint64_t rows, piece, size;
};

// Row t, whose arrays of the backward pass are set only there.
static struct rlhf__gated_row row_of(const struct norm *a, uint64_t t) {
    const rlhf_gated_norm *n = a->n;
    const uint64_t x = t * (uint64_t)n->x_stride * a->size,
                   gate = t * (uint64_t)n->gate_stride * a->size,
                   out = t * (uint64_t)n->out_stride * a->size;
    return (struct rlhf__gated_row){
        .x = a->x + x,
        .gate = a->gate + gate,
        .out = a->out ? a->out + out : NULL,
        .stats = a->stats ? a->stats + t * (uint64_t)n->heads : NULL,
        .dout = a->dout ? a->dout + out : NULL,
        .dx = a->dx ? a->dx + x : NULL,
        .dgate = a->dgate ? a->dgate + gate : NULL,
        .gamma = rlhf__cpu_f32(n->gamma),
        .heads = (size_t)n->heads,
        .head_dim = (size_t)n->head_dim,
        .eps = (float)n->eps,
        .act = n->act,
        .bf16 = n->dtype == RLHF_BF16,
    };
}

static void norm_piece(const void *job, int64_t i) {
    const struct norm *a = job;
    const uint64_t first = (uint64_t)i * a->piece;
    const size_t n = rlhf__split_len(a->rows, a->piece, (uint64_t)i);
    for (uint64_t t = first; t < first + n; t++) {
        const struct rlhf__gated_row r = row_of(a, t);
        a->cpu->hot.gated_norm(&r);
    }
}

static rlhf_status gated_norm(void *ctx, const rlhf_gated_norm *from, rlhf_dev out, rlhf_dev stats,
                              rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_gated_norm n;
    RLHF_TRY(read_norm(cpu, "gated_norm", &n, from));
    const uint64_t width = (uint64_t)n.heads * (uint64_t)n.head_dim;
    const struct norm a = {.cpu = cpu,
                           .n = &n,
                           .x = rlhf__cpu_mem(x),
                           .gate = rlhf__cpu_mem(gate),
                           .out = rlhf__cpu_mem(out),
                           .stats = rlhf__cpu_f32(stats),
                           .rows = rows,
                           .piece = rlhf__split_rows(width),
                           .size = rlhf_dtype_size(n.dtype)};
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * width),
                    (int64_t)rlhf__split_count(rows, a.piece), norm_piece, &a);
    return RLHF_OK;
}

static void norm_bwd_block(const void *job, int64_t i) {
    const struct norm *a = job;
    const uint64_t first = (uint64_t)i * a->piece, dim = (uint64_t)a->n->head_dim;
    const size_t n = rlhf__split_len(a->rows, a->piece, (uint64_t)i);
    float *part = a->sums ? a->sums + (uint64_t)i * dim : NULL;
    if (part) memset(part, 0, dim * sizeof *part);
    for (uint64_t t = first; t < first + n; t++) {
        struct rlhf__gated_row r = row_of(a, t);
        r.part = part;
        a->cpu->hot.gated_norm_bwd(&r);
    }
}

static uint64_t sums_bytes(uint32_t rows, int32_t dim) {
    const uint64_t piece = rlhf__split_count(rows, NORM_BLOCKS);
    return rlhf__split_count(rows, piece) * (uint64_t)dim * sizeof(float);
}

static rlhf_status gated_norm_bwd(void *ctx, const rlhf_gated_norm *from, rlhf_dev dx,
                                  rlhf_dev dgate, rlhf_dev dgamma, rlhf_dev dout, rlhf_dev stats,
                                  rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_gated_norm n;
    void *ws = NULL;
    RLHF_TRY(read_norm(cpu, "gated_norm_bwd", &n, from));
    if (!rows) return RLHF_OK;
    if (dgamma)
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PARTIAL, sums_bytes(rows, n.head_dim), &ws));
    const struct norm a = {.cpu = cpu,
                           .n = &n,
                           .x = rlhf__cpu_mem(x),
                           .gate = rlhf__cpu_mem(gate),
                           .dout = rlhf__cpu_mem(dout),
                           .dx = rlhf__cpu_mem(dx),
                           .dgate = rlhf__cpu_mem(dgate),
                           .stats = rlhf__cpu_f32(stats),
                           .sums = ws,
                           .rows = rows,
                           .piece = rlhf__split_count(rows, NORM_BLOCKS),
                           .size = rlhf_dtype_size(n.dtype)};
    const uint64_t count = rlhf__split_count(rows, a.piece), dim = (uint64_t)n.head_dim;
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * dim * (uint64_t)n.heads), (int64_t)count,
                    norm_bwd_block, &a);
    if (dgamma) cpu->hot.sum_parts(rlhf__cpu_f32(dgamma), ws, dim, (size_t)count, dim);
    return RLHF_OK;
}

// ---- multiply ----

// `gated`: the layout of the gate is checked, too.
static rlhf_status read_columns(struct rlhf__cpu *cpu, const char *op, rlhf_columns *c,
                                const rlhf_columns *from, int gated) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, c, sizeof *c, from, RLHF_SIZE_TO(rlhf_columns, out_step)));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, op, c->dtype));
    RLHF_TRY(rlhf__cpu_check_act(cpu, op, c->act, 1));
    if (c->blocks < 1 || c->width < 1)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: %d blocks of %d columns, must be positive",
                              op, c->blocks, c->width);
    const int64_t strides[] = {c->x_stride, c->out_stride, c->gate_stride};
    const int64_t steps[] = {c->x_step, c->out_step, c->gate_step};
    for (int i = 0; i < 2 + !!gated; i++) {
        if ((c->blocks == 1 || steps[i] >= c->width) &&
            strides[i] >= (c->blocks - 1) * steps[i] + c->width)
            continue;
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: %d blocks of %d columns do not fit step %lld and stride %lld",
                              op, c->blocks, c->width, (long long)steps[i], (long long)strides[i]);
    }
    return RLHF_OK;
}

struct columns {
    struct rlhf__cpu *cpu;
    const rlhf_columns *c;
    const char *x, *gate, *dout;
    char *out, *dx, *dgate;
    uint64_t rows, piece, size;
};

// The bytes before block b of row t.
static uint64_t bytes_to(const struct columns *a, uint64_t t, uint64_t b, int64_t stride,
                         int64_t step) {
    return (t * (uint64_t)stride + b * (uint64_t)step) * a->size;
}

static void columns_piece(const void *job, int64_t i) {
    const struct columns *a = job;
    const rlhf_columns *c = a->c;
    const uint64_t first = (uint64_t)i * a->piece, width = (uint64_t)c->width;
    const size_t n = rlhf__split_len(a->rows, a->piece, (uint64_t)i);
    const int bf16 = c->dtype == RLHF_BF16;
    for (uint64_t t = first; t < first + n; t++)
        for (uint64_t b = 0; b < (uint64_t)c->blocks; b++) {
            const uint64_t x = bytes_to(a, t, b, c->x_stride, c->x_step),
                           gate = bytes_to(a, t, b, c->gate_stride, c->gate_step),
                           out = bytes_to(a, t, b, c->out_stride, c->out_step);
            if (a->dout)
                a->cpu->hot.gate_bwd(a->dgate + gate, a->dx + x, a->dout + out, a->gate + gate,
                                     a->x + x, c->act, bf16, width);
            else if (a->gate)
                a->cpu->hot.gate(a->out + out, a->gate + gate, a->x + x, c->act, bf16, width);
            else
                memmove(a->out + out, a->x + x, width * a->size);
        }
}

static void run_columns(struct columns *a, uint32_t rows) {
    const uint64_t width = (uint64_t)a->c->blocks * (uint64_t)a->c->width;
    a->rows = rows;
    a->piece = rlhf__split_rows(width);
    a->size = rlhf_dtype_size(a->c->dtype);
    rlhf__split_run(a->cpu, rlhf__split_threads(a->cpu, rows * width),
                    (int64_t)rlhf__split_count(rows, a->piece), columns_piece, a);
}

static rlhf_status multiply(void *ctx, const rlhf_columns *from, rlhf_dev out, rlhf_dev x,
                            rlhf_dev gate, uint32_t rows) {
    rlhf_columns c;
    RLHF_TRY(read_columns(ctx, "multiply", &c, from, gate != NULL));
    struct columns a = {.cpu = ctx,
                        .c = &c,
                        .x = rlhf__cpu_mem(x),
                        .gate = rlhf__cpu_mem(gate),
                        .out = rlhf__cpu_mem(out)};
    run_columns(&a, rows);
    return RLHF_OK;
}

static rlhf_status multiply_bwd(void *ctx, const rlhf_columns *from, rlhf_dev dx, rlhf_dev dgate,
                                rlhf_dev dout, rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    rlhf_columns c;
    RLHF_TRY(read_columns(ctx, "multiply_bwd", &c, from, 1));
    struct columns a = {.cpu = ctx,
                        .c = &c,
                        .x = rlhf__cpu_mem(x),
                        .gate = rlhf__cpu_mem(gate),
                        .dout = rlhf__cpu_mem(dout),
                        .dx = rlhf__cpu_mem(dx),
                        .dgate = rlhf__cpu_mem(dgate)};
    run_columns(&a, rows);
    return RLHF_OK;
}

void rlhf__cpu_needs_gated(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    rlhf_gated_norm g;
    if (c->op != RLHF_COMPUTE_OP(gated_norm_bwd) || !c->gated_norm || !c->rows) return;
    if (!(c->flags & RLHF_CALL_PARAM_GRAD)) return;
    if (read_norm(cpu, "workspace_bytes", &g, c->gated_norm) == RLHF_OK)
        rlhf__cpu_need(n, RLHF__WS_PARTIAL, sums_bytes(c->rows, g.head_dim));
}

rlhf_status rlhf__cpu_supports_gated(struct rlhf__cpu *cpu, const char *op, const rlhf_call *c) {
    rlhf_gated_norm n;
    rlhf_columns m;
    if (c->op == RLHF_COMPUTE_OP(gated_norm) || c->op == RLHF_COMPUTE_OP(gated_norm_bwd))
        return read_norm(cpu, op, &n, c->gated_norm);
    return read_columns(cpu, op, &m, c->columns, c->columns->gate_stride != 0);
}

void rlhf__cpu_fill_gated(rlhf_compute *t) {
    t->gated_norm = gated_norm;
    t->gated_norm_bwd = gated_norm_bwd;
    t->multiply = multiply;
    t->multiply_bwd = multiply_bwd;
}
