// test_shared_prefix.c: compares attention over rows that share a prefix with attention over the
// expanded rows, and with the reference backend.
//
// A batch is a list of families. A family is a shared row and the rows that follow it, or a single
// row. In the compact batch, every prefix is stored once. A token's numbers come from its index in
// the compact batch, in every layout.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_IN_FAMILY = 18 }; // more than the cpu backend decodes at once

struct family {
    uint32_t prefix, rows, own[ROWS_IN_FAMILY]; // tokens; prefix 0: own[0] is a row alone
};

// Some prefixes are shorter than a vector, some are a multiple of every vector width, and some are
// between multiples. One prefix is longer than a chunk of queries.
static const struct family families[] = {
    {0, 1, {33}},        {5, 3, {7, 1, 20}},
    {16, 2, {3, 2}},     {37, 4, {31, 2, 70, 1}},
    {0, 1, {6}},         {1, 2, {1, 5}},
    {70, 1, {9}},        {128, 3, {48, 17, 4}},
    {66, 3, {2, 64, 3}}, {49, 18, {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1, 3}}};
enum { FAMILIES = CHECK_COUNT(families), ROWS_MOST = (ROWS_IN_FAMILY + 1) * FAMILIES };

enum { TOKENS_MOST = 1200 * FAMILIES }; // tokens of an expanded family, times the families

struct shape {
    int32_t heads, head_dim, causal, dtype;
    int32_t kv_heads; // 0: equal to heads
    int32_t window;   // 0: none
    double softcap;   // 0: none
};

static const struct shape shapes[] = {
    {2, 16, 1, RLHF_F32, 0, 0, 0},
    {3, 64, 1, RLHF_F32, 0, 0, 0},
    {1, 24, 1, RLHF_F32, 0, 0, 0},
    {2, 32, 0, RLHF_F32, 0, 0, 0},
    {2, 16, 1, RLHF_BF16, 0, 0, 0},
    {3, 64, 1, RLHF_BF16, 0, 0, 0},
    {1, 24, 1, RLHF_BF16, 0, 0, 0},
    {2, 64, 0, RLHF_BF16, 0, 0, 0},
    {6, 16, 1, RLHF_F32, 2, 0, 0},
    {7, 16, 1, RLHF_BF16, 1, 0, 0},
    {4, 24, 1, RLHF_BF16, 2, 0, 0},
    // Windows that end in a prefix or after it, and caps.
    {2, 16, 1, RLHF_F32, 0, 3, 0},
    {6, 32, 1, RLHF_F32, 2, 40, 1.5},
    {3, 64, 1, RLHF_F32, 0, 17, 0},
    {2, 16, 1, RLHF_BF16, 0, 2, 0},
    {7, 16, 1, RLHF_BF16, 1, 40, 0},
    {3, 64, 1, RLHF_BF16, 0, 64, 1.5},
    {1, 24, 1, RLHF_BF16, 0, 130, 0},
};

static const struct bound f32_bound = {1e-11, 5e-5}, bf16_bound = {2e-5, 1e-1};

// A batch in the training layout with a fused [q k v] buffer, compact or expanded.
struct batch {
    rlhf_attn attn;
    rlhf_ragged ragged;
    uint64_t d, kd; // columns of q, of k
    uint64_t width; // width of q, k and v
    int32_t start[ROWS_MOST], len[ROWS_MOST], prefix[ROWS_MOST], base[ROWS_MOST];
    int32_t offset[ROWS_MOST + 1];
    uint32_t *key;   // [total] index of the token in the compact batch of all families
    uint8_t *repeat; // 1 if the token already occurred in an earlier row
    rlhf_dev q, k, v;
};

static uint32_t first_token(uint32_t family) {
    uint32_t at = 0;
    for (uint32_t f = 0; f < family; f++) {
        at += families[f].prefix;
        for (uint32_t i = 0; i < families[f].rows; i++)
            at += families[f].own[i];
    }
    return at;
}

// True if token `key` belongs to a shared row.
static int is_prefix(uint32_t key) {
    uint32_t f = 0;
    while (key >= first_token(f + 1))
        f++;
    return key - first_token(f) < families[f].prefix;
}

