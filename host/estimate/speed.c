// speed.c: see speed.h.
#include "estimate/speed.h"

#include "base/clock.h"

#include <rlhf/rng.h>
#include <stdlib.h>

// ---- matrix products ----

enum { NUMBERS = 1 << 18 };

// Fills to[n] with random f32 numbers, because the data affects a GPU's clock. Only a part is
// uploaded; the device copies it to the rest.
static rlhf_status fill(const rlhf_compute *t, rlhf_dev to, uint64_t n) {
    rlhf_rng rng = {.seed = 1, .stream = rlhf_rng_stream("peak")};
    float *x = malloc(NUMBERS * sizeof *x);
    if (!x) return RLHF_E_NOMEM;
    for (uint64_t i = 0; i < NUMBERS; i++)
        x[i] = (float)(rlhf_rng_next(&rng) - 0.5);
    uint64_t done = n < NUMBERS ? n : NUMBERS;
    rlhf_status st = t->upload(t->ctx, to, x, done * sizeof *x);
    free(x);
    for (uint64_t more; st == RLHF_OK && done < n; done += more) {
        more = n - done < done ? n - done : done;
        st = t->copy(t->ctx, rlhf_dev_at(to, done * sizeof *x), to, more * sizeof *x);
    }
    return st;
}

// If the device has its own memory, fills the weight and the input of the matrix product with
// random numbers.
static rlhf_status feed(const rlhf_compute *t, rlhf_dev src, int32_t dim, rlhf_dev x, int32_t dtype,
                        uint32_t rows) {
    const uint64_t n = (uint64_t)rows * (uint64_t)dim, all = (uint64_t)dim * (uint64_t)dim;
    if (t->device == RLHF_DEVICE_CPU || n > all) return RLHF_OK;
    RLHF_TRY(fill(t, src, all));
    return t->convert(t->ctx, x, dtype, src, RLHF_F32, n);
}

// The time of all repeats of a call.
struct repeats {
    double elapsed, cpu; // cpu: processor time of this process
};

#define BUDGET    0.05 // seconds for the largest product
#define BUSY      0.75 // below this share, other programs use the processors
#define BUSY_MORE 6    // then the repeats take this many budgets, because single ones vary

// The part of the threads' time in which they had a processor, or 0 if the repeats were too short
// to tell: the kernel counts the time of a thread that runs on another processor late.
static double share_of(const struct repeats *all, uint32_t threads) {
    return all->elapsed > BUDGET / 2 ? all->cpu / all->elapsed / (threads ? threads : 1) : 0;
}

static int is_busy(const rlhf_compute *t, const struct repeats *all) {
    const double share = share_of(all, t->threads);
    return t->device == RLHF_DEVICE_CPU && share > 0 && share < BUSY;
}

// Returns 1 if a measurement that began at `start` needs more repeats.
static int is_short(const rlhf_compute *t, const struct repeats *all, double start, double budget) {
    const double spent = rlhf__seconds() - start;
    return spent < budget || (spent < BUSY_MORE * budget && is_busy(t, all));
}

// Repeats a matrix product until `budget` (in seconds) is spent. `rows` is the number of rows of
// its input. Returns the highest speed, or 0 on failure. If other programs use the processors, the
// speed is that in the processor time that the threads got. Adds the repeats to *all.
static double best_product(const rlhf_compute *t, int32_t dtype, int32_t dim, uint32_t rows,
                           double budget, struct repeats *all) {
    uint64_t size = rlhf_dtype_size(dtype);
    if (!RLHF_COMPUTE_HAS(t, linear)) return 0;
    rlhf_dev src = NULL, x = NULL, y = NULL;
    rlhf_weight *w = NULL;
    double best = 0, best_cpu = 0;
    if (t->alloc(t->ctx, (uint64_t)dim * (uint64_t)dim * 4, &src) == RLHF_OK &&
        t->alloc(t->ctx, (uint64_t)rows * (uint64_t)dim * size, &x) == RLHF_OK &&
        t->alloc(t->ctx, (uint64_t)rows * (uint64_t)dim * size, &y) == RLHF_OK &&
        t->weight_create(t->ctx, dim, dim, dtype, 0, &w) == RLHF_OK &&
        feed(t, src, dim, x, dtype, rows) == RLHF_OK && t->weight_pack(t->ctx, w, src) == RLHF_OK) {
        double flops = 2.0 * (double)rows * (double)dim * (double)dim, start = rlhf__seconds();
        for (int i = 0; i < 3 || is_short(t, all, start, budget); i++) {
            const double from = rlhf__seconds(), cpu = rlhf__cpu_seconds();
            if (t->linear(t->ctx, y, dtype, 0, x, w, NULL, rows) != RLHF_OK ||
                t->sync(t->ctx) != RLHF_OK)
                break;
            const double took = rlhf__seconds() - from, speed = flops / took;
            if (i == 0) continue; // the first product also prepares the kernel
            const double used = rlhf__cpu_seconds() - cpu;
            if (speed > best) best = speed;
            if (used > 0 && flops * t->threads / used > best_cpu)
                best_cpu = flops * t->threads / used;
            all->elapsed += took;
            all->cpu += used;
        }
    }
    t->weight_destroy(t->ctx, w);
    t->release(t->ctx, src);
    t->release(t->ctx, x);
    t->release(t->ctx, y);
    return best_cpu > best && is_busy(t, all) ? best_cpu : best;
}

