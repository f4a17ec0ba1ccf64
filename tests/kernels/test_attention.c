// test_attention.c: attention and its derivative over ragged rows, cpu against reference. A query's
// bits must not depend on the other rows, on the layout (training or KV cache) or on the threads.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    uint32_t rows; // ragged rows; row i has lens[i % 8] tokens
    int32_t heads, head_dim, causal, dtype;
    int32_t kv_heads; // 0: equal to heads
    uint32_t pad;     // unused elements between two tokens
    int32_t window;   // 0: none
    double softcap;   // 0: none
};

static const uint32_t lens[] = {7, 1, 33, 64, 2, 17, 70, 31};

static const struct bound f32_bound = {1e-11, 5e-5}, bf16_bound = {2e-5, 5e-2};

// Backends in host memory keep probabilities and their derivatives in f32, so their gradients
// exceed this if they round other results to bf16 than the reference backend. CUDA rounds both
// for its matrix products.
static const double bf16_bwd_nmse = 2e-7;

static const struct shape shapes[] = {
    {8, 2, 16, 1, RLHF_F32, 0, 0, 0, 0},
    {8, 4, 32, 1, RLHF_F32, 0, 0, 0, 0},
    {5, 3, 64, 1, RLHF_F32, 0, 0, 0, 0},
    {8, 2, 16, 0, RLHF_F32, 0, 0, 0, 0},
    {8, 4, 64, 0, RLHF_F32, 0, 0, 0, 0},
    {3, 1, 24, 1, RLHF_F32, 0, 0, 0, 0},
    {8, 2, 16, 1, RLHF_BF16, 0, 0, 0, 0},
    {8, 4, 32, 1, RLHF_BF16, 0, 0, 0, 0},
    {5, 3, 64, 1, RLHF_BF16, 0, 0, 0, 0},
    {8, 2, 16, 0, RLHF_BF16, 0, 0, 0, 0},
    {8, 4, 64, 0, RLHF_BF16, 0, 0, 0, 0},
    {3, 1, 24, 1, RLHF_BF16, 0, 0, 0, 0},
    // 2, 3, 7, 8 and 5 query heads share a key head.
    {8, 4, 16, 1, RLHF_F32, 2, 0, 0, 0},
    {4, 6, 24, 0, RLHF_F32, 2, 0, 0, 0},
    {3, 7, 32, 1, RLHF_F32, 1, 0, 0, 0},
    {8, 4, 16, 1, RLHF_BF16, 2, 0, 0, 0},
    {4, 6, 24, 0, RLHF_BF16, 3, 0, 0, 0},
    {5, 14, 16, 1, RLHF_BF16, 2, 0, 0, 0},
    {3, 8, 64, 1, RLHF_BF16, 1, 0, 0, 0},
    {3, 5, 8, 1, RLHF_BF16, 1, 0, 0, 0},
    // Head widths for which the next wider kernel has more than 8 unused columns.
    {4, 3, 40, 1, RLHF_F32, 0, 0, 0, 0},
    {4, 3, 40, 1, RLHF_BF16, 0, 0, 0, 0},
    {3, 4, 104, 0, RLHF_BF16, 2, 0, 0, 0},
};

// Shapes whose head widths are not multiples of 8. A backend may refuse them with an error text.
// For some of them, the size of a whole row is still a multiple of 16 bytes, so a check of only
// that size would accept them.
static const struct shape others[] = {
    {5, 2, 20, 1, RLHF_F32, 0, 0, 0, 0},  {5, 2, 20, 1, RLHF_BF16, 0, 0, 0, 0},
    {5, 1, 7, 1, RLHF_F32, 0, 0, 0, 0},   {5, 1, 7, 0, RLHF_BF16, 0, 0, 0, 0},
    {5, 4, 20, 1, RLHF_BF16, 2, 0, 0, 0},
};