// Appends n tokens, starting at token `key`, to the current row.
static void add_tokens(struct batch *b, uint32_t key, uint32_t n, int repeat) {
    assert_true(b->ragged.total + n <= TOKENS_MOST);
    for (uint32_t t = 0; t < n; t++, b->ragged.total++) {
        b->key[b->ragged.total] = key + t;
        b->repeat[b->ragged.total] = (uint8_t)repeat;
    }
}

// Ends the row. Its first `shared` keys are those from token `base` on.
static void end_row(struct batch *b, uint32_t shared, uint32_t base) {
    rlhf_ragged *r = &b->ragged;
    const uint32_t i = r->n++, nq = r->total - (uint32_t)b->offset[i];
    b->offset[r->n] = (int32_t)r->total;
    b->start[i] = b->prefix[i] = (int32_t)shared;
    b->base[i] = (int32_t)base;
    if (nq > r->max_q) r->max_q = nq;
    if (nq + shared > r->max_k) r->max_k = nq + shared;
}

static void add_family(struct batch *b, uint32_t f, int compact) {
    const struct family *fam = &families[f];
    uint32_t key = first_token(f) + fam->prefix;
    const uint32_t base = b->ragged.total;
    if (compact && fam->prefix) {
        add_tokens(b, first_token(f), fam->prefix, 0);
        end_row(b, 0, 0);
    }
    for (uint32_t i = 0; i < fam->rows; key += fam->own[i++]) {
        if (!compact) add_tokens(b, first_token(f), fam->prefix, i > 0);
        add_tokens(b, key, fam->own[i], 0);
        end_row(b, compact ? fam->prefix : 0, compact && fam->prefix ? base : 0);
    }
}

// Makes the batch of the families k->rows.
static struct batch *make_batch(struct call *k, const struct shape *s, int compact) {
    struct batch *b = call_host(k, sizeof *b);
    const uint64_t d = b->d = (uint64_t)s->heads * (uint64_t)s->head_dim;
    const uint64_t kd = b->kd =
        (uint64_t)(s->kv_heads ? s->kv_heads : s->heads) * (uint64_t)s->head_dim;
    const uint64_t width = b->width = d + 2 * kd;
    b->key = call_host(k, TOKENS_MOST * sizeof *b->key);
    b->repeat = call_host(k, TOKENS_MOST);
    for (uint32_t i = 0; i < k->n_rows; i++)
        add_family(b, k->rows[i], compact);
    rlhf_ragged *r = &b->ragged;
    r->size = sizeof *r;
    r->offset = r->kv_base = call_ints(k, b->offset, r->n + 1ull);
    r->start = call_ints(k, b->start, r->n);
    if (compact) {
        r->prefix_base = call_ints(k, b->base, r->n);
        r->prefix_len = call_ints(k, b->prefix, r->n);
    }
    struct call tokens = {.rows = b->key, .n_rows = r->total};
    b->q = call_floats(k, call_normal_rows(&tokens, 1, width, 1.0), r->total * width, s->dtype);
    call_finish(&tokens);
    b->k = rlhf_dev_at(b->q, d * rlhf_dtype_size(s->dtype));
    b->v = rlhf_dev_at(b->k, kd * rlhf_dtype_size(s->dtype));
    b->attn = (rlhf_attn){.size = sizeof(rlhf_attn),
                          .heads = s->heads,
                          .head_dim = s->head_dim,
                          .causal = s->causal,
                          .dtype = s->dtype,
                          .q_stride = (int64_t)width,
                          .kv_stride = (int64_t)width,
                          .out_stride = (int64_t)d,
                          .scale = 1.0 / sqrt((double)s->head_dim),
                          .kv_heads = s->kv_heads,
                          .window = s->window,
                          .softcap = s->softcap};
    return b;
}

static void label(struct outputs *out, const char *op, const struct shape *s) {
    snprintf(out->label, sizeof out->label, "%s %d (%d) x %d %s %s, window %d, cap %g", op,
             s->heads, s->kv_heads, s->head_dim, s->causal ? "causal" : "full",
             s->dtype == RLHF_BF16 ? "bf16" : "f32", s->window, s->softcap);
}