#define LARGE 1024
#define SLOW  2e10 // FLOPs per second

// Sets *large to the repeats of the largest product, or to 0 if the backend is slow, and *budget to
// the seconds that they may take.
static double peak(const rlhf_compute *t, int32_t dtype, double flops, struct repeats *large,
                   double *budget) {
    struct repeats other = {0};
    *large = (struct repeats){0};
    *budget = 0;
    double small = best_product(t, dtype, 256, 32, 0.002, &other);
    if (small < SLOW) return small; // a large product would take seconds on this slow backend
    *budget = 0.01 * flops / small < BUDGET ? 0.01 * flops / small : BUDGET;
    const int brief = t->device == RLHF_DEVICE_CPU && *budget < BUDGET / 10;
    const int32_t most = brief ? LARGE / 2 : LARGE;
    double best = best_product(t, dtype, most, (uint32_t)most, *budget, large);
    // A GPU needs a larger product, so measure the largest one that fits the GPU's memory.
    for (int32_t dim = 8192; t->device != RLHF_DEVICE_CPU && best > 1e12 && dim > 1024; dim /= 2) {
        double larger = best_product(t, dtype, dim, (uint32_t)dim, 0.05, &other);
        if (larger > best) best = larger;
        if (larger > 0) break;
    }
    return best;
}

double rlhf__speed_peak(const rlhf_compute *t, int32_t dtype, double flops) {
    struct repeats large;
    double budget;
    return peak(t, dtype, flops, &large, &budget);
}

uint64_t rlhf__speed_peak_bytes(const rlhf_compute *t, int32_t dtype) {
    const uint64_t cells = (uint64_t)LARGE * LARGE;
    return t->device == RLHF_DEVICE_CPU ? cells * (4 + 3 * rlhf_dtype_size(dtype)) : 0;
}

// ---- other calls ----

// The shapes that are measured: those of a small model, whose data fits a cache as that of a
// microbatch does.
enum {
    ELEMENTS = 1 << 20,
    HEADS = 8,
    HEAD_DIM = 64,
    TOKENS = 256, // of each of two rows
    TOTAL = 2 * TOKENS,
    HEAD_ROWS = 128,
    HEAD_D = 64,
    WORDS = 8192
};

// A call to measure: its buffers, and a function that makes it.
struct trial {
    const rlhf_compute *t;
    int32_t dtype;
    double budget; // seconds for each call
    rlhf_dev a, b, c;
    rlhf_weight *weight;
    rlhf_status (*call)(const struct trial *);
};

static rlhf_status call_add(const struct trial *x) {
    return x->t->add(x->t->ctx, x->a, x->b, RLHF_F32, ELEMENTS);
}

static rlhf_status call_attention(const struct trial *x) {
    const int64_t stride = HEADS * HEAD_DIM;
    const rlhf_attn a = {.size = sizeof a,
                         .heads = HEADS,
                         .head_dim = HEAD_DIM,
                         .causal = 1,
                         .dtype = x->dtype,
                         .q_stride = stride,
                         .kv_stride = stride,
                         .out_stride = stride,
                         .scale = 0.125};
    const rlhf_ragged r = {.size = sizeof r,
                           .n = 2,
                           .total = TOTAL,
                           .max_q = TOKENS,
                           .max_k = TOKENS,
                           .offset = x->c,
                           .start = rlhf_dev_at(x->c, 64),
                           .kv_base = x->c};
    return x->t->attention(x->t->ctx, &a, &r, x->b, NULL, x->a, x->a, x->a);
}

static rlhf_status call_head(const struct trial *x) {
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const rlhf_lm_head a = {.size = sizeof a,
                            .rows = HEAD_ROWS,
                            .d = HEAD_D,
                            .vocab = WORDS,
                            .dtype = x->dtype,
                            .dist = &whole,
                            .hidden = x->a,
                            .weight = x->weight,
                            .target = x->c,
                            .logp = x->b};
    return x->t->lm_head(x->t->ctx, &a);
}