// Head widths that occur in models. A backend may refuse those above 256.
static const struct shape wide[] = {
    {3, 2, 80, 1, RLHF_BF16, 0, 0, 0, 0},      {3, 1, 96, 1, RLHF_BF16, 0, 0, 0, 0},
    {3, 1, 128, 1, RLHF_BF16, 0, 0, 0, 0},     {3, 2, 80, 1, RLHF_F32, 0, 0, 0, 0},
    {3, 1, 96, 0, RLHF_F32, 0, 0, 0, 0},       {3, 1, 128, 1, RLHF_F32, 0, 0, 0, 0},
    {4, 2, 136, 1, RLHF_F32, 0, 0, 0, 0},      {4, 4, 192, 1, RLHF_BF16, 2, 0, 20, 0},
    {4, 2, 256, 1, RLHF_BF16, 1, 0, 0, 0},     {3, 1, 256, 0, RLHF_BF16, 0, 0, 0, 0},
    {4, 2, 256, 1, RLHF_F32, 1, 0, 0, 0},      {3, 1, 256, 0, RLHF_F32, 0, 0, 0, 0},
    {3, 2, 512, 1, RLHF_BF16, 1, 0, 0, 0},     {3, 1, 512, 1, RLHF_F32, 0, 0, 0, 0},
    {4, 2, 256, 1, RLHF_BF16, 1, 1, 23, 30.0},
};

// Windows that are shorter than a tile of queries, shorter than a vector of keys, a whole vector,
// and longer than some rows; the longest row has three windows of 23. Caps that bend most scores.
static const struct shape limited[] = {
    {8, 2, 16, 1, RLHF_F32, 0, 0, 1, 0},     {8, 2, 16, 1, RLHF_F32, 0, 0, 3, 0},
    {8, 4, 32, 1, RLHF_F32, 2, 0, 23, 0},    {8, 3, 64, 1, RLHF_F32, 0, 0, 16, 0},
    {8, 3, 24, 1, RLHF_F32, 1, 0, 33, 1.5},  {8, 2, 16, 1, RLHF_F32, 0, 0, 0, 0.75},
    {8, 2, 16, 0, RLHF_F32, 0, 0, 0, 1.5},   {8, 2, 16, 1, RLHF_BF16, 0, 0, 1, 0},
    {8, 2, 24, 1, RLHF_BF16, 0, 0, 20, 0},   {8, 14, 16, 1, RLHF_BF16, 2, 0, 23, 0},
    {8, 8, 64, 1, RLHF_BF16, 1, 0, 5, 1.5},  {8, 3, 64, 1, RLHF_BF16, 0, 0, 33, 0},
    {8, 2, 16, 0, RLHF_BF16, 0, 0, 0, 0.75}, {8, 3, 64, 1, RLHF_BF16, 0, 0, 70, 0},
};

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label, "%s %u rows, %d (%d) x %d %s %s, window %d, cap %g", op,
             s->rows, s->heads, s->kv_heads, s->head_dim, s->causal ? "causal" : "full",
             s->dtype == RLHF_BF16 ? "bf16" : "f32", s->window, s->softcap);
}

// Ragged rows in the training layout, with a fused [q k v] buffer as in GPT-2.
struct layout {
    rlhf_attn attn;
    rlhf_ragged ragged;
    uint64_t d, kd;  // columns of q, of k
    uint64_t stride; // stride of q, k and v: d + 2 kd + pad
    int32_t *offset;
    uint32_t *key; // [total] index of the token in the whole shape
    rlhf_dev q, k, v;
};

static uint32_t first_token(uint32_t row) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < row; i++)
        at += lens[i % CHECK_COUNT(lens)];
    return at;
}

// Makes [q k v] of the tokens. Each token has a row of l->stride numbers.
static float *make_qkv(struct call *tokens, const struct layout *l, uint32_t pad) {
    const uint64_t width = l->stride - pad;
    const float *x = call_normal_rows(tokens, 1, width, 1.0);
    float *padded = call_host(tokens, tokens->n_rows * l->stride * sizeof *padded);
    for (uint64_t i = 0; i < tokens->n_rows * width; i++)
        padded[i / width * l->stride + i % width] = x[i];
    return padded;
}

