// lm_head.c: the log-prob, entropy and KL of scored positions, and their derivatives. Only one
// block of rows has its logits in memory at a time. lm_head ends with the first block, and
// lm_head_bwd begins with it, so the first block's logits are computed only once.
#include "lm_logits.h"
#include "machine/split.h"
#include "machine/table.h"

#include <string.h>

static float element(rlhf_dev p, uint32_t i) { return p ? rlhf__cpu_f32(p)[i] : 0; }

static const int32_t *targets(const rlhf_lm_head *a) { return rlhf__cpu_i32(a->target); }

static const uint32_t *supports(const rlhf_lm_head *a) { return rlhf__cpu_mem(a->support); }

static uint64_t support_bytes(const rlhf_lm_head *a) {
    return a->support ? (uint64_t)a->rows * rlhf_support_words(a->vocab) * sizeof(uint32_t) : 0;
}

// Refuses a target outside of its row's support, because this means that rows were mixed up.
static rlhf_status support_check(struct rlhf__cpu *cpu, const char *op, const rlhf_lm_head *a) {
    if (!a->support) return RLHF_OK;
    if (rlhf__lm_dist_cuts(a->dist, a->vocab))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: top_k, top_p and min_p must be off where rows have a support",
                              op);
    const size_t words = rlhf_support_words(a->vocab);
    for (uint32_t i = 0; i < a->rows; i++) {
        const uint32_t id = (uint32_t)targets(a)[i];
        if (!(supports(a)[i * words + id / 32] >> id % 32 & 1))
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: target[%u] is %u, outside its support",
                                  op, i, id);
    }
    return RLHF_OK;
}

static rlhf_status divergence_check(struct rlhf__cpu *cpu, const char *op, const rlhf_lm_head *a) {
    const double beta = a->divergence_beta;
    if (a->divergence < RLHF_DIVERGENCE_REVERSE || a->divergence > RLHF_DIVERGENCE_JS)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED, "%s: divergence %d, known are 0 to %d", op,
                              a->divergence, RLHF_DIVERGENCE_JS);
    if (a->divergence == RLHF_DIVERGENCE_JS && !(beta > 0 && beta < 1))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: divergence_beta is %g, must be in (0, 1)",
                              op, beta);
    if (a->ref_d < 0)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: ref_d is %d, must not be negative", op,
                              a->ref_d);
    return RLHF_OK;
}

// Copy the caller's struct and its dist, and check them. If ref_d is 0, it becomes d.
static rlhf_status head_read(struct rlhf__cpu *cpu, const char *op, rlhf_lm_head *a,
                             rlhf_dist *dist, const rlhf_lm_head *from, int with_ref_of_backward) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_lm_head, d_weight)));
    RLHF_TRY(rlhf__lm_dist_read(cpu, op, dist, a->dist));
    a->dist = dist;
    RLHF_TRY(rlhf__lm_weight_check(cpu, op, a->weight, a->d, a->vocab, a->dtype));
    RLHF_TRY(divergence_check(cpu, op, a));
    RLHF_TRY(rlhf__lm_map_check(cpu, op, a->logit_scale, a->softcap));
    RLHF_TRY(rlhf__lm_map_check(cpu, op, a->ref_logit_scale, a->ref_softcap));
    if (!a->ref_d) a->ref_d = a->d;
    if (with_ref_of_backward ? a->d_kl != NULL : a->kl != NULL)
        RLHF_TRY(rlhf__lm_weight_check(cpu, op, a->ref_weight, a->ref_d, a->vocab, a->dtype));
    for (uint32_t i = 0; i < a->rows; i++)
        if (targets(a)[i] < 0 || targets(a)[i] >= a->vocab)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "%s: target[%u] is %d, the vocabulary has "
                                  "%d",
                                  op, i, targets(a)[i], a->vocab);
    return support_check(cpu, op, a);
}

static uint64_t row_bytes(const rlhf_lm_head *a) {
    return (uint64_t)a->d * rlhf_dtype_size(a->dtype);
}

static uint64_t ref_bytes(const rlhf_lm_head *a) {
    return (uint64_t)a->ref_d * rlhf_dtype_size(a->dtype);
}

static float beta_of(const rlhf_lm_head *a) {
    return a->divergence == RLHF_DIVERGENCE_JS ? (float)a->divergence_beta : 0.0f;
}

