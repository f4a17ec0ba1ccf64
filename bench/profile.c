// profile.c: the time of each operation in a training step and in a decode step. The model runs on
// a compute table that times each operation while the step runs, so that the caches have the
// contents that they have in a real step. GEMMs of different shapes are counted separately.
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 128, WEIGHTS_MAX = 1024 };

struct row {
    const char *op;
    uint32_t rows;
    int32_t k, n;
    double seconds, work; // of all calls; work: number of operations, 0: not counted
    unsigned long calls;
};

// The functions of a compute table have no user argument, so the records of the operations are kept
// here.
static struct {
    const struct bench *b;
    const rlhf_compute *inner;
    struct row row[ROWS_MAX];
    size_t n_rows, n_weights;
    struct {
        const rlhf_weight *w;
        int32_t k, n;
    } weight[WEIGHTS_MAX];
} noted;

static void note(const char *op, uint32_t rows, int32_t k, int32_t n, double work, double began) {
    const double seconds = bench_now(noted.b) - began;
    size_t i = 0;
    while (i < noted.n_rows && (strcmp(noted.row[i].op, op) != 0 || noted.row[i].rows != rows ||
                                noted.row[i].k != k || noted.row[i].n != n))
        i++;
    if (i == ROWS_MAX) bench_die("more than %d kinds of operations", (int)ROWS_MAX);
    struct row *r = &noted.row[i];
    if (i == noted.n_rows) {
        *r = (struct row){.op = op, .rows = rows, .k = k, .n = n};
        noted.n_rows++;
    }
    r->seconds += seconds;
    r->work += work;
    r->calls++;
}

// ---- GEMMs ----

static rlhf_status weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                 rlhf_weight **out) {
    const rlhf_status st = noted.inner->weight_create(ctx, k, n, dtype, flags, out);
    if (st < 0) return st;
    if (noted.n_weights == WEIGHTS_MAX) bench_die("more than %d weights", (int)WEIGHTS_MAX);
    noted.weight[noted.n_weights].w = *out;
    noted.weight[noted.n_weights].k = k;
    noted.weight[noted.n_weights++].n = n;
    return st;
}

static void note_product(const char *op, const rlhf_weight *w, uint32_t rows, double began) {
    size_t i = 0;
    while (i < noted.n_weights && noted.weight[i].w != w)
        i++;
    if (i == noted.n_weights) bench_die("%s with a weight that was never made", op);
    const int32_t k = noted.weight[i].k, n = noted.weight[i].n;
    note(op, rows, k, n, 2.0 * rows * k * n, began);
}

static rlhf_status linear(void *ctx, rlhf_dev out, int32_t dtype, int32_t accumulate, rlhf_dev x,
                          const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    const double t = bench_now(noted.b);
    const rlhf_status st = noted.inner->linear(ctx, out, dtype, accumulate, x, w, bias, rows);
    note_product("forward", w, rows, t);
    return st;
}

static rlhf_status linear_add(void *ctx, rlhf_dev out, rlhf_dev add, rlhf_dev x,
                              const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    const double t = bench_now(noted.b);
    const rlhf_status st = noted.inner->linear_add(ctx, out, add, x, w, bias, rows);
    note_product("forward, added", w, rows, t);
    return st;
}

static rlhf_status linear_dx(void *ctx, rlhf_dev dx, int32_t dtype, int32_t accumulate, rlhf_dev dy,
                             const rlhf_weight *w, uint32_t rows) {
    const double t = bench_now(noted.b);
    const rlhf_status st = noted.inner->linear_dx(ctx, dx, dtype, accumulate, dy, w, rows);
    note_product("dx", w, rows, t);
    return st;
}

static rlhf_status linear_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                             const rlhf_weight *w, uint32_t rows) {
    const double t = bench_now(noted.b);
    const rlhf_status st = noted.inner->linear_dw(ctx, dw, db, x, dy, w, rows);
    note_product("dw", w, rows, t);
    return st;
}

static rlhf_status lm_head(void *ctx, const rlhf_lm_head *a) {
    const double t = bench_now(noted.b);
    const rlhf_status st = noted.inner->lm_head(ctx, a);
    note("head, forward", a->rows, a->d, a->vocab, 2.0 * a->rows * a->d * a->vocab, t);
    return st;
}