static struct layout make_layout(struct call *k, const struct shape *s) {
    struct layout l = {.d = (uint64_t)s->heads * (uint64_t)s->head_dim};
    l.kd = (uint64_t)(s->kv_heads ? s->kv_heads : s->heads) * (uint64_t)s->head_dim;
    l.stride = l.d + 2 * l.kd + s->pad;
    int32_t *start = call_host(k, (k->n_rows + 1) * sizeof *start);
    l.offset = call_host(k, (k->n_rows + 1) * sizeof *l.offset);
    l.ragged.size = sizeof l.ragged;
    l.ragged.n = k->n_rows;
    for (uint32_t i = 0; i < k->n_rows; i++) {
        const uint32_t len = lens[k->rows[i] % CHECK_COUNT(lens)];
        l.offset[i + 1] = l.offset[i] + (int32_t)len;
        if (len > l.ragged.max_q) l.ragged.max_q = l.ragged.max_k = len;
    }
    l.ragged.total = (uint32_t)l.offset[k->n_rows];
    l.key = call_host(k, l.ragged.total * sizeof *l.key);
    for (uint32_t i = 0; i < k->n_rows; i++)
        for (int32_t t = l.offset[i]; t < l.offset[i + 1]; t++)
            l.key[t] = first_token(k->rows[i]) + (uint32_t)(t - l.offset[i]);
    l.ragged.offset = call_ints(k, l.offset, k->n_rows + 1ull);
    l.ragged.start = call_ints(k, start, k->n_rows);
    l.ragged.kv_base = call_ints(k, l.offset, k->n_rows);
    struct call tokens = {.rows = l.key, .n_rows = l.ragged.total};
    float *qkv = make_qkv(&tokens, &l, s->pad);
    l.q = call_floats(k, qkv, l.ragged.total * l.stride, s->dtype);
    call_finish(&tokens);
    l.k = rlhf_dev_at(l.q, l.d * rlhf_dtype_size(s->dtype));
    l.v = rlhf_dev_at(l.k, l.kd * rlhf_dtype_size(s->dtype));
    l.attn = (rlhf_attn){.size = sizeof(rlhf_attn),
                         .heads = s->heads,
                         .head_dim = s->head_dim,
                         .causal = s->causal,
                         .dtype = s->dtype,
                         .q_stride = (int64_t)l.stride,
                         .kv_stride = (int64_t)l.stride,
                         .out_stride = (int64_t)l.d,
                         .scale = 1.0 / sqrt((double)s->head_dim),
                         .kv_heads = s->kv_heads,
                         .window = s->window,
                         .softcap = s->softcap};
    return l;
}

static void attention(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const struct layout l = make_layout(k, s);
    const uint64_t total = l.ragged.total, heads = (uint64_t)s->heads;
    label(out, "attention", s);
    rlhf_dev y = call_zeros(k, total * l.d, s->dtype), lse = call_zeros(k, total * heads, RLHF_F32);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &l.attn, &l.ragged, y, lse, l.q, l.k, l.v));
    outputs_add(out, k, "out", y, s->dtype, total, l.d, l.key);
    outputs_add(out, k, "lse", lse, RLHF_F32, total, heads, l.key);
    KIT_OK(k->c, k->c->zero(k->c->ctx, y, total * l.d * rlhf_dtype_size(s->dtype)));
    KIT_OK(k->c, k->c->attention(k->c->ctx, &l.attn, &l.ragged, y, NULL, l.q, l.k, l.v));
    outputs_add(out, k, "out without lse", y, s->dtype, total, l.d, l.key);
}

