// row_delta.c: the gated delta rule over ragged rows, forward and backward. One thread processes a
// head in all rows that depend on each other, in order.
#include "delta_layout.h"
#include "machine/split.h"
#include "machine/table.h"
#include "states.h"

#include <string.h>

enum { DIM_MAX = 512, TILE = 32, COLUMNS_MOST = 64 };

// Backward adds the gradients of a_log and dt_bias in at most this many parts of consecutive rows,
// and then the parts in order. So the order depends only on the number of rows.
enum { PARTS = 16 };

static rlhf_status read_delta(struct rlhf__cpu *cpu, const char *op, rlhf_delta *d,
                              const rlhf_delta *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, d, sizeof *d, from, RLHF_SIZE_TO(rlhf_delta, dt_bias)));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, op, d->dtype));
    if (d->heads < 1 || d->key_heads < 1 || d->heads % d->key_heads)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: key_heads is %d, must divide heads (%d)",
                              op, d->key_heads, d->heads);
    if (d->key_dim < 1 || d->value_dim < 1 || d->key_dim > DIM_MAX || d->value_dim > DIM_MAX)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "%s: key_dim is %d and value_dim %d, supported are 1 to %d; the "
                              "backend 'reference' is slow but supports every width",
                              op, d->key_dim, d->value_dim, DIM_MAX);
    const int64_t out = (int64_t)d->heads * d->value_dim;
    if (d->x_stride < 2 * (int64_t)d->key_heads * d->key_dim + out || d->gate_stride < d->heads ||
        d->out_stride < out)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: %d heads (%d of keys) of %d and %d do not fit the strides %lld, "
                              "%lld (gates) and %lld (out)",
                              op, d->heads, d->key_heads, d->key_dim, d->value_dim,
                              (long long)d->x_stride, (long long)d->gate_stride,
                              (long long)d->out_stride);
    return RLHF_OK;
}

static size_t state_floats(const rlhf_delta *d) {
    return (size_t)d->key_dim * (size_t)d->value_dim;
}

static size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

size_t rlhf__delta_scratch(int32_t key_dim, int32_t value_dim) {
    return 2 * TILE * (up((size_t)key_dim, C) + 1) +
           (size_t)key_dim * up((size_t)value_dim, COLUMNS_MOST);
}

size_t rlhf__delta_scratch_bwd(uint32_t n, int32_t key_dim, int32_t value_dim) {
    struct work w;
    return rlhf__delta_lay_out(&w, NULL, n, key_dim, value_dim);
}

// The arguments of a call, and the scratch memory of the threads.
struct delta {
    struct rlhf__cpu *cpu;
    const rlhf_delta *d;
    const struct rlhf__states *s;
    const char *x, *beta, *alpha, *dout;
    char *out, *dx, *dbeta, *dalpha;
    float *sums; // backward: [PARTS, heads, 2]
    float *ws;
    size_t stride, size; // floats of scratch memory of a thread; bytes of an element
    size_t part;         // backward: rows of a part
};

// The item of value head h in row i. The pointers into outputs are set by the callers.
static struct rlhf__delta_item item_of(const struct delta *c, size_t i, size_t h) {
    const rlhf_delta *d = c->d;
    const size_t t0 = rlhf__states_first(c->s, i), kd = (size_t)d->key_dim;
    const size_t keys = (size_t)d->key_heads, group = (size_t)d->heads / keys;
    const size_t row = t0 * (size_t)d->x_stride, gate = (t0 * (size_t)d->gate_stride + h) * c->size;
    return (struct rlhf__delta_item){
        .q = c->x + (row + h / group * kd) * c->size,
        .k = c->x + (row + (keys + h / group) * kd) * c->size,
        .v = c->x + (row + 2 * keys * kd + h * (size_t)d->value_dim) * c->size,
        .beta = c->beta + gate,
        .alpha = c->alpha + gate,
        .x_stride = d->x_stride,
        .gate_stride = d->gate_stride,
        .out_stride = d->out_stride,
        .n = rlhf__states_tokens(c->s, i),
        .key_dim = d->key_dim,
        .value_dim = d->value_dim,
        .bf16 = d->dtype == RLHF_BF16,
        .scale = (float)d->scale,
        .eps = (float)d->eps,
        .a_log = rlhf__cpu_f32(d->a_log)[h],
        .dt_bias = rlhf__cpu_f32(d->dt_bias)[h],
    };
}

