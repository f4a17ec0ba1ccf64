// grouped.c: attention in which several query heads read one key head, at the widths of
// Qwen2.5-0.5B. This attention is compared with attention that has as many key heads as query
// heads, for training rows (forward and backward) and for one decode step.
#include "bench.h"

#include <stdio.h>

enum { HEADS = 14, KV_HEADS = 2, DIM = 64 };

// Attention over `rows` rows of `len` keys each. A row has one query in decoding, and `len` queries
// in training.
struct grouped {
    uint32_t rows, len;
    int32_t heads, kv_heads, decoding, dtype;
    rlhf_attn how;
    rlhf_ragged ragged;
    rlhf_dev q, k, v, out, lse, dq, dk, dv;
};

// Returns a copy of g in which the buffers are allocated. g must have the shape.
static struct grouped grouped_open(const struct bench *b, struct grouped g) {
    const uint32_t rows = g.rows, len = g.len;
    const int32_t decoding = g.decoding;
    const uint64_t nq = (uint64_t)rows * (decoding ? 1 : len), nk = (uint64_t)rows * len;
    const int64_t q = (int64_t)g.heads * DIM, kv = (int64_t)g.kv_heads * DIM;
    g.how =
        (rlhf_attn){sizeof g.how, g.heads, g.kv_heads, DIM, 1, g.dtype, q, kv, q, .scale = 0.125};
    g.ragged = (rlhf_ragged){.size = sizeof g.ragged,
                             .n = rows,
                             .total = (uint32_t)nq,
                             .max_q = decoding ? 1 : len,
                             .max_k = len,
                             .offset = bench_numbers(b, rows + 1ull, 0, decoding ? 1 : len, nq + 1),
                             .start = bench_numbers(b, rows, decoding ? len - 1 : 0, 0, len),
                             .kv_base = bench_numbers(b, rows, 0, len, nk)};
    g.q = bench_random(b, nq * (uint64_t)q, g.dtype);
    g.out = bench_random(b, nq * (uint64_t)q, g.dtype);
    g.dq = bench_random(b, nq * (uint64_t)q, g.dtype);
    g.k = bench_random(b, nk * (uint64_t)kv, g.dtype);
    g.v = bench_random(b, nk * (uint64_t)kv, g.dtype);
    g.dk = bench_random(b, nk * (uint64_t)kv, g.dtype);
    g.dv = bench_random(b, nk * (uint64_t)kv, g.dtype);
    g.lse = bench_random(b, nq * (uint64_t)g.heads, RLHF_F32);
    return g;
}

static void grouped_close(const struct bench *b, const struct grouped *g) {
    const rlhf_dev all[] = {g->q,   g->k,  g->v,  g->out, g->ragged.offset, g->ragged.start,
                            g->lse, g->dq, g->dk, g->dv,  g->ragged.kv_base};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        b->c->release(b->c->ctx, all[i]);
}

static rlhf_status forward(const struct bench *b, const struct grouped *g) {
    return b->c->attention(b->c->ctx, &g->how, &g->ragged, g->out, g->decoding ? NULL : g->lse,
                           g->q, g->k, g->v);
}

// Passes the array `out` as its own derivative too, because the time does not depend on the
// numbers.
static rlhf_status backward(const struct bench *b, const struct grouped *g) {
    return b->c->attention_bwd(b->c->ctx, &g->how, &g->ragged, g->dq, g->dk, g->dv, g->out, g->out,
                               g->lse, g->q, g->k, g->v);
}

// Returns the shortest time of several calls, in seconds.
static double time_of(const struct bench *b, const struct grouped *g,
                      rlhf_status (*run)(const struct bench *, const struct grouped *)) {
    double best = 1e30;
    for (int i = 0; i < (b->tiny ? 1 : 9); i++) {
        const double t = bench_now(b);
        bench_check(b, run(b, g), "attention");
        const double spent = bench_now(b) - t;
        if (spent < best) best = spent;
    }
    return best;
}

static void train(const struct bench *b, uint32_t rows, uint32_t len, int32_t kv_heads) {
    const struct grouped g = grouped_open(
        b, (struct grouped){
               .rows = rows, .len = len, .heads = HEADS, .kv_heads = kv_heads, .dtype = RLHF_BF16});
    // Operations of one GEMM. Only the keys to which a query attends are counted.
    const double product = (double)rows * len * (len + 1.0) * HEADS * DIM * 1e-9;
    const double fwd = time_of(b, &g, forward), bwd = time_of(b, &g, backward);
    char title[64];
    snprintf(title, sizeof title, "attention, %u x %u, %d (%d) heads", rows, len, HEADS, kv_heads);
    printf("%-44s %10.3f ms, %.0f GFLOP/s; backward %.3f ms, %.0f GFLOP/s\n", title, fwd * 1e3,
           2 * product / fwd, bwd * 1e3, 5 * product / bwd);
    grouped_close(b, &g);
}

static void decode(const struct bench *b, uint32_t rows, uint32_t len, int32_t kv_heads,
                   double copy) {
    const struct grouped g = grouped_open(b, (struct grouped){.rows = rows,
                                                              .len = len,
                                                              .heads = HEADS,
                                                              .kv_heads = kv_heads,
                                                              .decoding = 1,
                                                              .dtype = RLHF_BF16});
    const double spent = time_of(b, &g, forward);
    const double rate = (double)rows * len * kv_heads * DIM * 4e-9 / spent;
    char title[64];
    snprintf(title, sizeof title, "decode, %u x %u keys, %d (%d) heads", rows, len, HEADS,
             kv_heads);
    printf("%-44s %10.3f ms, %.1f GB/s, %.2f of copy\n", title, spent * 1e3, rate, rate / copy);
    grouped_close(b, &g);
}

double bench_attention_time(const struct bench *b, uint32_t rows, uint32_t len, int32_t heads,
                            int32_t kv_heads) {
    const struct grouped g = grouped_open(
        b, (struct grouped){
               .rows = rows, .len = len, .heads = heads, .kv_heads = kv_heads, .dtype = b->dtype});
    const double spent = time_of(b, &g, forward) + time_of(b, &g, backward);
    grouped_close(b, &g);
    return spent;
}

void bench_grouped(const struct bench *b, double copy) {
    static const int32_t kv_heads[] = {KV_HEADS, HEADS};
    for (int i = 0; i < 2; i++) {
        train(b, b->tiny ? 2 : 8, b->tiny ? 16 : 128, kv_heads[i]);
        train(b, 2, b->tiny ? 16 : 512, kv_heads[i]);
        decode(b, b->tiny ? 2 : 16, b->tiny ? 16 : 256, kv_heads[i], copy);
        decode(b, b->tiny ? 2 : 128, b->tiny ? 16 : 1024, kv_heads[i], copy);
    }
}