static void attention_bwd(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const struct layout l = make_layout(k, s);
    const uint64_t total = l.ragged.total, heads = (uint64_t)s->heads;
    const uint64_t size = rlhf_dtype_size(s->dtype);
    label(out, "attention_bwd", s);
    rlhf_dev y = call_zeros(k, total * l.d, s->dtype), lse = call_zeros(k, total * heads, RLHF_F32);
    rlhf_dev dqkv = call_zeros(k, total * l.stride, s->dtype);
    struct call tokens = {.rows = l.key, .n_rows = l.ragged.total};
    rlhf_dev dy = call_floats(k, call_normal_rows(&tokens, 2, l.d, 1.0), total * l.d, s->dtype);
    call_finish(&tokens);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &l.attn, &l.ragged, y, lse, l.q, l.k, l.v));
    KIT_OK(k->c,
           k->c->attention_bwd(k->c->ctx, &l.attn, &l.ragged, dqkv, rlhf_dev_at(dqkv, l.d * size),
                               rlhf_dev_at(dqkv, (l.d + l.kd) * size), dy, y, lse, l.q, l.k, l.v));
    outputs_add(out, k, "dq dk dv", dqkv, s->dtype, total, l.stride, l.key);
}

// Feeds the rows of `attention` to a cache in pieces of different sizes: in step j row i appends
// piece(i, j) tokens. The cache has the rows in a different order than `attention`, and in
// different slots.
static uint32_t piece(uint32_t row, uint32_t step) {
    return step == 0 ? 1 + row * 11 % 30 : 1 + (row + step) % 4 * ((step & 3) == 1);
}

struct cache {
    rlhf_dev k, v;
    uint32_t len; // tokens a slot can hold; with a window, token t is in row t % len of the slot
    uint32_t *held;
    double *out; // [tokens of the whole shape, d]
};

// Overwrites the keys and values that are still in the slot at `base` and that the queries at
// position `start` and later do not see with NaN.
static void forget(struct call *k, const struct shape *s, const struct layout *l,
                   const struct cache *c, uint32_t base, uint32_t start) {
    const uint64_t bytes = l->kd * rlhf_dtype_size(s->dtype);
    void *nan = call_host(k, bytes);
    memset(nan, 0xff, bytes);
    for (uint32_t t = start < c->len ? 0 : start - c->len; t + (uint32_t)s->window <= start; t++) {
        const uint64_t at = (base + t % c->len) * bytes;
        KIT_OK(k->c, k->c->upload(k->c->ctx, rlhf_dev_at(c->k, at), nan, bytes));
        KIT_OK(k->c, k->c->upload(k->c->ctx, rlhf_dev_at(c->v, at), nan, bytes));
    }
}

