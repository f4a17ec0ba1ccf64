// quantised.c: the matrix products of a layer with weights that stay quantised, alternating with
// those of the same weights packed in the run's dtype. A layer is the products of queries, keys and
// values, of attention's output, of gate and up, and of down.
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCTS = 4, COPIES_MOST = 64, ROUNDS_MOST = 64 };

struct shape {
    const char *name;
    int32_t k[PRODUCTS], n[PRODUCTS];
    const int32_t *formats; // up to a 0
};

static const int32_t of_k[] = {RLHF_FORMAT_Q4_K,
                               RLHF_FORMAT_Q6_K,
                               RLHF_FORMAT_Q8_0,
                               RLHF_FORMAT_Q4_0,
                               RLHF_FORMAT_Q5_0,
                               RLHF_FORMAT_Q5_1,
                               0};
static const int32_t of_32[] = {RLHF_FORMAT_Q4_1, RLHF_FORMAT_Q8_0, RLHF_FORMAT_Q5_0,
                                RLHF_FORMAT_Q5_1, 0};
static const struct shape shapes[] = {
    {"Qwen3-4B", {2560, 4096, 2560, 9728}, {6144, 2560, 19456, 2560}, of_k},
    {"Llama-3.2-1B", {2048, 2048, 2048, 8192}, {3072, 2048, 16384, 2048}, of_k},
    {"SmolLM2-135M", {576, 576, 576, 1536}, {960, 576, 3072, 576}, of_32},
};
static const char *const names[] = {"f32", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K", "Q5_0", "Q5_1"};
static const uint32_t row_counts[] = {1, 4, 32, 1024};

// Weights of several layers, larger than the caches together. [0]: packed; [1]: quantised.
struct layers {
    const struct shape *s;
    int copies;
    rlhf_weight *w[2][COPIES_MOST][PRODUCTS];
    rlhf_dev x, y; // as wide as the widest input or result
};

static rlhf_weight *packed(const struct bench *b, int32_t k, int32_t n, rlhf_dev source) {
    rlhf_weight *w = NULL;
    bench_check(b,
                b->c->weight_create(b->c->ctx, k, n, b->dtype,
                                    RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD, &w),
                "weight_create");
    bench_check(b, b->c->weight_pack(b->c->ctx, w, source), "weight_pack");
    return w;
}

// Random blocks. Bytes from 0x20 to 0x2f make every f16 number of a block a small positive one.
static rlhf_weight *quantised(const struct bench *b, int32_t k, int32_t n, int32_t format) {
    const rlhf_quantised a = {sizeof a, k, n, b->dtype, RLHF_WEIGHT_BACKWARD, 1, &format, &n};
    const uint64_t bytes = (uint64_t)n * rlhf_format_row_bytes(format, k);
    uint8_t *blocks = malloc(bytes + 1);
    rlhf_weight *w = NULL;
    uint32_t state = 12345;
    if (!blocks) bench_die("out of memory");
    for (uint64_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        blocks[i] = (uint8_t)(0x20 | (state >> 28));
    }
    bench_check(b, b->c->weight_create_quantised(b->c->ctx, &a, &w), "weight_create_quantised");
    bench_check(b, b->c->weight_put(b->c->ctx, w, 0, n, blocks), "weight_put");
    free(blocks);
    return w;
}

static int32_t largest(const int32_t *n) {
    int32_t most = 0;
    for (int i = 0; i < PRODUCTS; i++)
        if (n[i] > most) most = n[i];
    return most;
}

static void layers_open(const struct bench *b, struct layers *l, const struct shape *s,
                        int32_t format) {
    uint64_t elements = 0;
    const uint64_t widest =
        (uint64_t)(largest(s->n) > largest(s->k) ? largest(s->n) : largest(s->k));
    memset(l, 0, sizeof *l);
    l->s = s;
    for (int i = 0; i < PRODUCTS; i++)
        elements += (uint64_t)s->k[i] * (uint64_t)s->n[i];
    l->copies = (int)(((uint64_t)256 << 20) / (elements * rlhf_dtype_size(b->dtype))) + 1;
    if (b->tiny) l->copies = 1;
    if (l->copies > COPIES_MOST) l->copies = COPIES_MOST;
    for (int i = 0; i < PRODUCTS; i++) {
        rlhf_dev source = bench_random(b, (uint64_t)s->k[i] * (uint64_t)s->n[i], RLHF_F32);
        for (int c = 0; c < l->copies; c++) {
            l->w[0][c][i] = packed(b, s->k[i], s->n[i], source);
            l->w[1][c][i] = quantised(b, s->k[i], s->n[i], format);
        }
        b->c->release(b->c->ctx, source);
    }
    l->x = bench_random(b, 1024 * widest, b->dtype);
    l->y = bench_random(b, 1024 * widest, RLHF_F32);
}

static void layers_close(const struct bench *b, struct layers *l) {
    for (int q = 0; q < 2; q++)
        for (int c = 0; c < l->copies; c++)
            for (int i = 0; i < PRODUCTS; i++)
                b->c->weight_destroy(b->c->ctx, l->w[q][c][i]);
    b->c->release(b->c->ctx, l->x);
    b->c->release(b->c->ctx, l->y);
}

// Seconds per layer. `backward`: linear_dx.
static double run(const struct bench *b, const struct layers *l, int q, uint32_t rows,
                  int backward) {
    const double from = bench_now(b);
    for (int c = 0; c < l->copies; c++)
        for (int i = 0; i < PRODUCTS; i++) {
            const rlhf_weight *w = l->w[q][c][i];
            const rlhf_status st =
                backward ? b->c->linear_dx(b->c->ctx, l->y, b->dtype, 0, l->x, w, rows)
                         : b->c->linear(b->c->ctx, l->y, b->dtype, 0, l->x, w, NULL, rows);
            bench_check(b, st, "a product");
        }
    return (bench_now(b) - from) / l->copies;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[n / 2];
}

static void compare(const struct bench *b, const struct layers *l, int32_t format, uint32_t rows,
                    int backward) {
    double time[2][ROUNDS_MOST], ratio[ROUNDS_MOST];
    const int most = rows > 32 ? b->rounds : 5 * b->rounds;
    const int rounds = most < ROUNDS_MOST ? most : ROUNDS_MOST;
    for (int q = 0; q < 2; q++)
        run(b, l, q, rows, backward);
    for (int r = 0; r < rounds; r++) {
        for (int o = 0; o < 2; o++) {
            const int q = o ^ r % 2; // every other round in reverse order
            time[q][r] = run(b, l, q, rows, backward);
        }
        ratio[r] = time[0][r] / time[1][r];
    }
    printf("%-13s %-4s %-4s %4u rows%-10s %9.3f ms %9.3f ms %6.2f times as fast\n", l->s->name,
           names[format], b->dtype == RLHF_BF16 ? "bf16" : "f32", rows,
           backward ? ", backward" : "", median(time[0], rounds) * 1e3,
           median(time[1], rounds) * 1e3, median(ratio, rounds));
}

void bench_quantised(const struct bench *b) {
    struct layers *l = malloc(sizeof *l);
    if (!l) bench_die("out of memory");
    if (!RLHF_COMPUTE_HAS(b->c, weight_create_quantised))
        bench_die("%s has no quantised weights", b->c->name);
    printf("time of a layer's products, packed and quantised\n");
    for (size_t s = b->tiny ? 2 : 0; s < sizeof shapes / sizeof *shapes; s++)
        for (const int32_t *f = shapes[s].formats; *f; f++) {
            layers_open(b, l, &shapes[s], *f);
            for (size_t r = 0; r < sizeof row_counts / sizeof *row_counts; r++) {
                if (b->tiny && row_counts[r] > 4) continue;
                compare(b, l, *f, row_counts[r], 0);
                if (row_counts[r] > 32) compare(b, l, *f, row_counts[r], 1);
            }
            layers_close(b, l);
        }
    free(l);
}
