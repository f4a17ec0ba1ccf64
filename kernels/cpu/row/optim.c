// optim.c: AdamW (Loshchilov and Hutter 2019) and the sum of squares, over flat f32 arrays.
#include "machine/split.h"
#include "machine/table.h"
#include "product/product.h"

#include <math.h>
#include <rlhf/exact.h>
#include <string.h>

#define PIECE ((uint64_t)1 << 16) // elements; fixed, so that results do not depend on the threads

// ---- pieces ----

// Number the pieces of all tensors of a list consecutively: tensor i has the pieces [first[i],
// first[i + 1]). A thread that has finished with one tensor can then continue with the next one.
static void number_pieces(const rlhf_tensors *t, uint64_t *first) {
    first[0] = 0;
    for (uint32_t i = 0; i < t->n; i++)
        first[i + 1] = first[i] + rlhf__split_count(t->len[i], PIECE);
}

static uint64_t count_pieces(const rlhf_tensors *t) {
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < t->n; i++)
        pieces += rlhf__split_count(t->len[i], PIECE);
    return pieces;
}

// The tensor that contains piece p.
static uint32_t owner_of(const uint64_t *first, uint32_t n, uint64_t p) {
    uint32_t low = 0, high = n; // first[low] <= p < first[high]
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        if (first[mid] <= p)
            low = mid;
        else
            high = mid;
    }
    return low;
}

// Small arrays for one call. They share a workspace with the statistics of lm_head, which they
// overwrite.
static rlhf_status notes(struct rlhf__cpu *cpu, uint64_t bytes, void **out) {
    cpu->lm_kept.valid = 0;
    return rlhf__cpu_workspace(cpu, RLHF__WS_ROWS, bytes, out);
}

static uint64_t sumsq_bytes(const rlhf_tensors *t) {
    return ((uint64_t)t->n + 1 + count_pieces(t)) * sizeof(uint64_t);
}

static uint64_t adamw_bytes(const rlhf_tensors *t) {
    return ((uint64_t)t->n + 1) * (sizeof(uint64_t) + sizeof(struct rlhf__adam_step));
}

// ---- sums of squares ----

struct sumsq {
    const struct rlhf__cpu *cpu;
    const rlhf_tensors *t;
    const uint64_t *first;
    double *part;
};

static void sumsq_piece(const void *job, int64_t piece, int own) {
    const struct sumsq *s = job;
    const uint64_t k = (uint64_t)piece;
    const uint32_t i = owner_of(s->first, s->t->n, k);
    const uint64_t at = (k - s->first[i]) * PIECE;
    (void)own;
    s->cpu->hot.sumsq(&s->part[k], rlhf__cpu_f32(s->t->g[i]) + at,
                      rlhf__split_len(s->t->len[i], PIECE, k - s->first[i]));
}

// Adds the sums of each tensor's pieces in order, then the sums of the tensors in order.
static rlhf_status sumsq_list(struct rlhf__cpu *cpu, const rlhf_tensors *t, double *out) {
    void *p = NULL;
    RLHF_TRY(notes(cpu, sumsq_bytes(t), &p));
    uint64_t *first = p;
    double *part = (double *)(first + t->n + 1), sum = 0.0;
    number_pieces(t, first);
    rlhf__split_deal(cpu, cpu->threads, (int64_t)first[t->n], 1, sumsq_piece,
                     &(const struct sumsq){cpu, t, first, part});
    for (uint32_t i = 0; i < t->n; i++) {
        double tensor = 0.0;
        for (uint64_t k = first[i]; k < first[i + 1]; k++)
            tensor += part[k];
        sum += tensor;
    }
    *out = sum;
    return RLHF_OK;
}

static rlhf_status sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out) {
    const rlhf_tensors t = {.size = sizeof t, .n = 1, .len = &n, .g = &x};
    return sumsq_list(ctx, &t, host_out);
}

static rlhf_status tensors_read(struct rlhf__cpu *cpu, const char *op, rlhf_tensors *t,
                                const rlhf_tensors *from) {
    return rlhf__cpu_copy_in(cpu, op, t, sizeof *t, from, RLHF_SIZE_TO(rlhf_tensors, weight_decay));
}

static rlhf_status sumsq_many(void *ctx, const rlhf_tensors *from, double max_norm, int32_t skip,
                              rlhf_dev out) {
    rlhf_tensors t;
    RLHF_TRY(tensors_read(ctx, "sumsq_many", &t, from));
    double sum = 0;
    RLHF_TRY(sumsq_list(ctx, &t, &sum));
    const double norm = sqrt(sum);
    const double scale = max_norm > 0 && norm > max_norm ? max_norm / norm : 1;
    rlhf_clip *clip = rlhf__cpu_mem(out);
    *clip = (rlhf_clip){sum, norm, scale, skip || !isfinite(norm), 0};
    return RLHF_OK;
}

// ---- AdamW ----

// ci = 1 - bi^t
struct bias {
    double c1, c2;
};

static struct bias bias_of(const rlhf_adamw *a) {
    return (struct bias){.c1 = 1.0 - rlhf_pow(a->beta1, (double)a->step),
                         .c2 = 1.0 - rlhf_pow(a->beta2, (double)a->step)};
}

// The step is
//   torch: lr (m / c1) / (sqrt(v / c2) + eps);  tf1: lr sqrt(c2) / c1 m / (sqrt(v) + eps).
static struct rlhf__adam_step step_of(const rlhf_adamw *a, struct bias bias) {
    const double c1 = bias.c1, c2 = bias.c2;
    const int tf1 = a->epsilon == RLHF_ADAM_TF1;
    return (struct rlhf__adam_step){
        .grad_scale = (float)a->grad_scale,
        .beta1 = (float)a->beta1,
        .beta1_rest = (float)(1.0 - a->beta1),
        .beta2 = (float)a->beta2,
        .beta2_rest = (float)(1.0 - a->beta2),
        .decay = (float)(1.0 - a->lr * a->weight_decay),
        .step = (float)(tf1 ? a->lr * sqrt(c2) / c1 : a->lr / c1),
        .root_scale = (float)(tf1 ? 1.0 : 1.0 / sqrt(c2)),
        .eps = (float)a->eps,
    };
}