// Appends the next piece of every unfinished row. Returns 0 when all are finished.
static int cache_step(struct call *all, const struct shape *s, const struct layout *l,
                      struct cache *c, uint32_t step) {
    struct call k = {.c = all->c};
    int32_t *meta = call_host(&k, 5ull * (s->rows + 1) * sizeof *meta);
    int32_t *offset = meta, *start = meta + s->rows + 1, *base = start + s->rows + 1;
    int32_t *from = base + s->rows + 1, *before = from + s->rows + 1; // the ring's first part
    uint32_t *row = call_host(&k, s->rows * sizeof *row), *src;
    rlhf_ragged r = {.size = sizeof r};
    src = call_host(&k, l->ragged.total * sizeof *src);
    for (uint32_t j = 0; j < s->rows; j++) {
        const uint32_t i = s->rows - 1 - j, len = lens[i % CHECK_COUNT(lens)];
        uint32_t take = piece(i, step);
        if (take > len - c->held[i]) take = len - c->held[i];
        const uint32_t turn =
            c->held[i] / c->len * c->len; // tokens before it are in the first part
        if (take > turn + c->len - c->held[i]) take = turn + c->len - c->held[i];
        if (take == 0) continue;
        for (uint32_t t = 0; t < take; t++)
            src[r.total + t] = (uint32_t)l->offset[i] + c->held[i] + t;
        row[r.n] = i;
        start[r.n] = (int32_t)c->held[i];
        base[r.n] = (int32_t)((i + 1) % s->rows * c->len);
        before[r.n] = (int32_t)turn;
        from[r.n] = base[r.n] + (int32_t)c->len - before[r.n];
        offset[++r.n] = (int32_t)(r.total += take);
        if (take > r.max_q) r.max_q = take;
        if (take + c->held[i] > r.max_k) r.max_k = take + c->held[i];
        if (s->window) forget(&k, s, l, c, (uint32_t)base[r.n - 1], c->held[i]);
        c->held[i] += take;
    }
    if (r.n) {
        r.offset = call_ints(&k, offset, r.n + 1ull);
        r.start = call_ints(&k, start, r.n);
        r.kv_base = call_ints(&k, base, r.n);
        r.prefix_base = s->window ? call_ints(&k, from, r.n) : NULL;
        r.prefix_len = s->window ? call_ints(&k, before, r.n) : NULL;
        struct call pick = {.rows = src, .n_rows = r.total};
        rlhf_dev q = call_floats(&k, make_qkv(&pick, l, s->pad), r.total * l->stride, s->dtype);
        call_finish(&pick);
        const uint64_t size = rlhf_dtype_size(s->dtype);
        rlhf_dev y = call_zeros(&k, r.total * l->d, s->dtype);
        rlhf_attn a = l->attn;
        a.kv_stride = (int64_t)l->kd;
        KIT_OK(k.c, k.c->kv_store(k.c->ctx, c->k, c->v, rlhf_dev_at(q, l->d * size),
                                  rlhf_dev_at(q, (l->d + l->kd) * size), (int64_t)l->stride, &r,
                                  (int32_t)l->kd, s->dtype));
        KIT_OK(k.c, k.c->attention(k.c->ctx, &a, &r, y, NULL, q, c->k, c->v));
        float *f = call_host(&k, r.total * l->d * sizeof *f);
        kit_read(k.c, f, y, r.total * l->d, s->dtype);
        for (uint32_t t = 0; t < r.total; t++)
            for (uint64_t e = 0; e < l->d; e++)
                c->out[src[t] * l->d + e] = (double)f[t * l->d + e];
    }
    const int more = r.n > 0;
    call_finish(&k);
    return more;
}

static void cached(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const struct layout l = make_layout(k, s);
    // The longest piece has 30 tokens.
    struct cache c = {.len = s->window && s->window < 42 ? (uint32_t)s->window + 30 : 72};
    label(out, "cached attention", s);
    c.k = call_zeros(k, s->rows * c.len * l.kd, s->dtype);
    c.v = call_zeros(k, s->rows * c.len * l.kd, s->dtype);
    c.held = call_host(k, s->rows * sizeof *c.held);
    c.out = call_host(k, l.ragged.total * l.d * sizeof *c.out);
    for (uint32_t step = 0; cache_step(k, s, &l, &c, step); step++) {
    }
    outputs_add_host(out, "out", c.out, l.ragged.total, l.d, l.key);
    out->o[0].dtype = s->dtype;
}

static void match_shape(struct kit *k, const struct shape *s) {
    // With fewer key heads than query heads, results are sums over the heads of a group. These sums
    // are larger than the result of one head, so rounding errors are larger, too.
    const struct bound bf16 = {bf16_bound.nmse, (s->kv_heads ? 2 : 1) * bf16_bound.max};
    const int host = (k->cpu1->flags & RLHF_COMPUTE_HOST_MEMORY) != 0;
    const struct bound bf16_bwd = {host ? bf16_bwd_nmse : bf16.nmse, bf16.max};
    check_match(k, attention, s, s->rows, f32_bound, bf16);
    check_match(k, attention_bwd, s, s->rows, f32_bound, bf16_bwd);
    if (s->causal) check_match(k, cached, s, s->rows, f32_bound, bf16);
}

static void match(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
        match_shape(*state, &shapes[i]);
}

