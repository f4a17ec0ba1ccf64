// test_decoder.c: the row ops of decoders newer than GPT-2: RMS norm, gated units, SiLU, embeddings
// without positions, rotary positions with and without per-head norms, and their derivatives.
// Compares cpu with the reference. Also tests that other rows and the number of threads do not
// change the bits.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct shape {
    uint32_t rows;
    int32_t d, dtype, kind; // `kind` is the activation, and an odd kind means accumulate
};

static const struct bound f32_bound = {1e-12, 1e-5}, bf16_bound = {1e-6, 2e-2};

static const struct shape shapes[] = {
    {1, 16, RLHF_F32, 1},    {67, 64, RLHF_F32, 2},   {33, 896, RLHF_F32, 3},
    {33, 768, RLHF_F32, 4},  {9, 97, RLHF_F32, 4},    {5, 1, RLHF_F32, 3},
    {2, 4864, RLHF_F32, 4},  {1, 16, RLHF_BF16, 1},   {67, 64, RLHF_BF16, 2},
    {33, 896, RLHF_BF16, 3}, {33, 768, RLHF_BF16, 4}, {9, 97, RLHF_BF16, 4},
    {5, 1, RLHF_BF16, 3},    {2, 4864, RLHF_BF16, 4},
};

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label, "%s %u x %d %s kind %d", op, s->rows, s->d,
             s->dtype == RLHF_BF16 ? "bf16" : "f32", s->kind);
}

// ---- rms_norm ----

static void rms_norm(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    const double offset = s->kind & 2 ? 1.0 : 0.0;
    label(out, "rms_norm", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 3.0), n, RLHF_F32);
    rlhf_dev gamma = call_floats(k, call_normal(k, 2, d, 1.0), d, RLHF_F32);
    rlhf_dev y = call_zeros(k, n, s->dtype), stats = call_zeros(k, k->n_rows, RLHF_F32);
    KIT_OK(k->c,
           k->c->rms_norm(k->c->ctx, y, s->dtype, stats, x, gamma, offset, 0.5, k->n_rows, s->d));
    outputs_add(out, k, "out", y, s->dtype, k->n_rows, d, k->rows);
    outputs_add(out, k, "stats", stats, RLHF_F32, k->n_rows, 1, k->rows);
    KIT_OK(k->c,
           k->c->rms_norm(k->c->ctx, y, s->dtype, NULL, x, gamma, offset, 0.5, k->n_rows, s->d));
    outputs_add(out, k, "out without stats", y, s->dtype, k->n_rows, d, k->rows);
}

static void rms_norm_bwd(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    const double offset = s->kind & 2 ? 1.0 : 0.0;
    label(out, "rms_norm_bwd", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 3.0), n, RLHF_F32);
    rlhf_dev gamma = call_floats(k, call_normal(k, 2, d, 1.0), d, RLHF_F32);
    rlhf_dev dy = call_floats(k, call_normal_rows(k, 4, d, 1.0), n, s->dtype);
    rlhf_dev y = call_zeros(k, n, RLHF_F32), stats = call_zeros(k, k->n_rows, RLHF_F32);
    rlhf_dev dx = call_floats(k, call_normal_rows(k, 5, d, 1.0), n, RLHF_F32);
    rlhf_dev dgamma = call_floats(k, call_normal(k, 6, d, 1.0), d, RLHF_F32);
    KIT_OK(k->c,
           k->c->rms_norm(k->c->ctx, y, RLHF_F32, stats, x, gamma, offset, 0.5, k->n_rows, s->d));
    KIT_OK(k->c, k->c->rms_norm_bwd(k->c->ctx, dx, s->kind & 1, dgamma, dy, s->dtype, x, stats,
                                    gamma, offset, k->n_rows, s->d));
    outputs_add(out, k, "dx", dx, RLHF_F32, k->n_rows, d, k->rows);
    outputs_add(out, k, "dgamma", dgamma, RLHF_F32, 1, d, NULL);
    KIT_OK(k->c, k->c->rms_norm_bwd(k->c->ctx, y, 0, NULL, dy, s->dtype, x, stats, gamma, offset,
                                    k->n_rows, s->d));
    outputs_add(out, k, "dx alone", y, RLHF_F32, k->n_rows, d, k->rows);
}

// ---- SiLU, gate ----