static void forward(struct call *k, const struct shape *s, struct outputs *out, int compact) {
    const struct batch *b = make_batch(k, s, compact);
    const uint64_t total = b->ragged.total, heads = (uint64_t)s->heads;
    label(out, compact ? "shared attention" : "written-out attention", s);
    rlhf_dev y = call_zeros(k, total * b->d, s->dtype),
             lse = call_zeros(k, total * heads, RLHF_F32);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &b->attn, &b->ragged, y, lse, b->q, b->k, b->v));
    outputs_add(out, k, "out", y, s->dtype, total, b->d, b->key);
    outputs_add(out, k, "lse", lse, RLHF_F32, total, heads, b->key);
}

static void forward_shared(struct call *k, const void *s, struct outputs *out) {
    forward(k, s, out, 1);
}

static void forward_written(struct call *k, const void *s, struct outputs *out) {
    forward(k, s, out, 0);
}

// Adds d columns of the [q k v] gradient, starting at column `from`, as a separate output.
static void add_block(struct outputs *out, struct call *k, const char *name, const struct batch *b,
                      rlhf_dev dqkv, int32_t dtype, uint64_t from, uint64_t d) {
    const uint64_t n = b->ragged.total;
    float *f = call_host(k, n * b->width * sizeof *f);
    double *v = call_host(k, n * d * sizeof *v);
    kit_read(k->c, f, dqkv, n * b->width, dtype);
    for (uint64_t i = 0; i < n * d; i++)
        v[i] = (double)f[i / d * b->width + from + i % d];
    outputs_add_host(out, name, v, n, d, b->key);
    out->o[out->n - 1].dtype = dtype;
}

// In the expanded batch, the output gradient is set to 0 for all copies of a token but the first.
// So the sum of the gradients over the copies is the token's gradient.
static void backward(struct call *k, const struct shape *s, struct outputs *out, int compact) {
    const struct batch *b = make_batch(k, s, compact);
    const uint64_t total = b->ragged.total, heads = (uint64_t)s->heads;
    const uint64_t size = rlhf_dtype_size(s->dtype);
    label(out, compact ? "shared attention_bwd" : "written-out attention_bwd", s);
    rlhf_dev y = call_zeros(k, total * b->d, s->dtype),
             lse = call_zeros(k, total * heads, RLHF_F32);
    rlhf_dev dqkv = call_zeros(k, total * b->width, s->dtype);
    struct call tokens = {.rows = b->key, .n_rows = b->ragged.total};
    float *dy = call_normal_rows(&tokens, 2, b->d, 1.0);
    for (uint64_t i = 0; i < total * b->d; i++)
        if (b->repeat[i / b->d]) dy[i] = 0.0f;
    rlhf_dev dout = call_floats(k, dy, total * b->d, s->dtype);
    call_finish(&tokens);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &b->attn, &b->ragged, y, lse, b->q, b->k, b->v));
    KIT_OK(k->c, k->c->attention_bwd(
                     k->c->ctx, &b->attn, &b->ragged, dqkv, rlhf_dev_at(dqkv, b->d * size),
                     rlhf_dev_at(dqkv, (b->d + b->kd) * size), dout, y, lse, b->q, b->k, b->v));
    add_block(out, k, "dq", b, dqkv, s->dtype, 0, b->d);
    add_block(out, k, "dk", b, dqkv, s->dtype, b->d, b->kd);
    add_block(out, k, "dv", b, dqkv, s->dtype, b->d + b->kd, b->kd);
}

static void backward_shared(struct call *k, const void *s, struct outputs *out) {
    backward(k, s, out, 1);
}

static void backward_written(struct call *k, const void *s, struct outputs *out) {
    backward(k, s, out, 0);
}

// ---- a cache ----

// The rows of the compact batch are fed to a cache in pieces. Shared rows come whole in the first
// call. The other rows come in reverse order, 1 to 3 or many tokens per call. Their slots are in
// another order.
struct cache {
    rlhf_dev k, v;
    uint32_t held[ROWS_MOST];
    int32_t slot[ROWS_MOST]; // cache row of the row's first token
    double *out;             // [total, d]
};

static int is_shared(const struct batch *b, uint32_t row) {
    return row + 1 < b->ragged.n && b->prefix[row] == 0 && b->prefix[row + 1] > 0;
}

// Returns the row whose keys are the prefix of `row`.
static uint32_t shared_row(const struct batch *b, uint32_t row) {
    while (b->prefix[row])
        row--;
    return row;
}