static rlhf_status adamw_read(struct rlhf__cpu *cpu, const char *op, rlhf_adamw *a,
                              const rlhf_adamw *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_adamw, step)));
    if (a->step < 1)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: step is %lld, the first is 1", op,
                              (long long)a->step);
    if (a->epsilon != RLHF_ADAM_TORCH && a->epsilon != RLHF_ADAM_TF1)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: epsilon form is %d, allowed are 0 and 1",
                              op, a->epsilon);
    return RLHF_OK;
}

struct update {
    const struct rlhf__cpu *cpu;
    const rlhf_tensors *t;
    int skip;
    const uint64_t *first;
    const struct rlhf__adam_step *steps;
};

static void update_piece(const void *job, int64_t piece, int own) {
    const struct update *u = job;
    const rlhf_tensors *t = u->t;
    const uint64_t k = (uint64_t)piece;
    const uint32_t i = owner_of(u->first, t->n, k);
    const uint64_t at = (k - u->first[i]) * PIECE;
    const size_t len = rlhf__split_len(t->len[i], PIECE, k - u->first[i]);
    float *g = rlhf__cpu_f32(t->g[i]) + at;
    (void)own;
    if (u->skip || !t->w[i])
        memset(g, 0, len * sizeof *g);
    else
        u->cpu->hot.adamw(rlhf__cpu_f32(t->w[i]) + at, g, rlhf__cpu_f32(t->m[i]) + at,
                          rlhf__cpu_f32(t->v[i]) + at, len, &u->steps[i]);
}

// Updates each tensor's weight and moments in one pass over memory, and sets its gradient to zero
// if steps[i].zero_grad is set (steps[i] belongs to tensor i). If tensor i has no weight, or if
// `skip` is set, only sets the gradient to zero, and does not read steps[i].
static void update(const struct rlhf__cpu *cpu, const rlhf_tensors *t, int skip,
                   const uint64_t *first, const struct rlhf__adam_step *steps) {
    rlhf__split_deal(cpu, cpu->threads, (int64_t)first[t->n], 1, update_piece,
                     &(const struct update){cpu, t, skip, first, steps});
}

static rlhf_status adamw(void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n,
                         const rlhf_adamw *how) {
    struct rlhf__cpu *cpu = ctx;
    const rlhf_tensors t = {
        .size = sizeof t, .n = 1, .len = &n, .g = &g, .w = &w, .m = &m, .v = &v};
    rlhf_adamw a;
    uint64_t first[2];
    RLHF_TRY(adamw_read(cpu, "adamw", &a, how));
    const struct rlhf__adam_step step = step_of(&a, bias_of(&a));
    number_pieces(&t, first);
    update(cpu, &t, 0, first, &step);
    return RLHF_OK;
}

static rlhf_status adamw_many(void *ctx, const rlhf_tensors *from, const rlhf_adamw *how,
                              rlhf_dev clip_at) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_tensors t;
    rlhf_adamw all;
    RLHF_TRY(tensors_read(cpu, "adamw_many", &t, from));
    RLHF_TRY(adamw_read(cpu, "adamw_many", &all, how));
    const rlhf_clip none = {0, 0, 1, 0, 0};
    const rlhf_clip *clip = clip_at ? rlhf__cpu_mem(clip_at) : &none;
    void *p = NULL;
    RLHF_TRY(notes(cpu, adamw_bytes(&t), &p));
    uint64_t *first = p;
    struct rlhf__adam_step *steps = (struct rlhf__adam_step *)(void *)(first + t.n + 1);
    number_pieces(&t, first);
    const struct bias bias = bias_of(&all);
    for (uint32_t i = 0; i < t.n && !clip->skip; i++) {
        if (!t.w[i]) continue;
        rlhf_adamw a = all;
        a.lr *= t.lr[i];
        a.weight_decay *= t.weight_decay[i];
        a.grad_scale *= clip->scale;
        steps[i] = step_of(&a, bias);
        steps[i].zero_grad = 1;
    }
    update(cpu, &t, clip->skip, first, steps);
    return RLHF_OK;
}

// ---- workspaces ----

void rlhf__cpu_sumsq_needs(uint64_t len, struct rlhf__cpu_needs *n) {
    const rlhf_tensors t = {.size = sizeof t, .n = 1, .len = &len};
    rlhf__cpu_need(n, RLHF__WS_ROWS, sumsq_bytes(&t));
}

void rlhf__cpu_needs_optim(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    rlhf_tensors t;
    if (c->op == RLHF_COMPUTE_OP(sumsq)) rlhf__cpu_sumsq_needs(c->n, n);
    if (!c->tensors || tensors_read(cpu, "workspace_bytes", &t, c->tensors) < 0) return;
    if (c->op == RLHF_COMPUTE_OP(sumsq_many)) rlhf__cpu_need(n, RLHF__WS_ROWS, sumsq_bytes(&t));
    if (c->op == RLHF_COMPUTE_OP(adamw_many)) rlhf__cpu_need(n, RLHF__WS_ROWS, adamw_bytes(&t));
}

void rlhf__cpu_fill_optim(rlhf_compute *t) {
    t->sumsq = sumsq;
    t->adamw = adamw;
    t->sumsq_many = sumsq_many;
    t->adamw_many = adamw_many;
}
