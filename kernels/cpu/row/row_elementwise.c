// row_elementwise.c: copy, zero, convert, add, activations and gated units.
#include "machine/split.h"
#include "machine/table.h"

#include <string.h>

// The number of bytes in a piece of copy(). A piece of add() has the same number of bytes, so that
// add() processes a piece on the thread that copied it.
#define COPY_PIECE (RLHF__PIECE * (uint64_t)sizeof(float))

static rlhf_status copy(void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes) {
    const struct rlhf__cpu *cpu = ctx;
    int64_t count = (int64_t)rlhf__split_count(bytes, COPY_PIECE);
    int threads = rlhf__split_threads(cpu, bytes / sizeof(float));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * COPY_PIECE;
        memcpy(rlhf__cpu_mem(rlhf_dev_at(dst, at)), rlhf__cpu_mem(rlhf_dev_at(src, at)),
               rlhf__split_len(bytes, COPY_PIECE, (uint64_t)i));
    }
    return RLHF_OK;
}

static rlhf_status zero(void *ctx, rlhf_dev dst, uint64_t bytes) {
    const struct rlhf__cpu *cpu = ctx;
    int64_t count = (int64_t)rlhf__split_count(bytes, COPY_PIECE);
    int threads = rlhf__split_threads(cpu, bytes / sizeof(float));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++)
        memset(rlhf__cpu_mem(rlhf_dev_at(dst, (uint64_t)i * COPY_PIECE)), 0,
               rlhf__split_len(bytes, COPY_PIECE, (uint64_t)i));
    return RLHF_OK;
}

static rlhf_status convert(void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src,
                           int32_t src_dtype, uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    if (dst_dtype == src_dtype) return copy(ctx, dst, src, n * rlhf_dtype_size(src_dtype));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "convert", dst_dtype));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "convert", src_dtype));
    int narrow = dst_dtype == RLHF_BF16, threads = rlhf__split_threads(cpu, n);
    int64_t count = (int64_t)rlhf__split_count(n, RLHF__PIECE);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * RLHF__PIECE;
        size_t len = rlhf__split_len(n, RLHF__PIECE, (uint64_t)i);
        if (narrow)
            cpu->hot.to_bf16((uint16_t *)rlhf__cpu_mem(dst) + at, rlhf__cpu_f32(src) + at, len);
        else
            cpu->hot.to_f32(rlhf__cpu_f32(dst) + at, (const uint16_t *)rlhf__cpu_mem(src) + at,
                            len);
    }
    return RLHF_OK;
}

static rlhf_status add(void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "add", src_dtype));
    int bf16 = src_dtype == RLHF_BF16, threads = rlhf__split_threads(cpu, n);
    uint64_t size = rlhf_dtype_size(src_dtype);
    int64_t count = (int64_t)rlhf__split_count(n, RLHF__PIECE);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * RLHF__PIECE;
        cpu->hot.add(rlhf__cpu_f32(dst) + at, rlhf__cpu_mem(rlhf_dev_at(src, at * size)), bf16,
                     rlhf__split_len(n, RLHF__PIECE, (uint64_t)i));
    }
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
    rlhf__split_run(rlhf__split_threads(cpu, n), (int64_t)rlhf__split_count(n, RLHF__PIECE),
                    add_all_piece, &a);
    return RLHF_OK;
}

static rlhf_status check_act(struct rlhf__cpu *cpu, const char *op, int32_t kind, int32_t dtype) {
    if (kind < RLHF_ACT_GELU_TANH || kind > RLHF_ACT_RELU2)
        return rlhf__cpu_fail(
            cpu, RLHF_E_UNSUPPORTED,
            "%s: kind is %d, known are gelu_tanh 1, gelu_erf 2, relu 3, silu 4 and relu2 5", op,
            kind);
    return rlhf__cpu_check_dtype(cpu, op, dtype);
}

static rlhf_status act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                       uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_act(cpu, "act", kind, dtype));
    int threads = rlhf__split_threads(cpu, n);
    uint64_t size = rlhf_dtype_size(dtype);
    int64_t count = (int64_t)rlhf__split_count(n, RLHF__PIECE);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * RLHF__PIECE * size;
        cpu->hot.act(rlhf__cpu_mem(rlhf_dev_at(out, at)), rlhf__cpu_mem(rlhf_dev_at(x, at)), kind,
                     dtype == RLHF_BF16, rlhf__split_len(n, RLHF__PIECE, (uint64_t)i));
    }
    return RLHF_OK;
}

static rlhf_status act_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                           int32_t dtype, uint64_t n) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_act(cpu, "act_bwd", kind, dtype));
    int threads = rlhf__split_threads(cpu, n);
    uint64_t size = rlhf_dtype_size(dtype);
    int64_t count = (int64_t)rlhf__split_count(n, RLHF__PIECE);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * RLHF__PIECE * size;
        cpu->hot.act_bwd(rlhf__cpu_mem(rlhf_dev_at(dx, at)), rlhf__cpu_mem(rlhf_dev_at(dy, at)),
                         rlhf__cpu_mem(rlhf_dev_at(x, at)), kind, dtype == RLHF_BF16,
                         rlhf__split_len(n, RLHF__PIECE, (uint64_t)i));
    }
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

static rlhf_status gate(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                        uint32_t rows, int32_t inner) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_act(cpu, "gate", kind, dtype));
    RLHF_TRY(rlhf__cpu_check_d(cpu, "gate", inner));
    uint64_t n = (uint64_t)inner, size = rlhf_dtype_size(dtype);
    int threads = rlhf__split_threads(cpu, rows * n);
    int64_t count = (int64_t)(rows * rlhf__split_count(n, RLHF__PIECE));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        struct half_piece p = half_piece(n, (uint64_t)i);
        rlhf_dev a = rlhf_dev_at(x, (p.at + p.row * n) * size);
        cpu->hot.gate(rlhf__cpu_mem(rlhf_dev_at(out, p.at * size)), rlhf__cpu_mem(a),
                      rlhf__cpu_mem(rlhf_dev_at(a, n * size)), kind, dtype == RLHF_BF16, p.len);
    }
    return RLHF_OK;
}

static rlhf_status gate_bwd(void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind,
                            int32_t dtype, uint32_t rows, int32_t inner) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(check_act(cpu, "gate_bwd", kind, dtype));
    RLHF_TRY(rlhf__cpu_check_d(cpu, "gate_bwd", inner));
    uint64_t n = (uint64_t)inner, size = rlhf_dtype_size(dtype);
    int threads = rlhf__split_threads(cpu, rows * n);
    int64_t count = (int64_t)(rows * rlhf__split_count(n, RLHF__PIECE));
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++) {
        struct half_piece p = half_piece(n, (uint64_t)i);
        uint64_t at = (p.at + p.row * n) * size;
        rlhf_dev a = rlhf_dev_at(x, at), da = rlhf_dev_at(dx, at);
        cpu->hot.gate_bwd(rlhf__cpu_mem(da), rlhf__cpu_mem(rlhf_dev_at(da, n * size)),
                          rlhf__cpu_mem(rlhf_dev_at(dy, p.at * size)), rlhf__cpu_mem(a),
                          rlhf__cpu_mem(rlhf_dev_at(a, n * size)), kind, dtype == RLHF_BF16, p.len);
    }
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