static void silu(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    label(out, "silu", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, d, 8.0), n, s->dtype);
    rlhf_dev dy = call_floats(k, call_normal_rows(k, 2, d, 1.0), n, s->dtype);
    rlhf_dev y = call_zeros(k, n, s->dtype);
    KIT_OK(k->c, k->c->act(k->c->ctx, y, x, RLHF_ACT_SILU, s->dtype, n));
    KIT_OK(k->c, k->c->act_bwd(k->c->ctx, dy, dy, x, RLHF_ACT_SILU, s->dtype, n));
    outputs_add(out, k, "out", y, s->dtype, k->n_rows, d, k->rows);
    outputs_add(out, k, "dx", dy, s->dtype, k->n_rows, d, k->rows);
}

static void gate(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    label(out, "gate", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, 2 * d, 2.0), 2 * n, s->dtype);
    rlhf_dev dy = call_floats(k, call_normal_rows(k, 2, d, 1.0), n, s->dtype);
    rlhf_dev y = call_zeros(k, n, s->dtype), dx = call_zeros(k, 2 * n, s->dtype);
    KIT_OK(k->c, k->c->gate(k->c->ctx, y, x, s->kind, s->dtype, k->n_rows, s->d));
    KIT_OK(k->c, k->c->gate_bwd(k->c->ctx, dx, dy, x, s->kind, s->dtype, k->n_rows, s->d));
    outputs_add(out, k, "out", y, s->dtype, k->n_rows, d, k->rows);
    outputs_add(out, k, "dx", dx, s->dtype, k->n_rows, 2 * d, k->rows);
    KIT_OK(k->c, k->c->gate_bwd(k->c->ctx, x, dy, x, s->kind, s->dtype, k->n_rows, s->d));
    outputs_add(out, k, "dx in place", x, s->dtype, k->n_rows, 2 * d, k->rows);
}

// ---- embed without positions ----

enum { VOCAB = 97 };

static void embed(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const uint64_t d = (uint64_t)s->d, n = k->n_rows * d;
    const double scale = s->kind & 1 ? sqrt((double)d) : 1.0;
    label(out, "embed without positions", s);
    int32_t *ids = call_host(k, k->n_rows * sizeof *ids);
    for (uint32_t i = 0; i < k->n_rows; i++)
        ids[i] = (int32_t)(k->rows[i] * k->rows[i] % 23);
    rlhf_dev dev_ids = call_ints(k, ids, k->n_rows);
    rlhf_dev wte = call_floats(k, call_normal(k, 1, VOCAB * d, 1.0), VOCAB * d, RLHF_F32);
    rlhf_dev y = call_zeros(k, n, RLHF_F32);
    rlhf_dev dy = call_floats(k, call_normal_rows(k, 3, d, 1.0), n, RLHF_F32);
    KIT_OK(k->c, k->c->embed(k->c->ctx, y, dev_ids, NULL, wte, NULL, scale, k->n_rows, s->d));
    outputs_add(out, k, "out", y, RLHF_F32, k->n_rows, d, k->rows);
    KIT_OK(k->c, k->c->embed_bwd(k->c->ctx, wte, NULL, dy, dev_ids, NULL, scale, k->n_rows, s->d,
                                 VOCAB, 0));
    outputs_add(out, k, "dwte", wte, RLHF_F32, VOCAB, d, NULL);
}

// ---- rope ----

struct turned {
    uint32_t rows;
    int32_t heads, kv_heads, head_dim, dtype;
    int32_t norms; // 1: of heads; 2: with gamma_offset 1; 3: of whole rows
    uint32_t pad;  // elements after the keys, which must not change
    int32_t part;  // rotary_dim
};

