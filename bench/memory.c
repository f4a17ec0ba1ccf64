// memory.c: memory-bound work: copies, the optimizer, row kernels and the attention of decoding.
// Measures the necessary memory traffic per second of each kind of work, and compares it with that
// of a device copy.
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 768, HEADS = 12, KEYS = 512, SLOTS = 256, BUFFERS = 4 };

struct rows {
    uint32_t rows;
    uint64_t n; // rows * WIDTH
    rlhf_dev f[BUFFERS], bf16, stats, gamma;
    double copy; // GB/s
};

// One op on the buffers, and the number of bytes that the op must read and write.
struct op {
    const char *name;
    rlhf_status (*run)(const struct bench *b, const struct rows *r);
    double bytes; // per element of the [rows, WIDTH] array
};

static rlhf_status run_read(const struct bench *b, const struct rows *r) {
    double sum;
    return b->c->sumsq(b->c->ctx, r->f[0], r->n, &sum);
}

static rlhf_status run_copy(const struct bench *b, const struct rows *r) {
    return b->c->copy(b->c->ctx, r->f[1], r->f[0], r->n * 4);
}

static rlhf_status run_adamw(const struct bench *b, const struct rows *r) {
    const rlhf_adamw a = {
        sizeof(rlhf_adamw), RLHF_ADAM_TORCH, 1e-4, 0.9, 0.999, 1e-8, 0.01, 1.0, 1};
    return b->c->adamw(b->c->ctx, r->f[0], r->f[1], r->f[2], r->f[3], r->n, &a);
}

static rlhf_status run_norm(const struct bench *b, const struct rows *r) {
    return b->c->norm(b->c->ctx, r->bf16, RLHF_BF16, r->stats, r->f[0], r->gamma, r->gamma, 1e-5,
                      r->rows, WIDTH);
}

static rlhf_status run_norm_bwd(const struct bench *b, const struct rows *r) {
    return b->c->norm_bwd(b->c->ctx, r->f[1], 1, NULL, NULL, r->bf16, RLHF_BF16, r->f[0], r->stats,
                          r->gamma, r->rows, WIDTH);
}

static rlhf_status run_act(const struct bench *b, const struct rows *r) {
    return b->c->act(b->c->ctx, r->bf16, r->bf16, RLHF_ACT_GELU_TANH, RLHF_BF16, r->n);
}

static rlhf_status run_add(const struct bench *b, const struct rows *r) {
    return b->c->add(b->c->ctx, r->f[1], r->bf16, RLHF_BF16, r->n);
}

static rlhf_status run_convert(const struct bench *b, const struct rows *r) {
    return b->c->convert(b->c->ctx, r->bf16, RLHF_BF16, r->f[0], RLHF_F32, r->n);
}

static const struct op ops[] = {
    {"memory, copy (read + write)", run_copy, 8},
    {"memory, read (sum of squares)", run_read, 4},
    {"memory, AdamW (4 reads + 3 writes)", run_adamw, 28},
    {"norm, f32 to bf16", run_norm, 6},
    {"norm backward", run_norm_bwd, 14},
    {"GELU, bf16", run_act, 4},
    {"add, bf16 to f32", run_add, 10},
    {"convert, f32 to bf16", run_convert, 6},
};

static void print_rate(struct rows *r, const char *name, double rate) {
    if (r->copy == 0) r->copy = rate; // the copy comes first
    printf("%-44s %10.1f GB/s, %.2f of copy\n", name, rate, rate / r->copy);
}

static void run_op(const struct bench *b, struct rows *r, const struct op *op) {
    double best = 1e30;
    for (int i = 0; i < (b->tiny ? 1 : 5); i++) {
        const double t = bench_now(b);
        bench_check(b, op->run(b, r), op->name);
        const double spent = bench_now(b) - t;
        if (spent < best) best = spent;
    }
    print_rate(r, op->name, op->bytes * (double)r->n * 1e-9 / best);
}

// ---- the attention of one decode step ----

struct decode {
    rlhf_dev q, k, v, out, ints;
    rlhf_ragged rows;
    rlhf_attn how;
};