static void rows(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->cpu1, k->cpu2, k->ref};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            if (backends[b] == k->ref && i != 0) continue;
            check_rows(backends[b], attention, &shapes[i], shapes[i].rows);
            check_rows(backends[b], attention_bwd, &shapes[i], shapes[i].rows);
        }
    }
}

// Asserts that output 0 of two ops has the same bits.
static void same_output(rlhf_compute *c, op_fn one, const void *s, uint32_t rows, op_fn two,
                        const void *t, uint32_t rows2) {
    struct outputs x, y;
    op_run(c, one, s, rows, &x);
    op_run(c, two, t, rows2, &y);
    const uint64_t n = x.o[0].n * x.o[0].width;
    uint64_t bad = 0;
    assert_true(n > 0 && n == y.o[0].n * y.o[0].width);
    for (uint64_t j = 0; j < n; j++)
        bad += x.o[0].v[j] != y.o[0].v[j];
    if (bad)
        fail_msg("%s on %s: %llu of %llu elements are not those of %s", y.label, c->name,
                 (unsigned long long)bad, (unsigned long long)n, x.label);
    outputs_finish(&x);
    outputs_finish(&y);
}

// Decoding one token at a time from a cache gives the same bits as the forward pass in training.
static void cache_equals_training(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->cpu1, k->cpu2, k->ref};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++)
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++)
            if (shapes[i].causal)
                same_output(backends[b], attention, &shapes[i], shapes[i].rows, cached, &shapes[i],
                            shapes[i].rows);
}

static void threads(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_threads(*state, attention, &shapes[i], shapes[i].rows);
        check_threads(*state, attention_bwd, &shapes[i], shapes[i].rows);
        if (shapes[i].causal) check_threads(*state, cached, &shapes[i], shapes[i].rows);
    }
}

// ---- shapes that a backend may refuse ----

// Returns 1 if the backend supports the shape. Otherwise asserts that both ops refuse it with an
// error text that names the unsupported property, and returns 0.
static int takes(rlhf_compute *c, const struct shape *s) {
    const uint32_t first = 0;
    struct call k = {.c = c, .rows = &first, .n_rows = 1};
    const struct layout l = make_layout(&k, s);
    rlhf_dev x = call_zeros(&k, l.ragged.total * l.stride, RLHF_F32), y = x;
    const rlhf_status st = c->attention(c->ctx, &l.attn, &l.ragged, y, NULL, l.q, l.k, l.v);
    rlhf_call call = {.size = sizeof call, .op = RLHF_COMPUTE_OP(attention), .attn = &l.attn};
    assert_int_equal(c->supports(c->ctx, &call), st);
    call.op = RLHF_COMPUTE_OP(attention_bwd);
    assert_int_equal(c->supports(c->ctx, &call), st);
    if (st < 0) {
        const char *what = "head_dim";
        assert_int_equal(st, RLHF_E_UNSUPPORTED);
        assert_non_null(strstr(kit_said(c), what));
        assert_int_equal(
            c->attention_bwd(c->ctx, &l.attn, &l.ragged, x, x, x, y, y, y, l.q, l.k, l.v),
            RLHF_E_UNSUPPORTED);
        assert_non_null(strstr(kit_said(c), what));
    }
    call_finish(&k);
    return st == RLHF_OK;
}

// Makes all checks of each shape that the backend supports.
static void check_shapes(struct kit *k, const struct shape *shape, size_t n) {
    for (const struct shape *s = shape; s < shape + n; s++) {
        if (!takes(k->cpu1, s)) continue;
        match_shape(k, s);
        check_rows(k->cpu1, attention, s, s->rows);
        check_rows(k->cpu1, attention_bwd, s, s->rows);
        check_threads(k, attention, s, s->rows);
        check_threads(k, attention_bwd, s, s->rows);
        if (s->causal) same_output(k->cpu1, attention, s, s->rows, cached, s, s->rows);
        if (s->causal) same_output(k->ref, attention, s, s->rows, cached, s, s->rows);
    }
}