static const struct turned turned[] = {
    {1, 1, 1, 2, RLHF_F32, 0, 0, 0},      {67, 4, 2, 64, RLHF_F32, 0, 128, 0},
    {33, 3, 3, 24, RLHF_F32, 0, 5, 0},    {70, 14, 2, 64, RLHF_F32, 0, 0, 0},
    {9, 2, 1, 130, RLHF_F32, 1, 3, 0},    {33, 4, 2, 16, RLHF_F32, 1, 32, 0},
    {67, 3, 1, 6, RLHF_F32, 1, 0, 0},     {1, 1, 1, 2, RLHF_BF16, 0, 0, 0},
    {67, 4, 2, 64, RLHF_BF16, 0, 128, 0}, {33, 3, 3, 24, RLHF_BF16, 0, 5, 0},
    {9, 2, 1, 130, RLHF_BF16, 1, 3, 0},   {33, 4, 2, 16, RLHF_BF16, 1, 32, 0},
    {67, 3, 1, 6, RLHF_BF16, 1, 0, 0},    {33, 4, 2, 256, RLHF_F32, 2, 0, 0},
    {33, 4, 1, 256, RLHF_BF16, 2, 3, 0},  {33, 4, 2, 96, RLHF_F32, 0, 5, 72},
    {33, 4, 2, 96, RLHF_BF16, 0, 0, 72},  {67, 3, 1, 32, RLHF_F32, 1, 0, 8},
    {67, 3, 1, 32, RLHF_BF16, 2, 3, 8},   {9, 2, 1, 130, RLHF_F32, 1, 3, 66},
    {9, 2, 2, 256, RLHF_BF16, 2, 0, 64},  {33, 3, 1, 6, RLHF_F32, 2, 1, 4},
    {33, 3, 1, 300, RLHF_F32, 1, 0, 10},  {67, 4, 2, 64, RLHF_F32, 3, 128, 0},
    {33, 5, 5, 24, RLHF_F32, 3, 3, 0},    {70, 3, 1, 6, RLHF_F32, 3, 0, 0},
    {1, 1, 1, 2, RLHF_F32, 3, 0, 0},      {9, 2, 1, 130, RLHF_BF16, 3, 3, 66},
    {33, 16, 4, 128, RLHF_BF16, 3, 0, 0}, {33, 3, 1, 300, RLHF_F32, 3, 0, 10},
};

enum { POSITIONS = 50 };

// Makes cosines and sines of every position's angles.
static float *angles(struct call *k, int32_t head_dim) {
    const int32_t half = head_dim / 2;
    float *t = call_host(k, (uint64_t)POSITIONS * (uint64_t)head_dim * sizeof *t);
    for (int32_t p = 0; p < POSITIONS; p++)
        for (int32_t c = 0; c < half; c++) {
            const double angle = p * pow(100.0, -(double)c / half);
            t[p * head_dim + c] = (float)cos(angle);
            t[p * head_dim + half + c] = (float)sin(angle);
        }
    return t;
}

// The number of elements of the gamma of so many heads, and the number of norms of a row.
static uint64_t gammas(const struct turned *s, int32_t heads) {
    return (uint64_t)s->head_dim * (uint64_t)(s->norms == 3 ? heads : 1);
}
static uint64_t norms_of(const struct turned *s) {
    return s->norms == 3 ? 2 : (uint64_t)(s->heads + s->kv_heads);
}

static rlhf_rope rope_of(struct call *k, const struct turned *s) {
    const uint64_t dim = (uint64_t)s->head_dim, heads = (uint64_t)(s->heads + s->kv_heads);
    int32_t *pos = call_host(k, k->n_rows * sizeof *pos);
    for (uint32_t i = 0; i < k->n_rows; i++)
        pos[i] = (int32_t)((k->rows[i] * 7 + 3) % POSITIONS);
    rlhf_rope g = {.size = sizeof g,
                   .heads = s->heads,
                   .kv_heads = s->kv_heads == s->heads ? 0 : s->kv_heads, // 0: the same number
                   .head_dim = s->head_dim,
                   .rotary_dim = s->part,
                   .dtype = s->dtype,
                   .n_pos = POSITIONS,
                   .stride = (int64_t)(heads * dim + s->pad),
                   .eps = 0.25,
                   .gamma_offset = s->norms == 2 ? 1.0 : 0.0,
                   .whole = s->norms == 3};
    g.pos = call_ints(k, pos, k->n_rows);
    const int32_t turns = s->part ? s->part : s->head_dim;
    g.turn = call_floats(k, angles(k, turns), POSITIONS * (uint64_t)turns, RLHF_F32);
    if (!s->norms) return g;
    const uint64_t of_q = gammas(s, s->heads), of_k = gammas(s, s->kv_heads);
    g.gamma_q = call_floats(k, call_normal(k, 2, of_q, 1.0), of_q, RLHF_F32);
    g.gamma_k = call_floats(k, call_normal(k, 3, of_k, 1.0), of_k, RLHF_F32);
    g.raw = call_zeros(k, k->n_rows * heads * dim, s->dtype);
    g.stats = call_zeros(k, k->n_rows * norms_of(s), RLHF_F32);
    return g;
}

static void label_rope(struct outputs *out, const char *op, const struct turned *s) {
    snprintf(out->label, sizeof out->label, "%s %u rows, %d (%d) x %d (%d) %s%s", op, s->rows,
             s->heads, s->kv_heads, s->head_dim, s->part, s->dtype == RLHF_BF16 ? "bf16" : "f32",
             s->norms == 3 ? " with norms of rows"
             : s->norms    ? " with norms"
                           : "");
}