static struct rlhf__lm_block block_of(const rlhf_lm_head *a, int with_ref, int with_entropy,
                                      uint32_t first, uint32_t rows) {
    return (struct rlhf__lm_block){
        .weight = a->weight,
        .ref_weight = with_ref ? a->ref_weight : NULL,
        .dist = a->dist,
        .support = a->support ? supports(a) + first * (size_t)rlhf_support_words(a->vocab) : NULL,
        .hidden = rlhf__cpu_mem(rlhf_dev_at(a->hidden, first * row_bytes(a))),
        .ref_hidden =
            with_ref ? rlhf__cpu_mem(rlhf_dev_at(a->ref_hidden, first * ref_bytes(a))) : NULL,
        .divergence = a->divergence,
        .beta = beta_of(a),
        .rows = rows,
        .vocab = a->vocab,
        .with_entropy = with_entropy,
        .map = rlhf__lm_map(a->logit_scale, a->softcap),
        .ref_map = rlhf__lm_map(a->ref_logit_scale, a->ref_softcap),
        .scale = a->dist->greedy ? 1.0f : (float)a->dist->inv_temperature,
    };
}

struct fill {
    const struct rlhf__cpu *cpu;
    const struct rlhf__lm_block *b;
    float *work; // or NULL
};

static void fill_row(const void *job, int64_t i, int own) {
    const struct fill *f = job;
    rlhf__lm_row_map(f->cpu, f->b, (uint32_t)i);
    rlhf__lm_row_stat(f->cpu, f->b, (uint32_t)i,
                      f->work ? f->work + (size_t)own * (size_t)f->b->vocab : NULL);
}

static rlhf_status block_fill(struct rlhf__cpu *cpu, struct rlhf__lm_block *b) {
    float *work = NULL;
    RLHF_TRY(rlhf__lm_block_place(cpu, b));
    RLHF_TRY(rlhf__lm_truncate_work(cpu, rlhf__lm_dist_cuts(b->dist, b->vocab), b->vocab, &work));
    RLHF_TRY(rlhf__lm_block_logits(cpu, b));
    rlhf__split_run_own(cpu, cpu->threads, b->rows, fill_row, &(const struct fill){cpu, b, work});
    return RLHF_OK;
}

// ---- logits kept for the backward call ----

static uint64_t content_hash(const char *p, uint64_t bytes) {
    uint64_t h[4] = {1, 2, 3, 4}, w[4];
    uint64_t i = 0;
    for (; i + sizeof w <= bytes; i += sizeof w) {
        memcpy(w, p + i, sizeof w);
        for (int j = 0; j < 4; j++)
            h[j] = (h[j] ^ w[j]) * 0x9E3779B97F4A7C15u + (h[j] >> 29);
    }
    for (; i < bytes; i++)
        h[0] = (h[0] ^ (uint8_t)p[i]) * 0x100000001b3u;
    return h[0] ^ h[1] * 3 ^ h[2] * 5 ^ h[3] * 7;
}

// Describes the logits of the first `block` rows.
static struct rlhf__lm_kept kept_of(const struct rlhf__cpu *cpu, const rlhf_lm_head *a,
                                    int with_ref, int with_entropy, uint32_t block) {
    struct rlhf__lm_kept k;
    memset(&k, 0, sizeof k);
    k.valid = 1;
    k.rows = a->rows;
    k.block = block;
    k.with_ref = with_ref;
    k.with_entropy = with_entropy;
    k.weight = a->weight;
    k.ref_weight = with_ref ? a->ref_weight : NULL;
    k.dist = *a->dist;
    k.map = rlhf__lm_map(a->logit_scale, a->softcap);
    if (with_ref) k.ref_map = rlhf__lm_map(a->ref_logit_scale, a->ref_softcap);
    k.generation = cpu->weight_generation;
    k.hidden_hash = content_hash(rlhf__cpu_mem(a->hidden), a->rows * row_bytes(a));
    k.ref_hash = with_ref ? content_hash(rlhf__cpu_mem(a->ref_hidden), a->rows * ref_bytes(a)) : 0;
    k.divergence = with_ref ? a->divergence : 0;
    k.beta = with_ref ? a->divergence_beta : 0;
    k.with_support = a->support != NULL;
    k.support_hash = content_hash(rlhf__cpu_mem(a->support), support_bytes(a));
    return k;
}

static int same_dist(const rlhf_dist *a, const rlhf_dist *b) {
    return a->inv_temperature == b->inv_temperature && a->top_p == b->top_p &&
           a->top_k == b->top_k && a->min_p == b->min_p && a->greedy == b->greedy;
}

static int same_map(struct rlhf__head_map a, struct rlhf__head_map b) {
    return a.scale == b.scale && a.cap == b.cap;
}

