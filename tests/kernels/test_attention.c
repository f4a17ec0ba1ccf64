// test_attention.c: attention and its derivative over ragged rows, cpu against reference; a query's
// bits depend neither on the other rows, nor on the layout (training or KV cache), nor on threads.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct shape {
    uint32_t rows; // ragged rows; row i has lens[i % 8] tokens
    int32_t heads, head_dim, causal, dtype;
};

static const uint32_t lens[] = {7, 1, 33, 64, 2, 17, 70, 31};

static const struct bound f32_bound = {1e-11, 5e-5}, bf16_bound = {2e-5, 5e-2};

static const struct shape shapes[] = {
    {8, 2, 16, 1, RLHF_F32},  {8, 4, 32, 1, RLHF_F32},  {5, 3, 64, 1, RLHF_F32},
    {8, 2, 16, 0, RLHF_F32},  {8, 4, 64, 0, RLHF_F32},  {3, 1, 24, 1, RLHF_F32},
    {8, 2, 16, 1, RLHF_BF16}, {8, 4, 32, 1, RLHF_BF16}, {5, 3, 64, 1, RLHF_BF16},
    {8, 2, 16, 0, RLHF_BF16}, {8, 4, 64, 0, RLHF_BF16}, {3, 1, 24, 1, RLHF_BF16},
};

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label, "%s %u rows, %d x %d %s %s", op, s->rows, s->heads,
             s->head_dim, s->causal ? "causal" : "full", s->dtype == RLHF_BF16 ? "bf16" : "f32");
}

// Ragged rows in the training layout, with a fused [q k v] buffer as GPT-2 makes it.
struct layout {
    rlhf_attn attn;
    rlhf_ragged ragged;
    uint64_t d;
    int32_t *offset;
    uint32_t *key; // [total] number of the token in the whole shape
    rlhf_dev q, k, v;
};

static uint32_t first_token(uint32_t row) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < row; i++)
        at += lens[i % CHECK_COUNT(lens)];
    return at;
}

static struct layout make_layout(struct call *k, const struct shape *s) {
    struct layout l = {.d = (uint64_t)s->heads * (uint64_t)s->head_dim};
    const uint64_t d = l.d;
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
    float *qkv = call_normal_rows(&tokens, 1, 3 * d, 1.0);
    l.q = call_floats(k, qkv, l.ragged.total * 3 * d, s->dtype);
    call_finish(&tokens);
    l.k = rlhf_dev_at(l.q, d * rlhf_dtype_size(s->dtype));
    l.v = rlhf_dev_at(l.k, d * rlhf_dtype_size(s->dtype));
    l.attn = (rlhf_attn){.size = sizeof(rlhf_attn),
                         .heads = s->heads,
                         .head_dim = s->head_dim,
                         .causal = s->causal,
                         .dtype = s->dtype,
                         .q_stride = (int64_t)(3 * d),
                         .kv_stride = (int64_t)(3 * d),
                         .out_stride = (int64_t)d,
                         .scale = 1.0 / sqrt((double)s->head_dim)};
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
    rlhf_dev dqkv = call_zeros(k, total * 3 * l.d, s->dtype);
    struct call tokens = {.rows = l.key, .n_rows = l.ragged.total};
    rlhf_dev dy = call_floats(k, call_normal_rows(&tokens, 2, l.d, 1.0), total * l.d, s->dtype);
    call_finish(&tokens);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &l.attn, &l.ragged, y, lse, l.q, l.k, l.v));
    KIT_OK(k->c,
           k->c->attention_bwd(k->c->ctx, &l.attn, &l.ragged, dqkv, rlhf_dev_at(dqkv, l.d * size),
                               rlhf_dev_at(dqkv, 2 * l.d * size), dy, y, lse, l.q, l.k, l.v));
    outputs_add(out, k, "dq dk dv", dqkv, s->dtype, total, 3 * l.d, l.key);
}

// The rows of `attention`, fed to a cache in pieces of different sizes (in step j row i appends
// piece(i, j) tokens), the rows being in other slots of the cache and in another order.
static uint32_t piece(uint32_t row, uint32_t step) {
    return step == 0 ? 1 + row * 11 % 30 : 1 + (row + step) % 4 * ((step & 3) == 1);
}

struct cache {
    rlhf_dev k, v;
    uint32_t len; // tokens a slot can hold
    uint32_t *held;
    double *out; // [tokens of the whole shape, d]
};

