// muon.c: Muon (K. Jordan 2024): momentum, orthogonalized by a quintic Newton-Schulz iteration.
//
// One step is X = a X + (b A + c A A) X with A = X X^T. A matrix with more rows than columns is
// transposed first, so that A is the smaller Gram matrix. The operands of the GEMMs have the dtype
// of the run's weights at every instruction-set level. X and all sums are f32.
#include "machine/split.h"
#include "machine/table.h"
#include "product.h"

#include <math.h>

#define NS_A 3.4445f
#define NS_B (-4.7750f)
#define NS_C 2.0315f

#define PIECE ((uint64_t)1 << 14)

// The workspace of one call. n is the smaller side of the matrix, m the larger one.
struct work {
    uint64_t n, m;
    float *x, *gram, *poly; // [n, m], [n, n], [n, n]
    char *low_x, *low_gram; // the operands of the GEMMs, in their dtype
    int32_t dtype;
};

static uint64_t work_bytes(uint64_t n, uint64_t m) {
    return (2 * n * m + 3 * n * n + 64) * sizeof(float);
}

static rlhf_status work_place(struct rlhf__cpu *cpu, uint64_t n, uint64_t m, struct work *k) {
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_MUON, work_bytes(n, m), &p));
    k->n = n;
    k->m = m;
    k->x = p;
    k->gram = k->x + n * m;
    k->poly = k->gram + n * n;
    k->low_gram = (char *)(k->poly + n * n);
    k->low_x = k->low_gram + n * n * sizeof(float);
    k->dtype = cpu->bf16_weights ? RLHF_BF16 : RLHF_F32;
    return RLHF_OK;
}

static rlhf_status lower(struct rlhf__cpu *cpu, char *dst, const float *src, int32_t dtype,
                         uint64_t n) {
    return cpu->table.convert(cpu, rlhf__cpu_dev(dst), dtype, rlhf__cpu_dev(src), RLHF_F32, n);
}

// The three GEMMs of a step: X X^T, its square, and their polynomial times X.
enum { GRAM, SQUARE, APPLY, MATMULS };

static struct rlhf__matmul matmul_of(const struct work *k, int which) {
    const int64_t n = (int64_t)k->n, m = (int64_t)k->m;
    return (struct rlhf__matmul){.m = n,
                                 .k = which == GRAM ? m : n,
                                 .n = which == APPLY ? m : n,
                                 .in_dtype = k->dtype,
                                 .out_dtype = RLHF_F32,
                                 .wei_transposed = which == GRAM,
                                 .accumulate = which == APPLY};
}

static rlhf_status product(struct rlhf__cpu *cpu, const struct work *k, int which, float *out,
                           const char *a, const char *b) {
    const struct rlhf__matmul s = matmul_of(k, which);
    return rlhf__product(cpu, &s, a, NULL, b, NULL, out);
}

// ---- loops over n elements, in pieces of fixed size ----

struct elements {
    const struct rlhf__cpu *cpu;
    float *out;
    const float *x, *y; // NULL if they are not used
    uint64_t n;
    float a, b;
    float *mom; // with `how`
    const rlhf_muon *how;
};

static void each_piece(struct rlhf__cpu *cpu, void (*piece)(const void *job, int64_t i),
                       const struct elements *e) {
    rlhf__split_run(cpu, cpu->threads, (int64_t)rlhf__split_count(e->n, PIECE), piece, e);
}

// x *= a
static void scale_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    e->cpu->hot.scale(e->out + (uint64_t)i * PIECE, rlhf__split_len(e->n, PIECE, (uint64_t)i),
                      e->a);
}

static void scale_all(struct rlhf__cpu *cpu, float *x, uint64_t n, float a) {
    each_piece(cpu, scale_piece, &(const struct elements){.cpu = cpu, .out = x, .n = n, .a = a});
}

// out = a x + b y
static void blend_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    const uint64_t at = (uint64_t)i * PIECE;
    e->cpu->hot.blend(e->out + at, e->x + at, e->y + at, rlhf__split_len(e->n, PIECE, (uint64_t)i),
                      e->a, e->b);
}

static void blend_all(struct rlhf__cpu *cpu, float *out, const float *x, const float *y, uint64_t n,
                      float a, float b) {
    each_piece(cpu, blend_piece, &(const struct elements){cpu, out, x, y, n, a, b, NULL, NULL});
}

// w = decay w - step u
static void apply_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    const uint64_t at = (uint64_t)i * PIECE;
    e->cpu->hot.apply_step(e->out + at, e->x + at, rlhf__split_len(e->n, PIECE, (uint64_t)i), e->a,
                           e->b);
}

static void apply_all(struct rlhf__cpu *cpu, float *w, const float *u, uint64_t n, float decay,
                      float step) {
    each_piece(cpu, apply_piece,
               &(const struct elements){cpu, w, u, NULL, n, decay, step, NULL, NULL});
}