// Value head h of the rows i0 .. i1-1. In the training layout, row i0 is the one that the others
// share; `prefix` has room for its last state.
static void forward_rows(const struct delta *c, size_t i0, size_t i1, size_t h, float *scratch,
                         float *prefix) {
    const size_t state = h * state_floats(c->d);
    for (size_t i = i0; i < i1; i++) {
        struct rlhf__delta_item it = item_of(c, i, h);
        float *from = rlhf__states_slot(c->s, c->s->from, i);
        float *to = rlhf__states_slot(c->s, c->s->to, i);
        const size_t out = rlhf__states_first(c->s, i) * (size_t)c->d->out_stride;
        it.out = c->out + (out + h * (size_t)c->d->value_dim) * c->size;
        it.from = from ? from + state : NULL;
        it.to = to ? to + state : NULL;
        if (rlhf__states_shares(c->s, i)) it.from = prefix;
        if (!c->s->from && i == i0 && i1 > i0 + 1) it.to = prefix;
        it.scratch = scratch;
        c->cpu->hot.delta(&it);
    }
}

static void forward_piece(const void *job, int64_t n, int own) {
    const struct delta *c = job;
    const size_t heads = (size_t)c->d->heads, i = (size_t)n / heads, h = (size_t)n % heads;
    float *scratch = c->ws + (size_t)own * c->stride;
    float *prefix = scratch + rlhf__delta_scratch(c->d->key_dim, c->d->value_dim);
    if (c->s->from)
        forward_rows(c, 0, c->s->n, h, scratch, prefix);
    else if (!rlhf__states_shares(c->s, i))
        forward_rows(c, i, rlhf__states_next(c->s, i), h, scratch, prefix);
}

static size_t forward_floats(const rlhf_delta *d) {
    return up(rlhf__delta_scratch(d->key_dim, d->value_dim) + state_floats(d), 64) + 64;
}

static rlhf_status delta(void *ctx, const rlhf_delta *from, const rlhf_ragged *rows,
                         const rlhf_states *states, rlhf_dev out, rlhf_dev x, rlhf_dev beta,
                         rlhf_dev alpha) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_delta d;
    struct rlhf__states s;
    void *ws = NULL;
    RLHF_TRY(read_delta(cpu, "delta", &d, from));
    RLHF_TRY(rlhf__states_read(cpu, "delta", &s, rows, states,
                               (uint64_t)d.heads * state_floats(&d) * sizeof(float)));
    const uint64_t bytes = (uint64_t)cpu->threads * forward_floats(&d) * sizeof(float);
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_STATE, bytes, &ws));
    const struct delta c = {.cpu = cpu,
                            .d = &d,
                            .s = &s,
                            .x = rlhf__cpu_mem(x),
                            .beta = rlhf__cpu_mem(beta),
                            .alpha = rlhf__cpu_mem(alpha),
                            .out = rlhf__cpu_mem(out),
                            .ws = ws,
                            .stride = forward_floats(&d),
                            .size = rlhf_dtype_size(d.dtype)};
    rlhf__split_deal(cpu, rlhf__split_threads(cpu, s.total * (uint64_t)d.heads * state_floats(&d)),
                     (s.from ? 1 : (int64_t)s.n) * d.heads, 1, forward_piece, &c);
    return RLHF_OK;
}

// ---- backward ----

// The scratch memory of a thread: the loop's, then dqk, the gradient of a state, and for each value
// head of the group the prefix's last state and the gradient of it.
struct room {
    float *loop, *dqk, *grad, *prefix, *shared;
};

static size_t padded(const rlhf_delta *d) {
    return up((size_t)d->key_dim, C) * up((size_t)d->value_dim, C);
}

