// decoder.c: the row ops of a decoder with RMS norms, gated units and rotary positions, at the
// widths of Qwen2.5-0.5B. Measures the necessary memory traffic per second of each op, and compares
// it with that of a device copy.
#include "bench.h"

#include <stdio.h>

enum { D = 896, INNER = 4864, HEADS = 14, KV_HEADS = 2, DIM = 64, POSITIONS = 2048 };
enum { QKV = (HEADS + 2 * KV_HEADS) * DIM, TURNED = (HEADS + KV_HEADS) * DIM };

// Buffers of `rows` rows, wide enough for every op.
struct decoder {
    uint32_t rows, norm_rows; // norm_rows: number of rows for norms, which are narrower
    rlhf_dev f[2], h[3], stats, gamma, ids, wte;
    rlhf_rope rope, normed;
    double copy; // GB/s
};

struct op {
    const char *name;
    rlhf_status (*run)(const struct bench *b, const struct decoder *r);
    double bytes; // bytes that the op must read and write per row
    int norm;     // 1: the op works on norm_rows rows, not on `rows` rows
};

static rlhf_status run_copy(const struct bench *b, const struct decoder *r) {
    return b->c->copy(b->c->ctx, r->f[1], r->f[0], (uint64_t)r->norm_rows * D * 4);
}

static rlhf_status run_rms(const struct bench *b, const struct decoder *r) {
    return b->c->rms_norm(b->c->ctx, r->h[0], RLHF_BF16, r->stats, r->f[0], r->gamma, 0.0, 1e-6,
                          r->norm_rows, D);
}

static rlhf_status run_rms_bwd(const struct bench *b, const struct decoder *r) {
    return b->c->rms_norm_bwd(b->c->ctx, r->f[1], 1, r->gamma, r->h[0], RLHF_BF16, r->f[0],
                              r->stats, r->gamma, 0.0, r->norm_rows, D);
}

static rlhf_status run_gate(const struct bench *b, const struct decoder *r) {
    return b->c->gate(b->c->ctx, r->h[1], r->h[0], RLHF_ACT_SILU, RLHF_BF16, r->rows, INNER);
}

static rlhf_status run_gate_bwd(const struct bench *b, const struct decoder *r) {
    return b->c->gate_bwd(b->c->ctx, r->h[2], r->h[1], r->h[0], RLHF_ACT_SILU, RLHF_BF16, r->rows,
                          INNER);
}

static rlhf_status run_rope(const struct bench *b, const struct decoder *r) {
    return b->c->rope(b->c->ctx, &r->rope, r->h[0], r->rows);
}

static rlhf_status run_rope_bwd(const struct bench *b, const struct decoder *r) {
    return b->c->rope_bwd(b->c->ctx, &r->rope, r->h[0], NULL, NULL, r->rows);
}

static rlhf_status run_normed(const struct bench *b, const struct decoder *r) {
    return b->c->rope(b->c->ctx, &r->normed, r->h[0], r->rows);
}

static rlhf_status run_normed_bwd(const struct bench *b, const struct decoder *r) {
    return b->c->rope_bwd(b->c->ctx, &r->normed, r->h[0], r->gamma, r->gamma, r->rows);
}

static rlhf_status run_embed(const struct bench *b, const struct decoder *r) {
    return b->c->embed(b->c->ctx, r->f[0], r->ids, NULL, r->wte, NULL, 1.0, r->norm_rows, D);
}

static rlhf_status run_embed_bwd(const struct bench *b, const struct decoder *r) {
    return b->c->embed_bwd(b->c->ctx, r->wte, NULL, r->f[0], r->ids, NULL, 1.0, r->norm_rows, D,
                           POSITIONS, 0);
}

static const struct op ops[] = {
    {"memory, copy (read + write)", run_copy, 8 * D, 1},
    {"RMS norm, f32 to bf16", run_rms, 6 * D, 1},
    {"RMS norm backward, with gamma", run_rms_bwd, 14 * D, 1},
    {"embedding", run_embed, 8 * D, 1},
    {"embedding backward", run_embed_bwd, 12 * D, 1},
    {"gated SiLU, bf16", run_gate, 6 * INNER, 0},
    {"gated SiLU backward, bf16", run_gate_bwd, 10 * INNER, 0},
    {"rotary positions, bf16", run_rope, 4 * TURNED, 0},
    {"rotary positions backward, bf16", run_rope_bwd, 4 * TURNED, 0},
    {"norm and rotary positions, bf16", run_normed, 6 * TURNED, 0},
    {"norm and rotary positions backward, bf16", run_normed_bwd, 6 * TURNED, 0},
};

static void run_op(const struct bench *b, struct decoder *r, const struct op *op) {
    double best = 1e30;
    for (int i = 0; i < (b->tiny ? 1 : 7); i++) {
        const double t = bench_now(b);
        bench_check(b, op->run(b, r), op->name);
        const double spent = bench_now(b) - t;
        if (spent < best) best = spent;
    }
    const double rate = op->bytes * (op->norm ? r->norm_rows : r->rows) * 1e-9 / best;
    if (r->copy == 0) r->copy = rate; // the copy comes first
    printf("%-44s %10.1f GB/s, %.2f of copy\n", op->name, rate, rate / r->copy);
}

static struct decoder decoder_open(const struct bench *b) {
    struct decoder r = {.rows = b->tiny ? 4 : 16384, .norm_rows = b->tiny ? 8 : 65536};
    const uint64_t n = (uint64_t)r.norm_rows * D, wide = (uint64_t)r.rows * 2 * INNER;
    for (int i = 0; i < 2; i++)
        r.f[i] = bench_random(b, n, RLHF_F32);
    for (int i = 0; i < 3; i++)
        r.h[i] = bench_random(b, wide > n ? wide : n, RLHF_BF16);
    r.stats = bench_random(b, r.norm_rows, RLHF_F32);
    r.gamma = bench_random(b, D, RLHF_F32);
    r.ids = bench_numbers(b, r.norm_rows, 0, 7919, POSITIONS);
    r.wte = bench_random(b, (uint64_t)POSITIONS * D, RLHF_F32);
    r.rope = (rlhf_rope){.size = sizeof r.rope,
                         .heads = HEADS,
                         .kv_heads = KV_HEADS,
                         .head_dim = DIM,
                         .dtype = RLHF_BF16,
                         .n_pos = POSITIONS,
                         .stride = QKV,
                         .eps = 1e-6};
    r.rope.pos = bench_numbers(b, r.rows, 0, 1, POSITIONS);
    r.rope.turn = bench_random(b, (uint64_t)POSITIONS * DIM, RLHF_F32);
    r.normed = r.rope;
    r.normed.gamma_q = r.normed.gamma_k = r.gamma;
    r.normed.raw = r.h[1];
    r.normed.stats = bench_random(b, (uint64_t)r.rows * (HEADS + KV_HEADS), RLHF_F32);
    return r;
}

static void decoder_close(const struct bench *b, const struct decoder *r) {
    const rlhf_dev all[] = {r->f[0],  r->f[1], r->h[0], r->h[1],     r->h[2],      r->stats,
                            r->gamma, r->ids,  r->wte,  r->rope.pos, r->rope.turn, r->normed.stats};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        b->c->release(b->c->ctx, all[i]);
}

void bench_decoder(const struct bench *b) {
    struct decoder r = decoder_open(b);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        run_op(b, &r, &ops[i]);
    decoder_close(b, &r);
    bench_grouped(b, r.copy);
}