static void odd_widths(void **state) { check_shapes(*state, others, CHECK_COUNT(others)); }
static void wide_heads(void **state) { check_shapes(*state, wide, CHECK_COUNT(wide)); }
static void windows_and_caps(void **state) { check_shapes(*state, limited, CHECK_COUNT(limited)); }

// A window that is at least as long as every row gives the bits of no window, in all outputs.
static void long_windows(void **state) {
    struct kit *k = *state;
    static const op_fn ops[] = {attention, attention_bwd, cached};
    rlhf_compute *backends[] = {k->cpu1, k->ref};
    for (size_t i = 0; i < 2 * CHECK_COUNT(limited); i++) {
        rlhf_compute *c = backends[i % 2];
        struct shape without = limited[i / 2], with;
        if (!without.causal) continue;
        without.window = 0;
        with = without;
        with.window = 70;
        for (size_t o = 0; o < CHECK_COUNT(ops); o++)
            same_output(c, ops[o], &without, without.rows, ops[o], &with, with.rows);
    }
}

// If rows are not aligned to 16 bytes, the bits are still those of aligned rows.
static void strides(void **state) {
    struct kit *k = *state;
    static const struct shape even[] = {{4, 2, 24, 1, RLHF_BF16, 0, 0, 0, 0},
                                        {4, 2, 24, 1, RLHF_F32, 0, 0, 0, 0}};
    for (size_t i = 0; i < CHECK_COUNT(even); i++) {
        struct shape odd = even[i];
        odd.pad = 1;
        same_output(k->cpu1, attention, &even[i], even[i].rows, attention, &odd, odd.rows);
    }
}

// ---- grouped heads against the same heads expanded ----

// Repeats every head of k and v for each query head that reads it. Returns l with the copies.
static struct layout write_out(struct call *k, const struct shape *s, const struct layout *from) {
    struct layout l = *from;
    const uint64_t total = l.ragged.total, hd = (uint64_t)s->head_dim;
    const uint64_t group = (uint64_t)(s->heads / s->kv_heads);
    float *x = call_host(k, total * l.stride * sizeof *x);
    float *y = call_host(k, total * 3 * l.d * sizeof *y);
    kit_read(k->c, x, l.q, total * l.stride, s->dtype);
    for (uint64_t i = 0; i < total * 3 * l.d; i++) {
        const uint64_t t = i / (3 * l.d), col = i % (3 * l.d), h = col % l.d / hd;
        const uint64_t src =
            col < l.d ? col : l.d + (col / l.d - 1) * l.kd + h / group * hd + col % hd;
        y[i] = x[t * l.stride + src];
    }
    l.q = call_floats(k, y, total * 3 * l.d, s->dtype);
    l.k = rlhf_dev_at(l.q, l.d * rlhf_dtype_size(s->dtype));
    l.v = rlhf_dev_at(l.k, l.d * rlhf_dtype_size(s->dtype));
    l.kd = l.d;
    l.stride = 3 * l.d;
    l.attn.q_stride = l.attn.kv_stride = (int64_t)l.stride;
    l.attn.kv_heads = 0;
    return l;
}

// Copies `out` and [dq dk dv] of a layout into host memory of the call.
static float *run_both(struct call *k, const struct shape *s, const struct layout *l,
                       float **grad) {
    const uint64_t total = l->ragged.total, size = rlhf_dtype_size(s->dtype);
    rlhf_dev y = call_zeros(k, total * l->d, s->dtype),
             dqkv = call_zeros(k, total * l->stride, s->dtype);
    rlhf_dev lse = call_zeros(k, total * (uint64_t)s->heads, RLHF_F32);
    rlhf_dev dy = call_floats(k, call_normal(k, 2, total * l->d, 1.0), total * l->d, s->dtype);
    float *out = call_host(k, total * l->d * sizeof *out);
    *grad = call_host(k, total * l->stride * sizeof **grad);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &l->attn, &l->ragged, y, lse, l->q, l->k, l->v));
    KIT_OK(k->c, k->c->attention_bwd(
                     k->c->ctx, &l->attn, &l->ragged, dqkv, rlhf_dev_at(dqkv, l->d * size),
                     rlhf_dev_at(dqkv, (l->d + l->kd) * size), dy, y, lse, l->q, l->k, l->v));
    kit_read(k->c, out, y, total * l->d, s->dtype);
    kit_read(k->c, *grad, dqkv, total * l->stride, s->dtype);
    return out;
}