// True if the workspaces have the results that `want` needs. They may also have results (entropy
// and KL) that it does not need.
static int kept_serves(const struct rlhf__lm_kept *have, const struct rlhf__lm_kept *want) {
    return have->valid && have->rows == want->rows && have->block == want->block &&
           have->with_ref >= want->with_ref && have->with_entropy >= want->with_entropy &&
           have->weight == want->weight && same_map(have->map, want->map) &&
           (!want->with_ref ||
            (same_map(have->ref_map, want->ref_map) && have->ref_weight == want->ref_weight &&
             have->ref_hash == want->ref_hash && have->divergence == want->divergence &&
             have->beta == want->beta)) &&
           same_dist(&have->dist, &want->dist) && have->generation == want->generation &&
           have->hidden_hash == want->hidden_hash && have->with_support == want->with_support &&
           have->support_hash == want->support_hash;
}

static rlhf_status lm_head(void *ctx, const rlhf_lm_head *from) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_lm_head a;
    rlhf_dist dist;
    RLHF_TRY(head_read(cpu, "lm_head", &a, &dist, from, 0));
    cpu->lm_kept.valid = 0;
    if (!a.rows) return RLHF_OK;
    const int with_ref = a.kl != NULL, with_entropy = a.entropy != NULL;
    const uint32_t step = rlhf__lm_block_rows(cpu, a.weight, a.rows, with_ref);
    for (uint32_t left = (a.rows + step - 1) / step; left--;) {
        const uint32_t first = left * step;
        const uint32_t rows = a.rows - first < step ? a.rows - first : step;
        struct rlhf__lm_block b = block_of(&a, with_ref, with_entropy, first, rows);
        RLHF_TRY(block_fill(cpu, &b));
        for (uint32_t i = 0; i < rows; i++) {
            float z = b.logits[i * b.stride + (size_t)targets(&a)[first + i]];
            rlhf__cpu_f32(a.logp)[first + i] = rlhf__lm_logp(&b.stat[i], z, b.scale);
            if (a.entropy) rlhf__cpu_f32(a.entropy)[first + i] = b.stat[i].entropy;
            if (a.kl) rlhf__cpu_f32(a.kl)[first + i] = b.stat[i].kl;
        }
    }
    cpu->lm_kept = kept_of(cpu, &a, with_ref, with_entropy, step);
    return RLHF_OK;
}

// ---- backward ----

// A block, whose first row is row `first` of the call, and its rows from `from` onward.
struct grad {
    const struct rlhf__cpu *cpu;
    const rlhf_lm_head *a;
    const struct rlhf__lm_block *b;
    uint32_t first, from;
};

// Write the derivatives with respect to the logits of a row, [vocab] in the act dtype, to the place
// of this row in an array of such rows that begins with the block's logits.
static void row_grad(const void *job, int64_t at) {
    const struct grad *j = job;
    const struct rlhf__cpu *cpu = j->cpu;
    const rlhf_lm_head *a = j->a;
    const struct rlhf__lm_block *b = j->b;
    const uint32_t first = j->first, i = j->from + (uint32_t)at;
    const size_t n = (size_t)b->vocab;
    const struct rlhf__head_grad g = {.d_logp = element(a->d_logp, first + i),
                                      .d_entropy = element(a->d_entropy, first + i),
                                      .d_kl = element(a->d_kl, first + i),
                                      .target = targets(a)[first + i],
                                      .map = b->map};
    const int bf16 = a->dtype == RLHF_BF16;
    const float *z = b->logits + i * b->stride;
    const float *r = b->ref_logits ? b->ref_logits + i * b->stride : NULL;
    void *dz = (char *)b->logits + i * n * rlhf_dtype_size(a->dtype);
    if (r && b->divergence != RLHF_DIVERGENCE_REVERSE)
        cpu->hot.head_divergence_grad(dz, bf16, z, r, n, b->scale, b->beta, &b->stat[i], &g);
    else
        cpu->hot.head_grad(dz, bf16, z, r, n, b->scale, &b->stat[i], &g);
}

// Replace the logits of a block with their derivatives, in the act dtype. In bf16, the derivatives
// of row i overwrite half of the logits of row i / 2. So row i / 2 must be finished before row i
// starts. The first loop processes one row. Each later loop runs in parallel, and processes at most
// as many rows as are already finished.
static void *block_grad(const struct rlhf__cpu *cpu, const rlhf_lm_head *a,
                        const struct rlhf__lm_block *b, uint32_t first) {
    const int bf16 = a->dtype == RLHF_BF16;
    for (uint32_t from = 0, to; from < b->rows; from = to) {
        to = !bf16 ? b->rows : from == 0 ? 1 : 2 * from;
        if (to > b->rows) to = b->rows;
        rlhf__split_run(cpu, cpu->threads, to - from, row_grad,
                        &(const struct grad){cpu, a, b, first, from});
    }
    return b->logits;
}