// Returns how many tokens `row` appends in a step.
static uint32_t piece(const struct batch *b, const struct cache *c, uint32_t row, uint32_t step) {
    static const uint32_t sizes[] = {1, 3, 2, 1, 6, 1, 2, 40};
    const uint32_t left = (uint32_t)(b->offset[row + 1] - b->offset[row]) - c->held[row];
    if (is_shared(b, row)) return left;
    if (step == 0) return 0;
    const uint32_t want = step < 4 ? 1 : sizes[(step + row / 4) % CHECK_COUNT(sizes)];
    return want < left ? want : left;
}

// Row arrays of one step, and the compact token index of each query.
struct step {
    rlhf_ragged r;
    int32_t offset[ROWS_MOST + 1], start[ROWS_MOST], base[ROWS_MOST];
    int32_t prefix_base[ROWS_MOST], prefix_len[ROWS_MOST];
    uint32_t *token;
};

static void add_piece(struct step *s, const struct batch *b, struct cache *c, uint32_t row,
                      uint32_t take) {
    if (take == 0) return;
    for (uint32_t t = 0; t < take; t++)
        s->token[s->r.total + t] = (uint32_t)b->offset[row] + c->held[row] + t;
    const uint32_t i = s->r.n, before = (uint32_t)b->prefix[row] + c->held[row];
    s->start[i] = (int32_t)before;
    s->base[i] = c->slot[row];
    s->prefix_len[i] = b->prefix[row];
    s->prefix_base[i] = b->prefix[row] ? c->slot[shared_row(b, row)] : 0;
    s->offset[++s->r.n] = (int32_t)(s->r.total += take);
    if (take > s->r.max_q) s->r.max_q = take;
    if (take + before > s->r.max_k) s->r.max_k = take + before;
    c->held[row] += take;
}

// Stores one step's tokens and attends over them.
static void run_step(struct call *k, struct step *s, const struct shape *shape,
                     const struct batch *b, struct cache *c) {
    const uint64_t d = b->d, kd = b->kd, width = b->width, n = s->r.total;
    const uint64_t size = rlhf_dtype_size(shape->dtype);
    s->r.size = sizeof s->r;
    s->r.offset = call_ints(k, s->offset, s->r.n + 1ull);
    s->r.start = call_ints(k, s->start, s->r.n);
    s->r.kv_base = call_ints(k, s->base, s->r.n);
    s->r.prefix_base = call_ints(k, s->prefix_base, s->r.n);
    s->r.prefix_len = call_ints(k, s->prefix_len, s->r.n);
    uint32_t *key = call_host(k, n * sizeof *key);
    for (uint64_t t = 0; t < n; t++)
        key[t] = b->key[s->token[t]];
    struct call pick = {.rows = key, .n_rows = s->r.total};
    rlhf_dev q = call_floats(k, call_normal_rows(&pick, 1, width, 1.0), n * width, shape->dtype);
    call_finish(&pick);
    rlhf_dev y = call_zeros(k, n * d, shape->dtype);
    rlhf_attn a = b->attn;
    a.kv_stride = (int64_t)kd;
    KIT_OK(k->c, k->c->kv_store(k->c->ctx, c->k, c->v, rlhf_dev_at(q, d * size),
                                rlhf_dev_at(q, (d + kd) * size), (int64_t)width, &s->r, (int32_t)kd,
                                shape->dtype));
    KIT_OK(k->c, k->c->attention(k->c->ctx, &a, &s->r, y, NULL, q, c->k, c->v));
    float *f = call_host(k, n * d * sizeof *f);
    kit_read(k->c, f, y, n * d, shape->dtype);
    for (uint64_t i = 0; i < n * d; i++)
        c->out[s->token[i / d] * d + i % d] = (double)f[i];
}