static void rope(struct call *k, const void *shape, struct outputs *out) {
    const struct turned *s = shape;
    rlhf_rope g = rope_of(k, s);
    const uint64_t stride = (uint64_t)g.stride, n = k->n_rows * stride;
    const uint64_t heads = (uint64_t)(s->heads + s->kv_heads);
    const float *from = call_normal_rows(k, 1, stride, 2.0);
    label_rope(out, "rope", s);
    rlhf_dev x = call_floats(k, from, n, s->dtype);
    KIT_OK(k->c, k->c->rope(k->c->ctx, &g, x, k->n_rows));
    outputs_add(out, k, "out", x, s->dtype, k->n_rows, stride, k->rows);
    if (!s->norms) return;
    outputs_add(out, k, "raw", g.raw, s->dtype, k->n_rows, heads * (uint64_t)s->head_dim, k->rows);
    outputs_add(out, k, "stats", g.stats, RLHF_F32, k->n_rows, norms_of(s), k->rows);
    x = call_floats(k, from, n, s->dtype);
    g.raw = g.stats = NULL;
    KIT_OK(k->c, k->c->rope(k->c->ctx, &g, x, k->n_rows));
    outputs_add(out, k, "out of a forward alone", x, s->dtype, k->n_rows, stride, k->rows);
}

static void rope_bwd(struct call *k, const void *shape, struct outputs *out) {
    const struct turned *s = shape;
    const rlhf_rope g = rope_of(k, s);
    const uint64_t stride = (uint64_t)g.stride, n = k->n_rows * stride;
    const uint64_t of_q = gammas(s, s->heads), of_k = gammas(s, s->kv_heads);
    const float *from = call_normal_rows(k, 5, stride, 1.0);
    label_rope(out, "rope_bwd", s);
    rlhf_dev x = call_floats(k, call_normal_rows(k, 1, stride, 2.0), n, s->dtype);
    rlhf_dev dx = call_floats(k, from, n, s->dtype);
    rlhf_dev dq = s->norms ? call_floats(k, call_normal(k, 6, of_q, 1.0), of_q, RLHF_F32) : NULL;
    rlhf_dev dk = s->norms ? call_floats(k, call_normal(k, 7, of_k, 1.0), of_k, RLHF_F32) : NULL;
    KIT_OK(k->c, k->c->rope(k->c->ctx, &g, x, k->n_rows));
    KIT_OK(k->c, k->c->rope_bwd(k->c->ctx, &g, dx, dq, dk, k->n_rows));
    outputs_add(out, k, "dx", dx, s->dtype, k->n_rows, stride, k->rows);
    if (!s->norms) return;
    outputs_add(out, k, "dgamma_q", dq, RLHF_F32, 1, of_q, NULL);
    outputs_add(out, k, "dgamma_k", dk, RLHF_F32, 1, of_k, NULL);
    dx = call_floats(k, from, n, s->dtype);
    KIT_OK(k->c, k->c->rope_bwd(k->c->ctx, &g, dx, NULL, dk, k->n_rows));
    outputs_add(out, k, "dx without the queries' dgamma", dx, s->dtype, k->n_rows, stride, k->rows);
}

// ---- tests ----

static const op_fn ops[] = {rms_norm, rms_norm_bwd, silu, gate, embed};

static void match(void **state) {
    for (size_t o = 0; o < CHECK_COUNT(ops); o++)
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
            check_match(*state, ops[o], &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
}

static void rows(void **state) {
    struct kit *k = *state;
    for (size_t o = 0; o < CHECK_COUNT(ops); o++) {
        check_rows(k->ref, ops[o], &shapes[1], shapes[1].rows);
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            if (shapes[i].rows < 9) continue;
            check_rows(k->cpu1, ops[o], &shapes[i], shapes[i].rows);
            check_rows(k->cpu2, ops[o], &shapes[i], shapes[i].rows);
        }
    }
}

static void threads(void **state) {
    static const struct shape tall[] = {{1201, 97, RLHF_F32, 4}, {1201, 256, RLHF_BF16, 4}};
    for (size_t o = 0; o < CHECK_COUNT(ops); o++)
        for (size_t i = 0; i < CHECK_COUNT(tall); i++) {
            check_threads(*state, ops[o], &shapes[i], shapes[i].rows);
            check_threads(*state, ops[o], &tall[i], tall[i].rows);
        }
}