static rlhf_dev upload_rows(const struct bench *b, uint32_t n, int32_t keys) {
    int32_t *host = malloc((3 * (size_t)n + 1) * sizeof *host);
    rlhf_dev ints = NULL;
    if (!host) bench_die("out of memory");
    for (uint32_t i = 0; i <= n; i++)
        host[i] = (int32_t)i; // offset
    for (uint32_t i = 0; i < n; i++) {
        host[n + 1 + i] = keys - 1;                   // start
        host[2 * n + 1 + i] = (int32_t)i * (int)keys; // kv_base
    }
    bench_check(b, b->c->alloc(b->c->ctx, (3 * (uint64_t)n + 1) * 4, &ints), "alloc");
    bench_check(b, b->c->upload(b->c->ctx, ints, host, (3 * (uint64_t)n + 1) * 4), "upload");
    free(host);
    return ints;
}

static struct decode decode_open(const struct bench *b, uint32_t n, uint32_t keys) {
    struct decode d = {.rows = {.size = sizeof(rlhf_ragged), .n = n, .total = n, .max_q = 1}};
    d.q = bench_random(b, (uint64_t)n * WIDTH, RLHF_BF16);
    d.out = bench_random(b, (uint64_t)n * WIDTH, RLHF_BF16);
    d.k = bench_random(b, (uint64_t)n * keys * WIDTH, RLHF_BF16);
    d.v = bench_random(b, (uint64_t)n * keys * WIDTH, RLHF_BF16);
    d.ints = upload_rows(b, n, (int32_t)keys);
    d.rows.max_k = keys;
    d.rows.offset = d.ints;
    d.rows.start = rlhf_dev_at(d.ints, (uint64_t)(n + 1) * 4);
    d.rows.kv_base = rlhf_dev_at(d.ints, (uint64_t)(2 * n + 1) * 4);
    d.how = (rlhf_attn){.size = sizeof(rlhf_attn),
                        .heads = HEADS,
                        .head_dim = WIDTH / HEADS,
                        .causal = 1,
                        .dtype = RLHF_BF16,
                        .q_stride = WIDTH,
                        .kv_stride = WIDTH,
                        .out_stride = WIDTH,
                        .scale = 0.125};
    return d;
}

static void bench_attention(const struct bench *b, struct rows *r) {
    const uint32_t n = b->tiny ? 4 : SLOTS, keys = b->tiny ? 70 : KEYS;
    struct decode d = decode_open(b, n, keys);
    double best = 1e30;
    char title[64];
    for (int i = 0; i < (b->tiny ? 1 : 5); i++) {
        const double t = bench_now(b);
        bench_check(b, b->c->attention(b->c->ctx, &d.how, &d.rows, d.out, NULL, d.q, d.k, d.v),
                    "attention");
        const double spent = bench_now(b) - t;
        if (spent < best) best = spent;
    }
    snprintf(title, sizeof title, "decode attention, %u rows x %u keys, bf16", n, keys);
    print_rate(r, title, (double)n * (keys + 1.0) * WIDTH * 4 * 1e-9 / best);
    const rlhf_dev all[] = {d.q, d.k, d.v, d.out, d.ints};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        b->c->release(b->c->ctx, all[i]);
}

void bench_memory(const struct bench *b) {
    const rlhf_compute *c = b->c;
    struct rows r = {.rows = b->tiny ? 8 : 65536}; // 192 MiB per f32 buffer, far above the caches
    r.n = (uint64_t)r.rows * WIDTH;
    for (int i = 0; i < BUFFERS; i++)
        bench_check(b, c->alloc(c->ctx, r.n * 4, &r.f[i]), "alloc");
    bench_check(b, c->alloc(c->ctx, r.n * 2, &r.bf16), "alloc");
    bench_check(b, c->alloc(c->ctx, (uint64_t)r.rows * 8, &r.stats), "alloc");
    bench_check(b, c->alloc(c->ctx, WIDTH * 4, &r.gamma), "alloc");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        run_op(b, &r, &ops[i]);
    bench_attention(b, &r);
    const rlhf_dev all[] = {r.f[0], r.f[1], r.f[2], r.f[3], r.bf16, r.stats, r.gamma};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        c->release(c->ctx, all[i]);
}