static void cached(struct call *k, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    const struct batch *b = make_batch(k, s, 1);
    struct cache *c = call_host(k, sizeof *c);
    const uint32_t total = b->ragged.total, rows = b->ragged.n;
    label(out, "shared cache", s);
    c->k = call_zeros(k, (total + 2 * rows) * b->kd, s->dtype);
    c->v = call_zeros(k, (total + 2 * rows) * b->kd, s->dtype);
    c->out = call_host(k, total * b->d * sizeof *c->out);
    for (uint32_t i = 0, at = 1; i < rows; i++) { // gaps between slots, shared rows not in front
        const uint32_t row = (rows + rows / 2 - 1 - i) % rows;
        c->slot[row] = (int32_t)at;
        at += (uint32_t)(b->offset[row + 1] - b->offset[row]) + 1;
    }
    for (uint32_t step = 0, more = 1; more; step++) {
        struct call now = {.c = k->c};
        struct step *st = call_host(&now, sizeof *st);
        st->token = call_host(&now, total * sizeof *st->token);
        for (uint32_t i = 0; i < rows; i++)
            add_piece(st, b, c, rows - 1 - i, piece(b, c, rows - 1 - i, step));
        more = st->r.n > 0 || step == 0; // the first step has only shared rows
        if (st->r.n) run_step(&now, st, s, b, c);
        call_finish(&now);
    }
    outputs_add_host(out, "out", c->out, total, b->d, b->key);
    out->o[0].dtype = s->dtype;
}

// ---- tests ----

static int is_repeat(const struct outputs *written, uint64_t t) {
    const uint32_t *key = written->o[0].key;
    for (uint64_t i = 0; i < t; i++)
        if (key[i] == key[t]) return 1;
    return 0;
}

// Compares output number `o` of each token in the expanded batch with the output of the same token
// in the compact batch, bit for bit. `with_prefix` and `with_repeats` choose whether tokens of the
// prefix, and their repetitions, are compared, too.
static void same_bits(rlhf_compute *c, const struct outputs *shared, const struct outputs *written,
                      uint32_t o, int with_prefix, int with_repeats) {
    const struct output *x = &shared->o[o], *y = &written->o[o];
    uint64_t bad = 0, seen = 0;
    for (uint64_t t = 0; t < y->n; t++) {
        const uint32_t key = y->key[t];
        if (!with_prefix && is_prefix(key)) continue;
        if (!with_repeats && is_repeat(written, t)) continue;
        seen++;
        bad += memcmp(x->v + key * x->width, y->v + t * y->width, y->width * sizeof *y->v) != 0;
    }
    assert_true(seen > 0);
    if (bad)
        fail_msg("%s on %s, %s: %llu of %llu tokens have other bits than written out",
                 shared->label, c->name, x->name, (unsigned long long)bad,
                 (unsigned long long)seen);
}

// One CPU backend is enough: `threads` shows that the other one computes the same bits.
static void forward_equals_written_out(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->cpu2, k->ref};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            struct outputs shared, written;
            op_run(backends[b], forward_shared, &shapes[i], FAMILIES, &shared);
            op_run(backends[b], forward_written, &shapes[i], FAMILIES, &written);
            // If attention is not causal, the prefix in a full row also sees the tokens after it.
            // The prefix in a shared row does not see them.
            for (uint32_t o = 0; o < 2; o++)
                same_bits(backends[b], &shared, &written, o, shapes[i].causal, 1);
            outputs_finish(&shared);
            outputs_finish(&written);
        }
    }
}

static void cache_equals_written_out(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->cpu2, k->ref};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            if (!shapes[i].causal) continue;
            struct outputs shared, written;
            op_run(backends[b], cached, &shapes[i], FAMILIES, &shared);
            op_run(backends[b], forward_written, &shapes[i], FAMILIES, &written);
            same_bits(backends[b], &shared, &written, 0, 1, 1);
            outputs_finish(&shared);
            outputs_finish(&written);
        }
    }
}

// Compares the gradient of a shared token with the sum over the expanded rows that repeat it. With
// grouped heads, the sum has more terms.
static void close_sums(rlhf_compute *c, const struct outputs *shared, const struct outputs *written,
                       uint32_t o, int grouped) {
    const struct output *x = &shared->o[o], *y = &written->o[o];
    const uint64_t n = x->n * x->width;
    double *sum = calloc(n, sizeof *sum), err = 0.0, ref = 0.0;
    for (uint64_t i = 0; i < y->n * y->width; i++)
        sum[y->key[i / y->width] * y->width + i % y->width] += y->v[i];
    for (uint64_t i = 0; i < n; i++) {
        err += (x->v[i] - sum[i]) * (x->v[i] - sum[i]);
        ref += sum[i] * sum[i];
    }
    free(sum);
    const double rel = sqrt(err / ref), f32 = grouped ? 5e-7 : 2e-7;
    const double bound = x->dtype == RLHF_BF16 ? 4e-3 : f32;
    printf("  %s on %s, %s: relative difference %.1e\n", shared->label, c->name, x->name, rel);
    if (!(rel < bound)) fail_msg("more than %.1e", bound);
}

