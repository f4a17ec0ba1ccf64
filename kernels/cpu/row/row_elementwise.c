// row_elementwise.c: copy, zero, convert, add, activations and gated units.
#include "machine/split.h"
#include "machine/table.h"
#include "row_act.h"

#include <string.h>

// The number of bytes in a piece of copy(). A piece of add() has the same number of bytes, so that
// add() processes a piece on the thread that copied it.
#define COPY_PIECE (RLHF__PIECE * (uint64_t)sizeof(float))

// The arrays of an operation on n elements, and what its hot loop needs to know.
struct elements {
    const struct rlhf__cpu *cpu;
    rlhf_dev out, x, y;
    uint64_t n;
    int32_t kind, bf16;
    uint64_t size; // bytes of an element of x and y
};

static uint64_t piece_at(int64_t i) { return (uint64_t)i * RLHF__PIECE; }

static size_t piece_len(const struct elements *e, int64_t i) {
    return rlhf__split_len(e->n, RLHF__PIECE, (uint64_t)i);
}

static void *at_byte(rlhf_dev p, uint64_t byte) { return rlhf__cpu_mem(rlhf_dev_at(p, byte)); }

static void each_piece(void (*piece)(const void *job, int64_t i), const struct elements *e) {
    rlhf__split_run(e->cpu, rlhf__split_threads(e->cpu, e->n),
                    (int64_t)rlhf__split_count(e->n, RLHF__PIECE), piece, e);
}

struct bytes {
    rlhf_dev dst, src;
    uint64_t n;
};

static void each_copy_piece(const struct rlhf__cpu *cpu, void (*piece)(const void *job, int64_t i),
                            const struct bytes *b) {
    rlhf__split_run(cpu, rlhf__split_threads(cpu, b->n / sizeof(float)),
                    (int64_t)rlhf__split_count(b->n, COPY_PIECE), piece, b);
}

static void copy_piece(const void *job, int64_t i) {
    const struct bytes *b = job;
    const uint64_t at = (uint64_t)i * COPY_PIECE;
    memcpy(at_byte(b->dst, at), at_byte(b->src, at),
           rlhf__split_len(b->n, COPY_PIECE, (uint64_t)i));
}

static rlhf_status copy(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes) {
    each_copy_piece(ctx, copy_piece, &(const struct bytes){dst, src, bytes});
    return RLHF_OK;
}

static void zero_piece(const void *job, int64_t i) {
    const struct bytes *b = job;
    memset(at_byte(b->dst, (uint64_t)i * COPY_PIECE), 0,
           rlhf__split_len(b->n, COPY_PIECE, (uint64_t)i));
}

static rlhf_status zero(void *ctx, rlhf_dev dst, uint64_t bytes) {
    each_copy_piece(ctx, zero_piece, &(const struct bytes){dst, NULL, bytes});
    return RLHF_OK;
}

static void narrow_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    e->cpu->hot.to_bf16((uint16_t *)rlhf__cpu_mem(e->out) + piece_at(i),
                        rlhf__cpu_f32(e->x) + piece_at(i), piece_len(e, i));
}

static void widen_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    e->cpu->hot.to_f32(rlhf__cpu_f32(e->out) + piece_at(i),
                       (const uint16_t *)rlhf__cpu_mem(e->x) + piece_at(i), piece_len(e, i));
}

static rlhf_status convert(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                           int32_t src_dtype, uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    if (dst_dtype == src_dtype) return copy(ctx, dst, src, n * rlhf_dtype_size(src_dtype));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "convert", dst_dtype));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "convert", src_dtype));
    each_piece(dst_dtype == RLHF_BF16 ? narrow_piece : widen_piece,
               &(const struct elements){.cpu = cpu, .out = dst, .x = src, .n = n});
    return RLHF_OK;
}

static void add_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    e->cpu->hot.add(rlhf__cpu_f32(e->out) + piece_at(i), at_byte(e->x, piece_at(i) * e->size),
                    e->bf16, piece_len(e, i));
}

static rlhf_status add(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "add", src_dtype));
    each_piece(add_piece, &(const struct elements){.cpu = cpu,
                                                   .out = dst,
                                                   .x = src,
                                                   .n = n,
                                                   .bf16 = src_dtype == RLHF_BF16,
                                                   .size = rlhf_dtype_size(src_dtype)});
    return RLHF_OK;
}

struct add_all {
    const struct rlhf__cpu *cpu;
    float *x, *to;
    const float *src[RLHF_ADD_ALL_MAX];
    uint32_t n_src;
    int stream;
    uint64_t n;
};

static void add_all_piece(const void *job, int64_t i) {
    const struct add_all *a = job;
    const uint64_t at = (uint64_t)i * RLHF__PIECE;
    const float *src[RLHF_ADD_ALL_MAX];
    for (uint32_t j = 0; j < a->n_src; j++)
        src[j] = a->src[j] + at;
    a->cpu->hot.add_all(a->x + at, src, a->n_src, a->to ? a->to + at : NULL, a->stream,
                        rlhf__split_len(a->n, RLHF__PIECE, (uint64_t)i));
}