// Returns the least time of a few calls, in seconds, or 0 on failure.
static double least_time(const struct trial *x) {
    double best = 0, start = rlhf__seconds();
    for (int i = 0; i < 3 || (i < 20 && rlhf__seconds() - start < x->budget); i++) {
        const double from = rlhf__seconds();
        if (x->call(x) != RLHF_OK || x->t->sync(x->t->ctx) != RLHF_OK) return 0;
        const double took = rlhf__seconds() - from;
        if (i > 0 && (best == 0 || took < best)) best = took;
    }
    return best;
}

// Offsets of two rows; 64 bytes later, their starts. As targets of the LM head, all are in range.
static rlhf_status upload_rows(const struct trial *x) {
    int32_t rows[HEAD_ROWS] = {0, TOKENS, TOTAL};
    return x->t->upload(x->t->ctx, x->c, rows, sizeof rows);
}

static rlhf_status prepare(struct trial *x) {
    const rlhf_compute *t = x->t;
    RLHF_TRY(t->alloc(t->ctx, (uint64_t)ELEMENTS * 4, &x->a));
    RLHF_TRY(t->alloc(t->ctx, (uint64_t)ELEMENTS * 4, &x->b));
    RLHF_TRY(t->alloc(t->ctx, HEAD_ROWS * 4, &x->c));
    RLHF_TRY(t->weight_create(t->ctx, HEAD_D, WORDS, x->dtype, RLHF_WEIGHT_OUT_IN, &x->weight));
    RLHF_TRY(t->weight_pack(t->ctx, x->weight, x->a));
    return upload_rows(x);
}

static double attention_flops(const rlhf_attn *a, const rlhf_ragged *r) {
    const double seen = (double)r->max_k - (a->causal ? ((double)r->max_q - 1) / 2 : 0);
    const double keys = a->window > 0 && a->window < seen ? a->window : seen;
    return 4.0 * a->heads * a->head_dim * (double)r->total * keys;
}

// The state decays, is read with the key, changed, and read with the query.
static double delta_flops(const rlhf_delta *d, uint32_t rows) {
    return 7.0 * rows * d->heads * d->key_dim * d->value_dim;
}

int rlhf__speed_measure(const rlhf_compute *t, int32_t dtype, double flops,
                        struct rlhf__speed *out) {
    struct trial x = {.t = t, .dtype = dtype};
    *out = (struct rlhf__speed){.product = 0};
    if (t->device != RLHF_DEVICE_CPU || !RLHF_COMPUTE_HAS(t, attention) ||
        !RLHF_COMPUTE_HAS(t, lm_head) || !RLHF_COMPUTE_HAS(t, add))
        return 0;
    struct repeats large;
    const double product = peak(t, dtype, flops, &large, &x.budget);
    x.budget /= 5;
    if (product >= SLOW / 10 && prepare(&x) == RLHF_OK) {
        x.call = call_add;
        const double add = least_time(&x);
        x.call = call_attention;
        const double attention = least_time(&x);
        x.call = call_head;
        const double words = (double)HEAD_ROWS * WORDS;
        const double all = least_time(&x), gemm = 2 * words * HEAD_D / product;
        const double head = all - gemm > all / 8 ? all - gemm : all / 8; // noise
        if (add > 0 && attention > 0 && all > 0)
            *out = (struct rlhf__speed){.product = product,
                                        .memory = 12.0 * ELEMENTS / add,
                                        .attention = 4.0 * HEADS * HEAD_DIM * TOTAL * (TOKENS + 1) /
                                                     2 / attention,
                                        .word = words / head,
                                        .share = share_of(&large, t->threads)};
    }
    t->weight_destroy(t->ctx, x.weight);
    t->release(t->ctx, x.a);
    t->release(t->ctx, x.b);
    t->release(t->ctx, x.c);
    return out->product > 0;
}

int rlhf__speed_busy(const struct rlhf__speed *s) { return s->share > 0 && s->share < BUSY; }

// ---- the estimate ----

// The bytes that a GEMM reads of a weight.
static double weight_bytes(const rlhf_call_weight *w) {
    const rlhf_quantised *q = w->quantised;
    double bytes = 0;
    if (!q)
        return (double)w->n * (w->rank > 0 ? w->rank : w->k) * (double)rlhf_dtype_size(w->dtype);
    for (uint32_t p = 0; p < q->n_parts; p++)
        bytes += (double)q->count[p] * (double)rlhf_format_row_bytes(q->format[p], q->k);
    return bytes;
}