static rlhf_status newton_schulz(struct rlhf__cpu *cpu, const struct work *k, int32_t steps) {
    const uint64_t n = k->n, m = k->m;
    for (int32_t i = 0; i < steps; i++) {
        RLHF_TRY(lower(cpu, k->low_x, k->x, k->dtype, n * m));
        RLHF_TRY(product(cpu, k, GRAM, k->gram, k->low_x, k->low_x));
        RLHF_TRY(lower(cpu, k->low_gram, k->gram, k->dtype, n * n));
        RLHF_TRY(product(cpu, k, SQUARE, k->poly, k->low_gram, k->low_gram));
        blend_all(cpu, k->poly, k->gram, k->poly, n * n, NS_B, NS_C);
        RLHF_TRY(lower(cpu, k->low_gram, k->poly, k->dtype, n * n));
        scale_all(cpu, k->x, n * m, NS_A);
        RLHF_TRY(product(cpu, k, APPLY, k->x, k->low_gram, k->low_x));
    }
    return RLHF_OK;
}

#define TILE ((uint64_t)16)

struct transpose {
    float *dst;
    const float *src;
    uint64_t rows, cols;
};

static void transpose_tiles(const void *job, int64_t tile) {
    const struct transpose *t = job;
    const uint64_t rows = t->rows, cols = t->cols, c = (uint64_t)tile * TILE;
    for (uint64_t r = 0; r < rows; r += TILE)
        for (uint64_t j = c; j < cols && j < c + TILE; j++)
            for (uint64_t i = r; i < rows && i < r + TILE; i++)
                t->dst[j * rows + i] = t->src[i * cols + j];
}

// dst[cols, rows] = src[rows, cols]^T, in tiles.
static void transpose(const struct rlhf__cpu *cpu, float *dst, const float *src, uint64_t rows,
                      uint64_t cols) {
    rlhf__split_run(cpu, cpu->threads, (int64_t)rlhf__split_count(cols, TILE), transpose_tiles,
                    &(const struct transpose){dst, src, rows, cols});
}

static void momentum_piece(const void *job, int64_t i) {
    const struct elements *e = job;
    const uint64_t at = (uint64_t)i * PIECE;
    e->cpu->hot.muon_momentum(e->out + at, e->mom + at, e->x + at,
                              rlhf__split_len(e->n, PIECE, (uint64_t)i), (float)e->how->momentum,
                              (float)e->how->grad_scale, e->how->nesterov);
}

// Computes mom and u for all elements, in pieces. u is [rows, cols].
static void momentum(struct rlhf__cpu *cpu, float *u, float *mom, const float *g, uint64_t n,
                     const rlhf_muon *a) {
    each_piece(
        cpu, momentum_piece,
        &(const struct elements){.cpu = cpu, .out = u, .x = g, .n = n, .mom = mom, .how = a});
}

// The number of outputs divided by the number of inputs.
static double aspect(const rlhf_muon *a, int32_t rows, int32_t cols) {
    return a->in_out ? (double)cols / (double)rows : (double)rows / (double)cols;
}

static rlhf_status muon(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev mom, int32_t rows, int32_t cols,
                        const rlhf_muon *how) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_muon own;
    const rlhf_muon *a = &own;
    RLHF_TRY(
        rlhf__cpu_copy_in(cpu, "muon", &own, sizeof own, how, RLHF_SIZE_TO(rlhf_muon, grad_scale)));
    if (rows < 1 || cols < 1 || a->ns_steps < 0)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "muon: a matrix of %d x %d, %d steps", rows,
                              cols, a->ns_steps);
    const uint64_t nr = (uint64_t)rows, nc = (uint64_t)cols, size = nr * nc;
    const int tall = nr > nc;
    struct work k;
    RLHF_TRY(work_place(cpu, tall ? nc : nr, tall ? nr : nc, &k));
    float *u = tall ? (float *)(void *)k.low_x : k.x; // low_x has enough memory for f32
    momentum(cpu, u, rlhf__cpu_f32(mom), rlhf__cpu_f32(g), size, a);
    double sum = 0.0;
    RLHF_TRY(cpu->table.sumsq(cpu, rlhf__cpu_dev(u), size, &sum));
    if (tall) transpose(cpu, k.x, u, nr, nc);
    scale_all(cpu, k.x, size, sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.0f);
    RLHF_TRY(newton_schulz(cpu, &k, a->ns_steps));
    float *result = k.x;
    if (tall) {
        result = (float *)(void *)k.low_x;
        transpose(cpu, result, k.x, nc, nr);
    }
    const double ratio = aspect(a, rows, cols), lr = a->lr * sqrt(ratio > 1.0 ? ratio : 1.0);
    apply_all(cpu, rlhf__cpu_f32(w), result, size, (float)(1.0 - a->lr * a->weight_decay),
              (float)lr);
    return RLHF_OK;
}

void rlhf__cpu_needs_muon(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    if (c->op != RLHF_COMPUTE_OP(muon) || !c->muon) return;
    const uint64_t nr = c->rows, nc = (uint64_t)c->d;
    const struct work k = {.n = nr < nc ? nr : nc, .m = nr < nc ? nc : nr, .dtype = c->dtype};
    rlhf__cpu_need(n, RLHF__WS_MUON, work_bytes(k.n, k.m));
    rlhf__cpu_sumsq_needs(nr * nc, n);
    for (int i = 0; i < MATMULS && c->muon->ns_steps > 0; i++) {
        const struct rlhf__matmul s = matmul_of(&k, i);
        rlhf__product_needs(cpu, &s, n);
    }
}

void rlhf__cpu_fill_muon(rlhf_compute *t) { t->muon = muon; }