static void backward_equals_written_out(void **state) {
    struct kit *k = *state;
    rlhf_compute *backends[] = {k->cpu2, k->ref};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
            if (!shapes[i].causal) continue;
            struct outputs shared, written;
            op_run(backends[b], backward_shared, &shapes[i], FAMILIES, &shared);
            op_run(backends[b], backward_written, &shapes[i], FAMILIES, &written);
            same_bits(backends[b], &shared, &written, 0, 1, 0);
            same_bits(backends[b], &shared, &written, 1, 0, 1);
            same_bits(backends[b], &shared, &written, 2, 0, 1);
            for (uint32_t o = 0; o < 3; o++)
                close_sums(backends[b], &shared, &written, o, shapes[i].kv_heads != 0);
            outputs_finish(&shared);
            outputs_finish(&written);
        }
    }
}

static void match(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_match(*state, forward_shared, &shapes[i], FAMILIES, f32_bound, bf16_bound);
        check_match(*state, backward_shared, &shapes[i], FAMILIES, f32_bound, bf16_bound);
        if (shapes[i].causal)
            check_match(*state, cached, &shapes[i], FAMILIES, f32_bound, bf16_bound);
    }
}

// A family's bits do not depend on the other families of the call.
static void company(void **state) {
    struct kit *k = *state;
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_rows(k->cpu2, forward_shared, &shapes[i], FAMILIES);
        check_rows(k->cpu2, backward_shared, &shapes[i], FAMILIES);
        if (shapes[i].causal) check_rows(k->cpu2, cached, &shapes[i], FAMILIES);
    }
}

static void threads(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(shapes); i++) {
        check_threads(*state, forward_shared, &shapes[i], FAMILIES);
        check_threads(*state, backward_shared, &shapes[i], FAMILIES);
        if (shapes[i].causal) check_threads(*state, cached, &shapes[i], FAMILIES);
    }
}

// The guard mode of the reference backend: only the given arrays are accessed.
static void guarded(void **state) {
    struct kit *all = *state;
    struct kit k = {.cpu1 = all->ref, .cpu2 = kit_create(all->kernels_ref, 1, 1, 0)};
    check_threads(&k, forward_shared, &shapes[0], FAMILIES);
    check_threads(&k, backward_shared, &shapes[0], FAMILIES);
    check_threads(&k, cached, &shapes[0], FAMILIES);
    kit_destroy(k.cpu2);
}

// ---- bad arguments ----

struct bad {
    const char *what;
    int32_t start, base, prefix_base, prefix_len; // of the second row; the first row has 3 tokens
    rlhf_status attention, store, backward;       // kv_store reads no prefix
};

static const struct bad bads[] = {
    {"fine", 3, 3, 0, 3, RLHF_OK, RLHF_OK, RLHF_OK},
    {"a prefix longer than what lies before", 3, 3, 0, 4, RLHF_E_INVALID, RLHF_E_INVALID,
     RLHF_E_INVALID},
    {"a negative length", 3, 3, 0, -1, RLHF_E_INVALID, RLHF_E_INVALID, RLHF_E_INVALID},
    {"a negative place", 3, 3, -1, 3, RLHF_E_INVALID, RLHF_OK, RLHF_E_INVALID},
    {"too many keys", 6, 3, 0, 3, RLHF_E_INVALID, RLHF_E_INVALID, RLHF_E_INVALID},
    {"a part of a row", 2, 3, 0, 2, RLHF_OK, RLHF_OK, RLHF_E_UNSUPPORTED},
    {"the end of a row", 2, 3, 1, 2, RLHF_OK, RLHF_OK, RLHF_E_UNSUPPORTED},
    {"tokens of its own before", 4, 3, 0, 3, RLHF_OK, RLHF_OK, RLHF_E_UNSUPPORTED},
    {"keys elsewhere", 3, 2, 0, 3, RLHF_OK, RLHF_OK, RLHF_E_UNSUPPORTED},
};

