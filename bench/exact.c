// exact.c: tests on the device whether an output row of a GEMM depends on the other rows. For every
// shape that common models have, the GEMM of all rows is compared, bit for bit, with GEMMs of
// slices of the rows. The slices have many different lengths.
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2048, TINY_ROWS = 70 };

struct matrix {
    const char *name;
    int32_t k, n;
};

struct sweep {
    const struct bench *b;
    rlhf_weight *w;
    int32_t width_in, width_out, dtype;
    int backward; // 1: use linear_dx instead of linear
    rlhf_dev in, out;
    char *whole, *slice;
};

static void run_rows(const struct sweep *s, uint32_t from, uint32_t rows, char *to) {
    const rlhf_compute *c = s->b->c;
    const uint64_t size = rlhf_dtype_size(s->dtype);
    const uint64_t bytes = (uint64_t)rows * (uint64_t)s->width_out * size;
    rlhf_dev x = rlhf_dev_at(s->in, (uint64_t)from * (uint64_t)s->width_in * size);
    if (s->backward)
        bench_check(s->b, c->linear_dx(c->ctx, s->out, s->dtype, 0, x, s->w, rows), "linear_dx");
    else
        bench_check(s->b, c->linear(c->ctx, s->out, s->dtype, 0, x, s->w, NULL, rows), "linear");
    bench_check(s->b, c->download(c->ctx, to, s->out, bytes), "download");
}

// Returns how many slices differ from the same rows of the whole product.
static int differing(struct sweep *s, uint32_t rows) {
    static const uint32_t lengths[] = {1,   2,   3,   7,   8,   9,   15,   16,   17,  31,
                                       32,  33,  63,  64,  65,  127, 128,  129,  255, 256,
                                       257, 500, 511, 512, 513, 999, 1024, 1025, 2047};
    const uint64_t row = (uint64_t)s->width_out * rlhf_dtype_size(s->dtype);
    int bad = 0;
    run_rows(s, 0, rows, s->whole);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths && lengths[i] <= rows; i++) {
        const uint32_t from = (uint32_t)(i * 37) % (rows - lengths[i] + 1);
        run_rows(s, from, lengths[i], s->slice);
        bad += memcmp(s->slice, s->whole + from * row, lengths[i] * row) != 0;
    }
    return bad;
}

static int32_t depth_of(const struct bench *b, const struct matrix *m) {
    return b->tiny ? m->k / 20 + 1 : m->k;
}

static int32_t width_of(const struct bench *b, const struct matrix *m) {
    return b->tiny ? m->n / 50 + 1 : m->n;
}

static int sweep_matrix(const struct bench *b, const struct matrix *m, int32_t dtype,
                        int backward) {
    const rlhf_compute *c = b->c;
    const uint32_t rows = b->tiny ? TINY_ROWS : ROWS;
    const int32_t k = depth_of(b, m), n = width_of(b, m);
    const uint64_t cells = (uint64_t)rows * (uint64_t)(k > n ? k : n);
    struct sweep s = {.b = b, .dtype = dtype, .backward = backward};
    rlhf_dev master = bench_random(b, (uint64_t)k * (uint64_t)n, RLHF_F32);
    bench_check(b, c->weight_create(c->ctx, k, n, dtype, RLHF_WEIGHT_BACKWARD, &s.w), "weight");
    bench_check(b, c->weight_pack(c->ctx, s.w, master), "weight_pack");
    s.width_in = backward ? n : k;
    s.width_out = backward ? k : n;
    s.in = bench_random(b, cells, dtype);
    s.out = bench_random(b, cells, dtype);
    s.whole = malloc(2 * cells * rlhf_dtype_size(dtype));
    if (!s.whole) bench_die("out of memory");
    s.slice = s.whole + cells * rlhf_dtype_size(dtype);
    const int bad = differing(&s, rows);
    free(s.whole);
    c->release(c->ctx, s.in);
    c->release(c->ctx, s.out);
    c->release(c->ctx, master);
    c->weight_destroy(c->ctx, s.w);
    return bad;
}

void bench_exact(const struct bench *b) {
    static const struct matrix list[] = {
        {"GPT-2 qkv", 768, 2304},         {"GPT-2 proj", 768, 768},
        {"GPT-2 fc", 768, 3072},          {"GPT-2 out", 3072, 768},
        {"GPT-2 head", 768, 50257},       {"default qkv", 256, 768},
        {"default fc", 256, 1024},        {"default head", 256, 8192},
        {"value head", 768, 1},           {"Qwen2.5-0.5B gate", 896, 4864},
        {"Qwen2.5-0.5B down", 4864, 896}, {"Llama-1B gate", 2048, 8192}};
    int all = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        printf("%-20s %5d x %-5d", list[i].name, depth_of(b, &list[i]), width_of(b, &list[i]));
        for (int kind = 0; kind < 4; kind++) {
            const int32_t dtype = kind % 2 ? RLHF_F32 : RLHF_BF16;
            if (!(b->c->dtypes & 1u << dtype)) continue;
            const int bad = sweep_matrix(b, &list[i], dtype, kind / 2);
            printf("  %s %s %s", dtype == RLHF_F32 ? "f32" : "bf16", kind / 2 ? "dx" : "forward",
                   bad ? "DIFFERS" : "exact");
            all += bad;
        }
        printf("\n");
    }
    printf("%d slices differ from the whole; %s: %s\n", all, b->c->name, b->c->detail);
    if (all && b->c->flags & RLHF_COMPUTE_ROW_EXACT)
        bench_die("a backend that says its rows are exact has rows that are not");
}