// The seconds of the FLOPs of a GEMM or, with a quantised weight of a format that was measured, of
// unpacking and multiplying.
static double flops_seconds(const struct rlhf__speed *s, const rlhf_call_weight *w, uint32_t rows,
                            int backward) {
    const rlhf_quantised *q = w->quantised;
    double seconds = 0;
    if (!q) return 2.0 * w->n * (w->rank > 0 ? w->rank : w->k) * rows / s->product;
    for (uint32_t p = 0; p < q->n_parts; p++) {
        const int known = q->format[p] > 0 && q->format[p] <= RLHF_FORMAT_Q5_1;
        const struct rlhf__quantised_speed *of = &s->quantised[known ? q->format[p] : 0];
        const double n = (double)q->count[p] * q->k;
        seconds += of->back > 0 ? rlhf__quantised_speed_seconds(of, n, rows, backward)
                                : 2 * n * rows / s->product;
    }
    return seconds;
}

// A GEMM takes the time of its FLOPs or, with few rows, that of reading the weight.
static double product_seconds(const struct rlhf__speed *s, const rlhf_call_weight *w, uint32_t rows,
                              int backward) {
    const double flops = flops_seconds(s, w, rows, backward);
    const double bytes = weight_bytes(w) / s->memory;
    return flops > bytes ? flops : bytes;
}

static double head_seconds(const struct rlhf__speed *s, const rlhf_call *c) {
    return product_seconds(s, &c->weight, c->rows, 0) +
           product_seconds(s, &c->weight2, c->rows, 0) +
           (double)c->rows * (c->weight.n + c->weight2.n) / s->word;
}

static double tensors_elements(const rlhf_tensors *t) {
    double n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        n += (double)t->len[i];
    return n;
}

// Returns the bytes that an elementwise call reads and writes.
static double bytes_of(const rlhf_call *c) {
    const double cells = c->n ? (double)c->n : (double)c->rows * (c->d > 0 ? c->d : 0);
    const rlhf_rope *r = c->rope;
    const double weight = (double)c->weight.k * c->weight.n;
    const double head = r ? (double)r->head_dim : 0;
    if (c->conv) return 12.0 * c->rows * c->conv->channels;
    if (c->gated_norm) return 12.0 * c->rows * c->gated_norm->heads * c->gated_norm->head_dim;
    if (c->columns) return 12.0 * c->rows * c->columns->blocks * c->columns->width;
    if (r) return 8 * c->rows * head * (r->heads + (r->kv_heads ? r->kv_heads : r->heads));
    if (c->op == RLHF_COMPUTE_OP(adamw_many)) return 32 * tensors_elements(c->tensors);
    if (c->op == RLHF_COMPUTE_OP(sumsq_many)) return 4 * tensors_elements(c->tensors);
    if (c->op == RLHF_COMPUTE_OP(weight_pack))
        return weight * (4 + 2.0 * (double)rlhf_dtype_size(c->weight.dtype));
    if (c->op == RLHF_COMPUTE_OP(adamw)) return 32 * cells;
    return 12 * cells;
}

double rlhf__speed_seconds(const struct rlhf__speed *s, const rlhf_call *c) {
    const int wants_dw = c->head && c->head->d_weight;
    switch (c->op) {
    case RLHF_COMPUTE_OP(linear):
    case RLHF_COMPUTE_OP(linear_add):
    case RLHF_COMPUTE_OP(linear_dw):
        return product_seconds(s, &c->weight, c->rows, 0);
    case RLHF_COMPUTE_OP(linear_dx):
        return product_seconds(s, &c->weight, c->rows, 1);
    case RLHF_COMPUTE_OP(linear_sum):
        return product_seconds(s, &c->weight, c->rows, c->sum->across) +
               product_seconds(s, &c->weight2, c->rows, c->sum->across);
    case RLHF_COMPUTE_OP(lm_head):
    case RLHF_COMPUTE_OP(lm_sample):
        return head_seconds(s, c);
    case RLHF_COMPUTE_OP(lm_head_bwd): // the logits again, d_hidden and d_weight
        return head_seconds(s, c) + (1 + wants_dw) * product_seconds(s, &c->weight, c->rows, 1);
    case RLHF_COMPUTE_OP(attention):
        return attention_flops(c->attn, c->ragged) / s->attention;
    case RLHF_COMPUTE_OP(attention_bwd):
        return 2.5 * attention_flops(c->attn, c->ragged) / s->attention;
    case RLHF_COMPUTE_OP(delta): // about as fast as attention
        return delta_flops(c->delta, c->rows) / s->attention;
    case RLHF_COMPUTE_OP(delta_bwd): // the states twice, and their gradients
        return 4 * delta_flops(c->delta, c->rows) / s->attention;
    default:
        return bytes_of(c) / s->memory;
    }
}