// The block continues the sums in d_weight, so the division into blocks does not change them.
static rlhf_status block_backward(struct rlhf__cpu *cpu, const rlhf_lm_head *a,
                                  const struct rlhf__lm_block *b, uint32_t first) {
    void *dz = block_grad(cpu, a, b, first);
    if (a->d_hidden)
        RLHF_TRY(cpu->table.linear_dx(cpu, rlhf_dev_at(a->d_hidden, first * row_bytes(a)), a->dtype,
                                      0, rlhf__cpu_dev(dz), a->weight, b->rows));
    if (a->d_weight)
        RLHF_TRY(rlhf__linear_dw(cpu, rlhf__cpu_mem(a->d_weight),
                                 rlhf__cpu_mem(rlhf_dev_at(a->hidden, first * row_bytes(a))), dz,
                                 a->weight, b->rows, 1));
    return RLHF_OK;
}

static rlhf_status lm_head_bwd(void *ctx, const rlhf_lm_head *from) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_lm_head a;
    rlhf_dist dist;
    RLHF_TRY(head_read(cpu, "lm_head_bwd", &a, &dist, from, 1));
    if (a.d_weight) RLHF_TRY(rlhf__cpu_weight_dense(cpu, "lm_head_bwd", a.weight));
    if (a.rows == 0) return RLHF_OK;
    const int with_ref = a.d_kl != NULL, with_entropy = a.d_entropy != NULL;
    const uint32_t step = rlhf__lm_block_rows(cpu, a.weight, a.rows, with_ref);
    const struct rlhf__lm_kept want = kept_of(cpu, &a, with_ref, with_entropy, step);
    const int kept = kept_serves(&cpu->lm_kept, &want);
    cpu->lm_kept.valid = 0; // the derivatives overwrite the logits
    for (uint32_t first = 0; first < a.rows; first += step) {
        uint32_t rows = a.rows - first < step ? a.rows - first : step;
        struct rlhf__lm_block b = block_of(&a, with_ref, with_entropy, first, rows);
        if (first == 0 && kept) // the same sizes as in lm_head, so nothing moves
            RLHF_TRY(rlhf__lm_block_place(cpu, &b));
        else
            RLHF_TRY(block_fill(cpu, &b));
        RLHF_TRY(block_backward(cpu, &a, &b, first));
    }
    return RLHF_OK;
}

// ---- workspaces ----

// Add the workspaces of a block of `rows` rows. `ref` is the reference's weight, or NULL.
static void block_needs(struct rlhf__cpu *cpu, const rlhf_lm_head *a, const rlhf_weight *w,
                        const rlhf_weight *ref, uint32_t rows, int backward,
                        struct rlhf__cpu_needs *n) {
    const int cuts = a->dist && rlhf__lm_dist_cuts(a->dist, a->vocab);
    rlhf__lm_block_needs(cpu, w, ref, rows, cuts, n);
    if (backward && a->d_hidden) rlhf__linear_dx_needs(cpu, w, a->dtype, 0, rows, n);
    if (backward && a->d_weight) rlhf__linear_dw_needs(cpu, w, rows, 1, n);
}

// Also adds the workspaces of the last block. It has fewer rows than the others, so its work may be
// divided into larger pieces, which may need larger workspaces.
void rlhf__cpu_needs_lm_head(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    const rlhf_weight w = rlhf__weight_shape(cpu, &c->weight);
    const rlhf_weight of_ref = rlhf__weight_shape(cpu, &c->weight2);
    const int backward = c->op == RLHF_COMPUTE_OP(lm_head_bwd);
    rlhf_lm_head a;
    if ((!backward && c->op != RLHF_COMPUTE_OP(lm_head)) || !c->head) return;
    if (rlhf_copy_in(&a, sizeof a, c->head, RLHF_SIZE_TO(rlhf_lm_head, d_weight)) < 0) return;
    const int with_ref = backward ? a.d_kl != NULL : a.kl != NULL;
    const uint32_t step = rlhf__lm_block_rows(cpu, &w, a.rows, with_ref);
    const rlhf_weight *ref = with_ref ? &of_ref : NULL;
    if (!a.rows) return;
    block_needs(cpu, &a, &w, ref, step, backward, n);
    if (a.rows % step) block_needs(cpu, &a, &w, ref, a.rows % step, backward, n);
}

void rlhf__cpu_fill_lm_head(rlhf_compute *t) {
    t->lm_head = lm_head;
    t->lm_head_bwd = lm_head_bwd;
}
