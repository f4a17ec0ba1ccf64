// peak.c: the speed of GEMMs, called through the compute table.
#include "bench.h"

#include <stdio.h>
#include <string.h>

struct shape {
    uint32_t rows;
    int32_t k, n;
};

struct product {
    rlhf_weight *w;
    rlhf_dev x, y, dw;
};

static struct product product_open(const struct bench *b, struct shape s, int32_t dtype,
                                   uint32_t flags) {
    const rlhf_compute *c = b->c;
    struct product p;
    const uint64_t kn = (uint64_t)s.k * (uint64_t)s.n;
    rlhf_dev master = bench_random(b, kn, RLHF_F32);
    bench_check(b, c->weight_create(c->ctx, s.k, s.n, dtype, flags, &p.w), "weight_create");
    bench_check(b, c->weight_pack(c->ctx, p.w, master), "weight_pack");
    p.dw = master;
    p.x = bench_random(b, s.rows * (uint64_t)s.k, dtype);
    p.y = bench_random(b, s.rows * (uint64_t)s.n, dtype);
    return p;
}

static void product_close(const struct bench *b, struct product *p) {
    b->c->weight_destroy(b->c->ctx, p->w);
    b->c->release(b->c->ctx, p->x);
    b->c->release(b->c->ctx, p->y);
    b->c->release(b->c->ctx, p->dw);
}

enum kind { FORWARD, DX, DW, PACK };

static void product_run(const struct bench *b, const struct product *p, enum kind kind,
                        struct shape s, int32_t dtype) {
    const rlhf_compute *c = b->c;
    rlhf_status st = 0;
    if (kind == FORWARD) st = c->linear(c->ctx, p->y, dtype, 0, p->x, p->w, NULL, s.rows);
    if (kind == DX) st = c->linear_dx(c->ctx, p->x, dtype, 0, p->y, p->w, s.rows);
    if (kind == DW) st = c->linear_dw(c->ctx, p->dw, NULL, p->x, p->y, p->w, s.rows);
    if (kind == PACK) st = c->weight_pack(c->ctx, p->w, p->dw);
    bench_check(b, st, "product");
}

// Returns the shortest time of one call, in seconds. Measures for about a quarter of a second.
static double product_time(const struct bench *b, const struct product *p, enum kind kind,
                           struct shape s, int32_t dtype) {
    double best = 1e30, spent = 0;
    for (int i = 0; i < (b->tiny ? 2 : 4) || (spent < 0.25 && i < 200 && !b->tiny); i++) {
        double t = bench_now(b);
        product_run(b, p, kind, s, dtype);
        t = bench_now(b) - t;
        spent += t;
        if (t < best) best = t;
    }
    return best;
}

static double flops(struct shape s) { return 2.0 * s.rows * s.k * s.n; }

// Returns the shape to measure: s, or with --tiny a tenth of each of its sides.
static struct shape sized(const struct bench *b, struct shape s) {
    if (!b->tiny) return s;
    return (struct shape){s.rows / 10 + 1, s.k / 10 + 1, s.n / 10 + 1};
}

static double rate_of(const struct bench *b, struct shape shape, int32_t dtype) {
    const struct shape s = sized(b, shape);
    struct product p = product_open(b, s, dtype, 0);
    const double rate = flops(s) / product_time(b, &p, FORWARD, s, dtype) * 1e-9;
    product_close(b, &p);
    return rate;
}

static double peak_of(const struct bench *b, int32_t dtype) {
    static const struct shape shapes[] = {{1024, 768, 3072}, {1024, 3072, 768}, {1024, 768, 2304},
                                          {512, 1024, 1024}, {256, 768, 3072},  {64, 768, 3072},
                                          {32, 3072, 768}};
    double best = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const double rate = rate_of(b, shapes[i], dtype);
        if (rate > best) best = rate;
    }
    if (best < 1e4) return best;
    const double large = rate_of(b, (struct shape){8192, 8192, 8192}, dtype); // for a GPU
    return large > best ? large : best;
}

void bench_peak(struct bench *b) {
    b->peak_f32 = peak_of(b, RLHF_F32);
    if (b->c->dtypes & 1u << RLHF_BF16) b->peak_bf16 = peak_of(b, RLHF_BF16);
    printf("%-44s %10.0f GFLOP/s\n", "product peak, f32", b->peak_f32);
    printf("%-44s %10.0f GFLOP/s\n", "product peak, bf16", b->peak_bf16);
}

void bench_ops(const struct bench *b) {
    static const struct {
        const char *name;
        struct shape s;
        uint32_t flags;
    } list[] = {{"qkv", {1024, 768, 2304}, 0},
                {"proj", {1024, 768, 768}, 0},
                {"fc", {1024, 768, 3072}, 0},
                {"out", {1024, 3072, 768}, 0},
                {"lm head", {1008, 768, 50257}, RLHF_WEIGHT_OUT_IN},
                {"qkv, 32 rows", {32, 768, 2304}, 0},
                {"fc, 32 rows", {32, 768, 3072}, 0},
                {"out, 32 rows", {32, 3072, 768}, 0},
                {"lm head, 32 rows", {32, 768, 50257}, RLHF_WEIGHT_OUT_IN},
                {"fc, 4096 rows", {4096, 768, 3072}, 0},
                {"out, 4096 rows", {4096, 3072, 768}, 0},
                {"fc, 256 rows", {256, 768, 3072}, 0},
                {"out, 256 rows", {256, 3072, 768}, 0},
                {"fc, 256 wide", {1024, 256, 1024}, 0},
                {"lm head, 8192", {1024, 256, 8192}, RLHF_WEIGHT_OUT_IN},
                {"qwen qkv", {1024, 896, 1152}, RLHF_WEIGHT_OUT_IN},
                {"qwen out", {1024, 896, 896}, RLHF_WEIGHT_OUT_IN},
                {"qwen gate and up", {1024, 896, 9728}, RLHF_WEIGHT_OUT_IN},
                {"qwen down", {1024, 4864, 896}, RLHF_WEIGHT_OUT_IN},
                {"qwen gate, 16 rows", {16, 896, 9728}, RLHF_WEIGHT_OUT_IN},
                {"qwen down, 16 rows", {16, 4864, 896}, RLHF_WEIGHT_OUT_IN},
                {"qwen head, 16 rows", {16, 896, 151936}, RLHF_WEIGHT_OUT_IN}};
    static const char *const kinds[] = {"forward", "dx", "dw"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const struct shape s = sized(b, list[i].s);
        struct product p = product_open(b, s, b->dtype, list[i].flags | RLHF_WEIGHT_BACKWARD);
        printf("%-19s", list[i].name);
        for (int k = FORWARD; k <= DW; k++) {
            double t = product_time(b, &p, (enum kind)k, s, b->dtype);
            printf("  %s %6.0f GFLOP/s %8.3f ms", kinds[k], flops(s) / t * 1e-9, t * 1e3);
        }
        printf("  pack %7.3f ms\n", product_time(b, &p, PACK, s, b->dtype) * 1e3);
        product_close(b, &p);
    }
}