static rlhf_status lm_head_bwd(void *ctx, const rlhf_lm_head *a) {
    const double t = bench_now(noted.b);
    const rlhf_status st = noted.inner->lm_head_bwd(ctx, a);
    note("head, dx and dw", a->rows, a->d, a->vocab, 4.0 * a->rows * a->d * a->vocab, t);
    return st;
}

static rlhf_status lm_sample(void *ctx, const rlhf_lm_sample *a) {
    const double t = bench_now(noted.b);
    const rlhf_status st = noted.inner->lm_sample(ctx, a);
    note("head and draw", a->rows, a->d, a->vocab, 2.0 * a->rows * a->d * a->vocab, t);
    return st;
}

// ---- the rest, by name ----

#define TIMED(name, params, args)                                                                  \
    static rlhf_status name params {                                                               \
        const double t = bench_now(noted.b);                                                       \
        const rlhf_status st = noted.inner->name args;                                             \
        note(#name, 0, 0, 0, 0, t);                                                                \
        return st;                                                                                 \
    }

TIMED(weight_pack, (void *ctx, rlhf_weight *w, rlhf_dev src), (ctx, w, src))
TIMED(zero, (void *ctx, rlhf_dev dst, uint64_t bytes), (ctx, dst, bytes))
TIMED(copy, (void *ctx, rlhf_dev dst, rlhf_dev src, uint64_t bytes), (ctx, dst, src, bytes))
TIMED(convert,
      (void *ctx, rlhf_dev dst, int32_t dst_dtype, rlhf_dev src, int32_t src_dtype, uint64_t n),
      (ctx, dst, dst_dtype, src, src_dtype, n))
TIMED(embed,
      (void *ctx, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte, rlhf_dev wpe,
       double scale, uint32_t rows, int32_t d),
      (ctx, out, ids, pos, wte, wpe, scale, rows, d))
TIMED(embed_bwd,
      (void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids, rlhf_dev pos,
       double scale, uint32_t rows, int32_t d, int32_t vocab, int32_t n_pos),
      (ctx, dwte, dwpe, dout, ids, pos, scale, rows, d, vocab, n_pos))
TIMED(norm,
      (void *ctx, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x, rlhf_dev gamma,
       rlhf_dev beta, double eps, uint32_t rows, int32_t d),
      (ctx, out, out_dtype, stats, x, gamma, beta, eps, rows, d))
TIMED(norm_bwd,
      (void *ctx, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma, rlhf_dev dbeta, rlhf_dev dy,
       int32_t dy_dtype, rlhf_dev x, rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d),
      (ctx, dx, accumulate, dgamma, dbeta, dy, dy_dtype, x, stats, gamma, rows, d))
TIMED(act, (void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n),
      (ctx, out, x, kind, dtype, n))
TIMED(act_bwd,
      (void *ctx, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n),
      (ctx, dx, dy, x, kind, dtype, n))
TIMED(add, (void *ctx, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n),
      (ctx, dst, src, src_dtype, n))
TIMED(gather,
      (void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d, int32_t dtype),
      (ctx, out, x, idx, n, d, dtype))
TIMED(scatter_add,
      (void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx, uint32_t n, int32_t d),
      (ctx, dx, dy, dy_dtype, idx, n, d))
TIMED(kv_store,
      (void *ctx, rlhf_dev kc, rlhf_dev vc, rlhf_dev k, rlhf_dev v, int64_t stride,
       const rlhf_ragged *r, int32_t d, int32_t dtype),
      (ctx, kc, vc, k, v, stride, r, d, dtype))
TIMED(attention,
      (void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev out, rlhf_dev lse, rlhf_dev q,
       rlhf_dev k, rlhf_dev v),
      (ctx, a, r, out, lse, q, k, v))
TIMED(attention_bwd,
      (void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev dq, rlhf_dev dk, rlhf_dev dv,
       rlhf_dev dout, rlhf_dev out, rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v),
      (ctx, a, r, dq, dk, dv, dout, out, lse, q, k, v))
TIMED(sumsq_many,
      (void *ctx, const rlhf_tensors *list, double max_norm, int32_t skip, rlhf_dev clip),
      (ctx, list, max_norm, skip, clip))
TIMED(adamw_many, (void *ctx, const rlhf_tensors *list, const rlhf_adamw *a, rlhf_dev clip),
      (ctx, list, a, clip))

static void fill(rlhf_compute *t) {
    t->weight_create = weight_create;
    t->linear = linear;
    t->linear_add = linear_add;
    t->linear_dx = linear_dx;
    t->linear_dw = linear_dw;
    t->lm_head = lm_head;
    t->lm_head_bwd = lm_head_bwd;
    t->lm_sample = lm_sample;
    t->weight_pack = weight_pack;
    t->zero = zero;
    t->copy = copy;
    t->convert = convert;
    t->embed = embed;
    t->embed_bwd = embed_bwd;
    t->norm = norm;
    t->norm_bwd = norm_bwd;
    t->act = act;
    t->act_bwd = act_bwd;
    t->add = add;
    t->gather = gather;
    t->scatter_add = scatter_add;
    t->kv_store = kv_store;
    t->attention = attention;
    t->attention_bwd = attention_bwd;
    t->sumsq_many = sumsq_many;
    t->adamw_many = adamw_many;
}

static int longer(const void *a, const void *b) {
    const double d = ((const struct row *)b)->seconds - ((const struct row *)a)->seconds;
    return d > 0 ? 1 : d < 0 ? -1 : 0;
}

static void print(const struct bench *b, const char *title, int steps, double seconds) {
    const double peak = bench_peak_of(b);
    double counted = 0, products = 0, work = 0;
    qsort(noted.row, noted.n_rows, sizeof noted.row[0], longer);
    printf("\n%s, %.2f ms\n| operation | shape | calls | ms | of the step | GFLOP/s | of peak |\n"
           "|---|---|---|---|---|---|---|\n",
           title, seconds / steps * 1e3);
    for (size_t i = 0; i < noted.n_rows; i++) {
        const struct row *r = &noted.row[i];
        char shape[48] = "", rate[48] = " | ";
        counted += r->seconds;
        if (r->work > 0) {
            products += r->seconds;
            work += r->work;
            snprintf(shape, sizeof shape, "%u x %d x %d", r->rows, r->k, r->n);
            snprintf(rate, sizeof rate, "%.0f | %.0f %%", r->work / r->seconds * 1e-9,
                     r->work / r->seconds * 1e-7 / peak);
        }
        printf("| %s | %s | %lu | %.2f | %.1f %% | %s |\n", r->op, shape,
               r->calls / (unsigned long)steps, r->seconds / steps * 1e3,
               100 * r->seconds / seconds, rate);
    }
    printf("| all products | | | %.2f | %.1f %% | %.0f | %.0f %% |\n", products / steps * 1e3,
           100 * products / seconds, work / products * 1e-9, work / products * 1e-7 / peak);
    printf("| between operations | | | %.2f | %.1f %% | | |\n", (seconds - counted) / steps * 1e3,
           100 * (seconds - counted) / seconds);
}

static void training(const struct bench *b, struct model *m) {
    enum { WARMUP = 2, STEPS = 6 };
    double sum = 0;
    for (int i = 0; i < WARMUP + STEPS; i++) {
        if (i == WARMUP) noted.n_rows = 0;
        const struct train_times t = bench_train_step(b, m, i + 1);
        if (i >= WARMUP) sum += t.total;
    }
    print(b, "a training step", STEPS, sum);
}

static void decoding(const struct bench *b, const struct model *m) {
    int32_t *next = bench_zeros((size_t)b->slots);
    float *logp = bench_zeros((size_t)b->slots);
    rlhf_gen *gen = NULL;
    const uint32_t slots = (uint32_t)b->slots, most = (uint32_t)(b->prompt + b->fresh);
    bench_check(b, m->ops->gen_open(m->self, slots, most, &gen), "gen_open");
    double began = 0;
    for (int i = 0; i < b->fresh; i++) {
        if (i == 1) {
            noted.n_rows = 0;
            began = bench_now(b);
        }
        bench_decode_step(b, m, gen, i, next, logp);
    }
    print(b, "a decode step", b->fresh - 1, bench_now(b) - began);
    m->ops->gen_close(m->self, gen);
    free(next);
    free(logp);
}

void bench_profile(const struct bench *b) {
    struct bench timed = *b;
    rlhf_compute table = *b->c;
    noted.b = b;
    noted.inner = b->c;
    fill(&table);
    timed.c = &table;
    struct model m = bench_model_open(&timed);
    printf("%s, %.1f M parameters, random weights, %s\n", b->model, (double)m.info.n_params * 1e-6,
           b->dtype == RLHF_BF16 ? "bf16" : "f32");
    training(&timed, &m);
    if (b->fresh > 1) decoding(&timed, &m);
    bench_model_close(&timed, &m);
}