static void rope_matches(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(turned); i++) {
        check_match(*state, rope, &turned[i], turned[i].rows, f32_bound, bf16_bound);
        check_match(*state, rope_bwd, &turned[i], turned[i].rows, f32_bound, bf16_bound);
    }
}

static void rope_of_rows(void **state) {
    struct kit *k = *state;
    check_rows(k->ref, rope, &turned[5], turned[5].rows);
    check_rows(k->ref, rope_bwd, &turned[5], turned[5].rows);
    for (size_t i = 0; i < CHECK_COUNT(turned); i++) {
        if (turned[i].rows < 9) continue;
        check_rows(k->cpu1, rope, &turned[i], turned[i].rows);
        check_rows(k->cpu2, rope, &turned[i], turned[i].rows);
        check_rows(k->cpu2, rope_bwd, &turned[i], turned[i].rows);
    }
}

static void rope_on_threads(void **state) {
    static const struct turned tall[] = {{501, 5, 2, 32, RLHF_F32, 1, 7, 0},
                                         {501, 6, 2, 24, RLHF_BF16, 1, 0, 0},
                                         {501, 6, 2, 24, RLHF_BF16, 0, 48, 0},
                                         {501, 6, 2, 24, RLHF_F32, 3, 5, 0},
                                         {501, 5, 2, 32, RLHF_F32, 1, 0, 24}};
    for (size_t i = 0; i < CHECK_COUNT(tall); i++) {
        check_threads(*state, rope, &tall[i], tall[i].rows);
        check_threads(*state, rope_bwd, &tall[i], tall[i].rows);
    }
}

// Elements after the keys are not modified, whatever their values.
static void rope_leaves_the_rest(void **state) {
    struct kit *kit = *state;
    static const struct turned s = {3, 2, 1, 8, RLHF_BF16, 1, 5, 0};
    static const uint32_t all[] = {0, 1, 2};
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b], .rows = all, .n_rows = s.rows};
        const rlhf_rope g = rope_of(&k, &s);
        float *x = call_normal(&k, 1, 3 * 29, 1.0), got[3 * 29];
        for (int i = 0; i < 3 * 29; i++)
            if (i % 29 >= 24) x[i] = NAN;
        rlhf_dev dev = call_floats(&k, x, 3 * 29, s.dtype);
        KIT_OK(k.c, k.c->rope(k.c->ctx, &g, dev, 3));
        KIT_OK(k.c, k.c->rope_bwd(k.c->ctx, &g, dev, NULL, NULL, 3));
        kit_read(k.c, got, dev, 3 * 29, s.dtype);
        for (int i = 0; i < 3 * 29; i++)
            assert_true(!isnan(got[i]) == (i % 29 < 24));
        KIT_OK(k.c, k.c->rope(k.c->ctx, &g, dev, 0)); // no rows: nothing to do
        call_finish(&k);
    }
}

// Without norms, the elements of a head from rotary_dim on keep their bits, whatever they are.
static void rope_leaves_the_rest_of_a_head(void **state) {
    struct kit *kit = *state;
    static const struct turned s = {3, 2, 1, 8, RLHF_F32, 0, 0, 6};
    static const uint32_t all[] = {0, 1, 2};
    rlhf_compute *backends[] = {kit->ref, kit->cpu1};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b], .rows = all, .n_rows = s.rows};
        const rlhf_rope g = rope_of(&k, &s);
        float *x = call_normal(&k, 1, 72, 1.0), got[72];
        for (int i = 6; i < 72; i += 8) {
            x[i] = -0.0f;
            x[i + 1] = i % 16 == 6 ? INFINITY : 1e-42f;
        }
        rlhf_dev dev = call_floats(&k, x, 72, s.dtype);
        KIT_OK(k.c, k.c->rope(k.c->ctx, &g, dev, 3));
        KIT_OK(k.c, k.c->rope_bwd(k.c->ctx, &g, dev, NULL, NULL, 3));
        kit_read(k.c, got, dev, 72, s.dtype);
        for (int i = 6; i < 72; i += 8)
            assert_memory_equal(&got[i], &x[i], 2 * sizeof *got);
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(match),
                                       cmocka_unit_test(rows),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(rope_matches),
                                       cmocka_unit_test(rope_of_rows),
                                       cmocka_unit_test(rope_on_threads),
                                       cmocka_unit_test(rope_leaves_the_rest),
                                       cmocka_unit_test(rope_leaves_the_rest_of_a_head)};
    return cmocka_run_group_tests_name("kernels: decoder", tests, kit_setup, kit_teardown);
}