// Returns the number of floats of a room; if p is not NULL, also sets the pointers.
static size_t make_room(struct room *m, float *p, const rlhf_delta *d, uint32_t max_q) {
    const size_t group = (size_t)(d->heads / d->key_heads);
    const size_t forward = rlhf__delta_scratch(d->key_dim, d->value_dim),
                 backward = rlhf__delta_scratch_bwd(max_q, d->key_dim, d->value_dim);
    const size_t sizes[] = {forward > backward ? forward : backward,
                            (size_t)max_q * 2 * up((size_t)d->key_dim, C), padded(d),
                            group * state_floats(d), group * padded(d)};
    float **to[] = {&m->loop, &m->dqk, &m->grad, &m->prefix, &m->shared};
    size_t at = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *to[i] = p ? p + at : NULL;
        at += up(sizes[i], C);
    }
    return up(at, 64) + 64;
}

static uint64_t sums_floats(const rlhf_delta *d) {
    return (uint64_t)PARTS * 2 * (uint64_t)d->heads;
}

static uint64_t backward_bytes(const struct rlhf__cpu *cpu, const rlhf_delta *d, uint32_t max_q) {
    struct room m;
    return ((uint64_t)cpu->threads * make_room(&m, NULL, d, max_q) + up(sums_floats(d), C)) *
           sizeof(float);
}

// Row i of the value heads that share key head kh. `shared` is set for a row that others share.
static void row_bwd(const struct delta *c, const struct room *m, size_t i, size_t kh, float *sums,
                    int shared) {
    const rlhf_delta *d = c->d;
    const size_t group = (size_t)(d->heads / d->key_heads), n = padded(d);
    const size_t t0 = rlhf__states_first(c->s, i);
    for (size_t j = 0; j < group; j++) {
        const size_t h = kh * group + j, gate = (t0 * (size_t)d->gate_stride + h) * c->size;
        struct rlhf__delta_item it = item_of(c, i, h);
        it.from = rlhf__states_shares(c->s, i) ? m->prefix + j * state_floats(d) : NULL;
        it.dq = c->dx + ((const char *)it.q - c->x);
        it.dk = c->dx + ((const char *)it.k - c->x);
        it.dv = c->dx + ((const char *)it.v - c->x);
        it.dbeta = c->dbeta + gate;
        it.dalpha = c->dalpha + gate;
        it.dout = c->dout + (t0 * (size_t)d->out_stride + h * (size_t)d->value_dim) * c->size;
        it.sums = sums + 2 * h;
        it.dqk = m->dqk;
        it.scratch = m->loop;
        it.grad = shared ? m->shared + j * n : m->grad;
        it.first = j == 0;
        it.last = j + 1 == group;
        if (!shared) memset(m->grad, 0, n * sizeof *m->grad);
        c->cpu->hot.delta_bwd(&it);
        if (it.from) c->cpu->hot.add(m->shared + j * n, m->grad, 0, n);
    }
}

// Row i0 and the rows up to i1-1, which share it.
static void family_bwd(const struct delta *c, const struct room *m, size_t i0, size_t i1, size_t kh,
                       float *sums) {
    const size_t group = (size_t)(c->d->heads / c->d->key_heads);
    if (i1 == i0 + 1) {
        row_bwd(c, m, i0, kh, sums, 0);
        return;
    }
    memset(m->shared, 0, group * padded(c->d) * sizeof *m->shared);
    for (size_t j = 0; j < group; j++) {
        struct rlhf__delta_item it = item_of(c, i0, kh * group + j);
        it.to = m->prefix + j * state_floats(c->d);
        it.scratch = m->loop;
        c->cpu->hot.delta(&it);
    }
    for (size_t i = i0 + 1; i < i1; i++)
        row_bwd(c, m, i, kh, sums, 0);
    row_bwd(c, m, i0, kh, sums, 1);
}