// If device arrays contain errors, a backend may report them at once or when it is waited for.
static void expect(rlhf_compute *c, rlhf_status got, rlhf_status want, const char *what) {
    if (got == RLHF_OK) got = c->sync(c->ctx);
    if (got != want || (want < 0 && !*kit_said(c)))
        fail_msg("%s: %s gives %d (\"%s\"), expected %d", c->name, what, (int)got, kit_said(c),
                 (int)want);
}

static void bad_arguments(void **state) {
    struct kit *all = *state;
    rlhf_compute *backends[] = {all->ref, all->cpu1};
    const rlhf_attn a = {sizeof(rlhf_attn), 1, 0, 16, 1, RLHF_F32, 16, 16, 16, .scale = 0.25};
    for (size_t b = 0; b < 2; b++) {
        rlhf_compute *c = backends[b];
        for (size_t i = 0; i < CHECK_COUNT(bads); i++) {
            struct call k = {.c = c};
            const struct bad *bad = &bads[i];
            const int32_t offset[] = {0, 3, 5}, start[] = {0, bad->start}, base[] = {0, bad->base};
            const int32_t from[] = {0, bad->prefix_base}, len[] = {0, bad->prefix_len};
            rlhf_dev x[8];
            for (size_t j = 0; j < CHECK_COUNT(x); j++)
                x[j] = call_zeros(&k, 10 * 16, RLHF_F32);
            rlhf_ragged r = {sizeof r,
                             2,
                             5,
                             3,
                             7,
                             0,
                             call_ints(&k, offset, 3),
                             call_ints(&k, start, 2),
                             call_ints(&k, base, 2),
                             call_ints(&k, from, 2),
                             call_ints(&k, len, 2)};
            expect(c, c->attention(c->ctx, &a, &r, x[0], x[1], x[2], x[3], x[4]), bad->attention,
                   bad->what);
            expect(c, c->kv_store(c->ctx, x[0], x[1], x[2], x[3], 16, &r, 16, RLHF_F32), bad->store,
                   bad->what);
            expect(c,
                   c->attention_bwd(c->ctx, &a, &r, x[5], x[6], x[7], x[0], x[0], x[1], x[2], x[3],
                                    x[4]),
                   bad->backward, bad->what);
            r.prefix_len = NULL;
            expect(c, c->attention(c->ctx, &a, &r, x[0], x[1], x[2], x[3], x[4]), RLHF_E_INVALID,
                   "places without lengths");
            call_finish(&k);
        }
    }
}

// Rows may share only the last row without a prefix. These rows share an earlier row.
static void bad_order(void **state) {
    struct kit *all = *state;
    rlhf_compute *backends[] = {all->ref, all->cpu1};
    const rlhf_attn a = {sizeof(rlhf_attn), 1, 0, 16, 1, RLHF_F32, 16, 16, 16, .scale = 0.25};
    const int32_t offset[] = {0, 2, 4, 6}, start[] = {0, 0, 2}, from[] = {0, 0, 0},
                  len[] = {0, 0, 2};
    for (size_t b = 0; b < 2; b++) {
        rlhf_compute *c = backends[b];
        struct call k = {.c = c};
        rlhf_dev x[8];
        for (size_t j = 0; j < CHECK_COUNT(x); j++)
            x[j] = call_zeros(&k, 6 * 16, RLHF_F32);
        rlhf_ragged r = {sizeof r,
                         3,
                         6,
                         2,
                         4,
                         0,
                         call_ints(&k, offset, 4),
                         call_ints(&k, start, 3),
                         call_ints(&k, offset, 3),
                         call_ints(&k, from, 3),
                         call_ints(&k, len, 3)};
        expect(c, c->attention(c->ctx, &a, &r, x[0], x[1], x[2], x[3], x[4]), RLHF_OK, "forward");
        expect(
            c,
            c->attention_bwd(c->ctx, &a, &r, x[5], x[6], x[7], x[0], x[0], x[1], x[2], x[3], x[4]),
            RLHF_E_UNSUPPORTED, "a row between");
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward_equals_written_out),
                                       cmocka_unit_test(cache_equals_written_out),
                                       cmocka_unit_test(backward_equals_written_out),
                                       cmocka_unit_test(match),
                                       cmocka_unit_test(company),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(guarded),
                                       cmocka_unit_test(bad_arguments),
                                       cmocka_unit_test(bad_order)};
    return cmocka_run_group_tests_name("kernels: shared prefix", tests, kit_setup, kit_teardown);
}