// dk and dv of a group are sums over the group's heads, so they are compared with the sums of the
// expanded heads' dk and dv. The bound is relative to the sum of the magnitudes. It allows for
// another order of f32 sums and for rounding each expanded dk and dv to bf16.
static void check_sums(const struct shape *s, const struct layout *l, const struct layout *w,
                       const float *dl, const float *dw) {
    const uint64_t total = l->ragged.total, hd = (uint64_t)s->head_dim;
    const uint64_t group = (uint64_t)(s->heads / s->kv_heads);
    const double bound = s->dtype == RLHF_BF16 ? 8e-3 : 1e-6;
    for (uint64_t i = 0; i < total * 2 * l->kd; i++) {
        const uint64_t t = i / (2 * l->kd), part = i % (2 * l->kd) / l->kd, col = i % l->kd;
        double sum = 0.0, size = 1e-3;
        for (uint64_t q = col / hd * group; q < (col / hd + 1) * group; q++) {
            const double one = (double)dw[t * w->stride + (1 + part) * l->d + q * hd + col % hd];
            sum += one;
            size += fabs(one);
        }
        const double got = (double)dl[t * l->stride + l->d + i % (2 * l->kd)];
        if (!(fabs(got - sum) <= bound * size))
            fail_msg("dk, dv: %.9g, heads written out %.9g", got, sum);
    }
}

// Asserts that the forward results and dq have the same bits.
static void grouped_equals_written_out(void **state) {
    struct kit *kit = *state;
    static const uint32_t rows[] = {0, 1, 2, 5};
    static const struct shape grouped[] = {{4, 6, 8, 1, RLHF_F32, 2, 0, 0, 0},
                                           {4, 7, 16, 1, RLHF_F32, 1, 0, 0, 0},
                                           {4, 14, 16, 1, RLHF_BF16, 2, 0, 0, 0},
                                           {4, 4, 24, 0, RLHF_BF16, 2, 0, 0, 0}};
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t n = 0; n < CHECK_COUNT(backends) * CHECK_COUNT(grouped); n++) {
        const struct shape *s = &grouped[n % CHECK_COUNT(grouped)];
        struct call k = {.c = backends[n / CHECK_COUNT(grouped)], .rows = rows, .n_rows = 4};
        const struct layout l = make_layout(&k, s), w = write_out(&k, s, &l);
        float *dl, *dw;
        const float *yl = run_both(&k, s, &l, &dl), *yw = run_both(&k, s, &w, &dw);
        for (uint64_t i = 0; i < l.ragged.total * l.d; i++) {
            assert_true(yl[i] == yw[i] && isfinite(yl[i]) && yl[i] != 0.0f);
            assert_true(dl[i / l.d * l.stride + i % l.d] == dw[i / l.d * w.stride + i % l.d]);
        }
        check_sums(s, &l, &w, dl, dw);
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(match),
                                       cmocka_unit_test(rows),
                                       cmocka_unit_test(cache_equals_training),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(odd_widths),
                                       cmocka_unit_test(wide_heads),
                                       cmocka_unit_test(windows_and_caps),
                                       cmocka_unit_test(long_windows),
                                       cmocka_unit_test(strides),
                                       cmocka_unit_test(grouped_equals_written_out)};
    return cmocka_run_group_tests_name("kernels: attention", tests, kit_setup, kit_teardown);
}