// Without src, `to` is only written. If each thread's part is then larger than half of L2, the
// stores bypass the caches.
static rlhf_status add_all(void *ctx, rlhf_dev x, const rlhf_dev *src, uint32_t n_src, rlhf_dev to,
                           uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    if (n_src > RLHF_ADD_ALL_MAX)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "add_all: %u arrays, allowed are 0 to %d", n_src,
                              RLHF_ADD_ALL_MAX);
    struct add_all a = {cpu, rlhf__cpu_f32(x), rlhf__cpu_f32(to), .n_src = n_src, .n = n};
    a.stream = to && !n_src && (uintptr_t)to % 64 == 0 &&
               n * sizeof(float) / (uint64_t)cpu->threads > (uint64_t)cpu->half_l2;
    for (uint32_t j = 0; j < n_src; j++)
        a.src[j] = rlhf__cpu_f32(src[j]);
    rlhf__split_run(cpu, rlhf__split_threads(cpu, n), (int64_t)rlhf__split_count(n, RLHF__PIECE),
                    add_all_piece, &a);
    return RLHF_OK;
}

rlhf_status rlhf__cpu_check_act(struct rlhf__cpu *cpu, const char *op, int32_t kind, int none) {
    if (kind >= RLHF_ACT_GELU_TANH && kind <= RLHF_ACT_SIGMOID) return RLHF_OK;
    if (none && kind == 0) return RLHF_OK;
    return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                          "%s: kind is %d, known are gelu_tanh 1, gelu_erf 2, relu 3, silu 4, "
                          "relu2 5 and sigmoid 6",
                          op, kind);
}

static rlhf_status check_act(struct rlhf__cpu *cpu, const char *op, int32_t kind, int32_t dtype) {
    RLHF_TRY(rlhf__cpu_check_act(cpu, op, kind, 0));
    return rlhf__cpu_check_dtype(cpu, op, dtype);
}

static void act_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    const uint64_t at = piece_at(i) * e->size;
    e->cpu->hot.act(at_byte(e->out, at), at_byte(e->x, at), e->kind, e->bf16, piece_len(e, i));
}

static rlhf_status act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                       uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_act(cpu, "act", kind, dtype));
    each_piece(act_piece, &(const struct elements){cpu, out, x, NULL, n, kind, dtype == RLHF_BF16,
                                                   rlhf_dtype_size(dtype)});
    return RLHF_OK;
}

static void act_bwd_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    const uint64_t at = piece_at(i) * e->size;
    e->cpu->hot.act_bwd(at_byte(e->out, at), at_byte(e->y, at), at_byte(e->x, at), e->kind, e->bf16,
                        piece_len(e, i));
}

static rlhf_status act_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                           int32_t dtype, uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_act(cpu, "act_bwd", kind, dtype));
    each_piece(act_bwd_piece, &(const struct elements){cpu, dx, x, dy, n, kind, dtype == RLHF_BF16,
                                                       rlhf_dtype_size(dtype)});
    return RLHF_OK;
}

// Piece i of rows that consist of two halves of `inner` elements each. A piece lies within one row.
struct half_piece {
    uint64_t at, row; // number of elements before it in [rows, inner]; its row
    size_t len;
};

static struct half_piece half_piece(uint64_t inner, uint64_t i) {
    uint64_t a_row = rlhf__split_count(inner, RLHF__PIECE), row = i / a_row;
    return (struct half_piece){row * inner + i % a_row * RLHF__PIECE, row,
                               rlhf__split_len(inner, RLHF__PIECE, i % a_row)};
}

// n is the length of a half row.
static void gate_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    const struct half_piece p = half_piece(e->n, (uint64_t)i);
    const rlhf_dev a = rlhf_dev_at(e->x, (p.at + p.row * e->n) * e->size);
    e->cpu->hot.gate(at_byte(e->out, p.at * e->size), rlhf__cpu_mem(a), at_byte(a, e->n * e->size),
                     e->kind, e->bf16, p.len);
}

static rlhf_status gate(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                        uint32_t rows, int32_t inner) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_act(cpu, "gate", kind, dtype));
    RLHF_TRY(rlhf__cpu_check_d(cpu, "gate", inner));
    const uint64_t n = (uint64_t)inner;
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * n),
                    (int64_t)(rows * rlhf__split_count(n, RLHF__PIECE)), gate_piece,
                    &(const struct elements){cpu, out, x, NULL, n, kind, dtype == RLHF_BF16,
                                             rlhf_dtype_size(dtype)});
    return RLHF_OK;
}

static void gate_bwd_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    const struct half_piece p = half_piece(e->n, (uint64_t)i);
    const uint64_t at = (p.at + p.row * e->n) * e->size, half = e->n * e->size;
    const rlhf_dev a = rlhf_dev_at(e->x, at), da = rlhf_dev_at(e->out, at);
    e->cpu->hot.gate_bwd(rlhf__cpu_mem(da), at_byte(da, half), at_byte(e->y, p.at * e->size),
                         rlhf__cpu_mem(a), at_byte(a, half), e->kind, e->bf16, p.len);
}

static rlhf_status gate_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                            int32_t dtype, uint32_t rows, int32_t inner) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_act(cpu, "gate_bwd", kind, dtype));
    RLHF_TRY(rlhf__cpu_check_d(cpu, "gate_bwd", inner));
    const uint64_t n = (uint64_t)inner;
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * n),
                    (int64_t)(rows * rlhf__split_count(n, RLHF__PIECE)), gate_bwd_piece,
                    &(const struct elements){cpu, dx, x, dy, n, kind, dtype == RLHF_BF16,
                                             rlhf_dtype_size(dtype)});
    return RLHF_OK;
}

void rlhf__cpu_fill_elementwise(rlhf_compute *t) {
    t->copy = copy;
    t->zero = zero;
    t->convert = convert;
    t->act = act;
    t->act_bwd = act_bwd;
    t->gate = gate;
    t->gate_bwd = gate_bwd;
    t->add = add;
    t->add_all = add_all;
}