static void backward_piece(const void *job, int64_t n, int own) {
    const struct delta *c = job;
    const size_t keys = (size_t)c->d->key_heads, part = (size_t)n / keys, kh = (size_t)n % keys;
    float *sums = c->sums + part * 2 * (size_t)c->d->heads;
    struct room m;
    make_room(&m, c->ws + (size_t)own * c->stride, c->d, c->s->max_q);
    const size_t end = (part + 1) * c->part < c->s->n ? (part + 1) * c->part : c->s->n;
    for (size_t i = part * c->part; i < end; i++)
        if (!rlhf__states_shares(c->s, i))
            family_bwd(c, &m, i, rlhf__states_next(c->s, i), kh, sums);
}

static rlhf_status delta_bwd(void *ctx, const rlhf_delta *from, const rlhf_ragged *rows,
                             rlhf_dev dx, rlhf_dev dbeta, rlhf_dev dalpha, rlhf_dev da_log,
                             rlhf_dev ddt_bias, rlhf_dev dout, rlhf_dev x, rlhf_dev beta,
                             rlhf_dev alpha) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_delta d;
    struct rlhf__states s;
    struct room m;
    void *ws = NULL;
    RLHF_TRY(read_delta(cpu, "delta_bwd", &d, from));
    RLHF_TRY(rlhf__states_read(cpu, "delta_bwd", &s, rows, NULL, 0));
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_STATE, backward_bytes(cpu, &d, s.max_q), &ws));
    if (!s.n) return RLHF_OK;
    const size_t heads = (size_t)d.heads, sums = up(sums_floats(&d), C);
    const struct delta c = {.cpu = cpu,
                            .d = &d,
                            .s = &s,
                            .x = rlhf__cpu_mem(x),
                            .beta = rlhf__cpu_mem(beta),
                            .alpha = rlhf__cpu_mem(alpha),
                            .dout = rlhf__cpu_mem(dout),
                            .dx = rlhf__cpu_mem(dx),
                            .dbeta = rlhf__cpu_mem(dbeta),
                            .dalpha = rlhf__cpu_mem(dalpha),
                            .sums = ws,
                            .ws = (float *)ws + sums,
                            .stride = make_room(&m, NULL, &d, s.max_q),
                            .size = rlhf_dtype_size(d.dtype),
                            .part = (s.n + PARTS - 1) / PARTS};
    const size_t parts = (s.n + c.part - 1) / c.part;
    memset(c.sums, 0, sums * sizeof *c.sums);
    rlhf__split_deal(cpu, rlhf__split_threads(cpu, s.total * heads * state_floats(&d)),
                     (int64_t)parts * d.key_heads, 1, backward_piece, &c);
    for (size_t p = 0; p < parts; p++)
        for (size_t h = 0; h < heads; h++) {
            if (da_log) rlhf__cpu_f32(da_log)[h] += c.sums[2 * (p * heads + h)];
            if (ddt_bias) rlhf__cpu_f32(ddt_bias)[h] += c.sums[2 * (p * heads + h) + 1];
        }
    return RLHF_OK;
}

void rlhf__cpu_needs_delta(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    rlhf_delta d;
    rlhf_ragged r;
    const int backward = c->op == RLHF_COMPUTE_OP(delta_bwd);
    if (!c->delta || !c->ragged || (!backward && c->op != RLHF_COMPUTE_OP(delta))) return;
    if (read_delta(cpu, "workspace_bytes", &d, c->delta) < 0) return;
    if (rlhf_copy_in(&r, sizeof r, c->ragged, RLHF_SIZE_TO(rlhf_ragged, prefix_len)) < 0) return;
    rlhf__cpu_need(n, RLHF__WS_STATE,
                   backward ? backward_bytes(cpu, &d, r.max_q)
                            : (uint64_t)cpu->threads * forward_floats(&d) * sizeof(float));
}

rlhf_status rlhf__cpu_supports_delta(struct rlhf__cpu *cpu, const char *op,
                                     const rlhf_delta *from) {
    rlhf_delta d;
    return read_delta(cpu, op, &d, from);
}

void rlhf__cpu_fill_delta(rlhf_compute *t) {
    t->delta = delta;
    t->delta_bwd = delta_bwd;
}