// Appends the next piece of every unfinished row. Returns 0 when there is none.
static int cache_step(struct call *all, const struct shape *s, const struct layout *l,
                      struct cache *c, uint32_t step) {
    struct call k = {.c = all->c};
    int32_t *meta = call_host(&k, 4ull * (s->rows + 1) * sizeof *meta);
    int32_t *offset = meta, *start = meta + s->rows + 1, *base = start + s->rows + 1;
    uint32_t *row = call_host(&k, s->rows * sizeof *row), *src;
    rlhf_ragged r = {.size = sizeof r};
    src = call_host(&k, l->ragged.total * sizeof *src);
    for (uint32_t j = 0; j < s->rows; j++) {
        const uint32_t i = s->rows - 1 - j, len = lens[i % CHECK_COUNT(lens)];
        uint32_t take = piece(i, step);
        if (take > len - c->held[i]) take = len - c->held[i];
        if (take == 0) continue;
        for (uint32_t t = 0; t < take; t++)
            src[r.total + t] = (uint32_t)l->offset[i] + c->held[i] + t;
        row[r.n] = i;
        start[r.n] = (int32_t)c->held[i];
        base[r.n] = (int32_t)((i + 1) % s->rows * c->len);
        offset[++r.n] = (int32_t)(r.total += take);
        if (take > r.max_q) r.max_q = take;
        if (take + c->held[i] > r.max_k) r.max_k = take + c->held[i];
        c->held[i] += take;
    }
    if (r.n) {
        r.offset = call_ints(&k, offset, r.n + 1ull);
        r.start = call_ints(&k, start, r.n);
        r.kv_base = call_ints(&k, base, r.n);
        struct call pick = {.rows = src, .n_rows = r.total};
        rlhf_dev q = call_floats(&k, call_normal_rows(&pick, 1, 3 * l->d, 1.0), r.total * 3 * l->d,
                                 s->dtype);
        call_finish(&pick);
        const uint64_t size = rlhf_dtype_size(s->dtype);
        rlhf_dev y = call_zeros(&k, r.total * l->d, s->dtype);
        rlhf_attn a = l->attn;
        a.kv_stride = (int64_t)l->d;
        KIT_OK(k.c, k.c->kv_store(k.c->ctx, c->k, c->v, rlhf_dev_at(q, l->d * size),
                                  rlhf_dev_at(q, 2 * l->d * size), (int64_t)(3 * l->d), &r,
                                  (int32_t)l->d, s->dtype));
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
    struct cache c = {.len = 72};
    label(out, "cached attention", s);
    c.k = call_zeros(k, s->rows * c.len * l.d, s->dtype);
    c.v = call_zeros(k, s->rows * c.len * l.d, s->dtype);
    c.held = call_host(k, s->rows * sizeof *c.held);
    c.out = call_host(k, l.ragged.total * l.d * sizeof *c.out);
    for (uint32_t step = 0; cache_step(k, s, &l, &c, step); step++) {
    }
    outputs_add_host(out, "out", c.out, l.ragged.total, l.d, l.key);
    out->o[0].dtype = s->dtype;
}

static void match(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_match(*state, attention, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
        check_match(*state, attention_bwd, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
        if (shapes[i].causal)
            check_match(*state, cached, &shapes[i], shapes[i].rows, f32_bound, bf16_bound);
    }
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

// One token at a time from a cache gives the bits of the training forward.
static void cache_equals_training(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->cpu1, k->cpu2, k->ref};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            if (!shapes[i].causal) continue;
            struct outputs whole, steps;
            op_run(backends[b], attention, &shapes[i], shapes[i].rows, &whole);
            op_run(backends[b], cached, &shapes[i], shapes[i].rows, &steps);
            const uint64_t n = whole.o[0].n * whole.o[0].width;
            uint64_t bad = 0;
            for (uint64_t j = 0; j < n; j++)
                bad += whole.o[0].v[j] != steps.o[0].v[j];
            if (bad)
                fail_msg("%s on %s: %llu of %llu elements are not those of the training layout",
                         steps.label, backends[b]->name, (unsigned long long)bad,
                         (unsigned long long)n);
            outputs_finish(&whole);
            outputs_finish(&steps);
        }
    }
}

static void threads(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_threads(*state, attention, &shapes[i], shapes[i].rows);
        check_threads(*state, attention_bwd, &shapes[i], shapes[i].rows);
        if (shapes[i].causal) check_threads(*state, cached, &shapes[i], shapes[i].rows);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(match), cmocka_unit_test(rows),
                                       cmocka_unit_test(cache_equals_training),
                                       cmocka_unit_test(threads)};
    return cmocka_run_group_tests_name("kernels: attention", tests, kit_setup, kit_teardown);
}
