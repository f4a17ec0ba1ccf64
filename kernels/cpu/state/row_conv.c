// row_conv.c: causal convolution over ragged rows, forward and backward. The channels are divided
// into blocks; one thread processes a block in all rows, in order.
#include "machine/split.h"
#include "machine/table.h"
#include "row/row_act.h"
#include "states.h"

#include <string.h>

enum { BLOCK = RLHF__CONV_BLOCK, TAPS = RLHF__CONV_TAPS };

static rlhf_status read_conv(struct rlhf__cpu *cpu, const char *op, rlhf_conv *v,
                             const rlhf_conv *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, v, sizeof *v, from, RLHF_SIZE_TO(rlhf_conv, bias)));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, op, v->dtype));
    RLHF_TRY(rlhf__cpu_check_act(cpu, op, v->act, 1));
    if (v->taps < 2 || v->taps > TAPS)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED, "%s: taps is %d, allowed are 2 to %d", op,
                              v->taps, TAPS);
    if (v->channels < 1 || v->x_stride < v->channels || v->y_stride < v->channels)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: %d channels do not fit the strides %lld and %lld", op,
                              v->channels, (long long)v->x_stride, (long long)v->y_stride);
    return RLHF_OK;
}

// The arguments of a call.
struct conv {
    struct rlhf__cpu *cpu;
    const rlhf_conv *v;
    const struct rlhf__states *s;
    const char *x, *dy;
    char *y, *dx;
    float *dweight, *dbias, *ws;
    size_t size, stride; // bytes of an element; floats of scratch memory of a thread
};

// A block of channels, with its weights in the order of struct rlhf__conv_item.
struct block {
    size_t first, n;
    float weight[TAPS * BLOCK], bias[BLOCK];
};

static void read_block(const struct conv *c, struct block *b, size_t index) {
    const rlhf_conv *v = c->v;
    const size_t taps = (size_t)v->taps;
    b->first = index * BLOCK;
    b->n = rlhf__split_len((uint64_t)v->channels, BLOCK, index);
    memset(b->weight, 0, sizeof b->weight);
    memset(b->bias, 0, sizeof b->bias);
    const float *weight = rlhf__cpu_f32(v->weight) + b->first * taps;
    for (size_t i = 0; i < b->n; i++)
        for (size_t j = 0; j < taps; j++)
            b->weight[j * BLOCK + i] = weight[i * taps + j];
    if (v->bias) memcpy(b->bias, rlhf__cpu_f32(v->bias) + b->first, b->n * sizeof *b->bias);
}

// The item of row i. `head` is the row whose state the row continues in the training layout.
static struct rlhf__conv_item item_of(const struct conv *c, const struct block *b, size_t i,
                                      size_t head) {
    const rlhf_conv *v = c->v;
    const size_t t0 = rlhf__states_first(c->s, i), tail = (size_t)v->taps - 1;
    const char *state = rlhf__states_slot(c->s, c->s->from, i);
    struct rlhf__conv_item it = {
        .x = c->x + (t0 * (size_t)v->x_stride + b->first) * c->size,
        .weight = b->weight,
        .bias = b->bias,
        .x_stride = v->x_stride,
        .y_stride = v->y_stride,
        .n = rlhf__states_tokens(c->s, i),
        .channels = (uint32_t)b->n,
        .taps = v->taps,
        .act = v->act,
        .bf16 = v->dtype == RLHF_BF16,
    };
    const size_t end = rlhf__states_first(c->s, head) + rlhf__states_tokens(c->s, head);
    for (size_t j = 0; j < tail; j++) {
        if (state)
            it.before[j] = state + (j * (size_t)v->channels + b->first) * c->size;
        else if (rlhf__states_shares(c->s, i) && rlhf__states_tokens(c->s, head) + j >= tail)
            it.before[j] = c->x + ((end + j - tail) * (size_t)v->x_stride + b->first) * c->size;
    }
    return it;
}

// Stores the last tokens of the row. `to` may be the state that the row began with: a token moves
// to the front, and the tokens are moved in order.
static void store_state(const struct conv *c, const struct block *b,
                        const struct rlhf__conv_item *it, char *to) {
    const size_t tail = (size_t)c->v->taps - 1, bytes = b->n * c->size;
    for (size_t j = 0; j < tail; j++) {
        char *at = to + (j * (size_t)c->v->channels + b->first) * c->size;
        const size_t k = j + it->n; // counted from the first token before the row
        if (k >= tail)
            memcpy(at, (const char *)it->x + (k - tail) * (size_t)it->x_stride * c->size, bytes);
        else if (it->before[k])
            memmove(at, it->before[k], bytes);
        else
            memset(at, 0, bytes);
    }
}

static void forward_block(const void *job, int64_t index) {
    const struct conv *c = job;
    struct block b;
    size_t head = 0;
    read_block(c, &b, (size_t)index);
    for (size_t i = 0; i < c->s->n; i++) {
        if (!rlhf__states_shares(c->s, i)) head = i;
        struct rlhf__conv_item it = item_of(c, &b, i, head);
        const size_t t0 = rlhf__states_first(c->s, i);
        it.y = c->y + (t0 * (size_t)c->v->y_stride + b.first) * c->size;
        c->cpu->hot.conv(&it);
        char *to = rlhf__states_slot(c->s, c->s->to, i);
        if (to) store_state(c, &b, &it, to);
    }
}

static rlhf_status conv(void *ctx, const rlhf_conv *from, const rlhf_ragged *rows,
                        const rlhf_states *states, rlhf_dev y, rlhf_dev x) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_conv v;
    struct rlhf__states s;
    RLHF_TRY(read_conv(cpu, "conv", &v, from));
    const uint64_t channels = (uint64_t)v.channels, size = rlhf_dtype_size(v.dtype);
    RLHF_TRY(
        rlhf__states_read(cpu, "conv", &s, rows, states, (uint64_t)(v.taps - 1) * channels * size));
    const struct conv c = {
        .cpu = cpu, .v = &v, .s = &s, .x = rlhf__cpu_mem(x), .y = rlhf__cpu_mem(y), .size = size};
    rlhf__split_run(cpu, rlhf__split_threads(cpu, s.total * channels),
                    (int64_t)rlhf__split_count(channels, BLOCK), forward_block, &c);
    return RLHF_OK;
}

// ---- backward ----

size_t rlhf__conv_scratch(uint32_t n) { return (size_t)n * BLOCK; }

static uint64_t scratch_bytes(const struct rlhf__cpu *cpu, uint32_t max_q) {
    return (uint64_t)cpu->threads * rlhf__conv_scratch(max_q) * sizeof(float);
}

// Processes a row, and all rows that share it before it.
static void family_bwd(const struct conv *c, const struct block *b, size_t head, float *sums,
                       float *scratch) {
    const size_t next = rlhf__states_next(c->s, head);
    float later[(TAPS - 1) * BLOCK] = {0};
    for (size_t n = 1; n <= next - head; n++) {
        const size_t i = head + n < next ? head + n : head; // the shared row comes last
        const size_t t0 = rlhf__states_first(c->s, i);
        struct rlhf__conv_item it = item_of(c, b, i, head);
        it.dy = c->dy + (t0 * (size_t)c->v->y_stride + b->first) * c->size;
        it.dx = c->dx + (t0 * (size_t)c->v->x_stride + b->first) * c->size;
        it.later = i == head && next > head + 1 ? later : NULL;
        it.earlier = i == head ? NULL : later;
        it.sums = sums;
        it.scratch = scratch;
        c->cpu->hot.conv_bwd(&it);
    }
}

static void backward_block(const void *job, int64_t index, int own) {
    const struct conv *c = job;
    const size_t taps = (size_t)c->v->taps;
    struct block b;
    float sums[(TAPS + 1) * BLOCK] = {0};
    read_block(c, &b, (size_t)index);
    for (size_t i = 0; i < c->s->n; i = rlhf__states_next(c->s, i))
        family_bwd(c, &b, i, sums, c->ws + (size_t)own * c->stride);
    for (size_t i = 0; i < b.n; i++) {
        for (size_t j = 0; c->dweight && j < taps; j++)
            c->dweight[(b.first + i) * taps + j] += sums[j * BLOCK + i];
        if (c->dbias) c->dbias[b.first + i] += sums[taps * BLOCK + i];
    }
}

static rlhf_status conv_bwd(void *ctx, const rlhf_conv *from, const rlhf_ragged *rows, rlhf_dev dx,
                            rlhf_dev dweight, rlhf_dev dbias, rlhf_dev dy, rlhf_dev x) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_conv v;
    struct rlhf__states s;
    void *ws = NULL;
    RLHF_TRY(read_conv(cpu, "conv_bwd", &v, from));
    RLHF_TRY(rlhf__states_read(cpu, "conv_bwd", &s, rows, NULL, 0));
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_STATE, scratch_bytes(cpu, s.max_q), &ws));
    const uint64_t channels = (uint64_t)v.channels;
    const struct conv c = {.cpu = cpu,
                           .v = &v,
                           .s = &s,
                           .x = rlhf__cpu_mem(x),
                           .dy = rlhf__cpu_mem(dy),
                           .dx = rlhf__cpu_mem(dx),
                           .dweight = rlhf__cpu_f32(dweight),
                           .dbias = rlhf__cpu_f32(dbias),
                           .ws = ws,
                           .size = rlhf_dtype_size(v.dtype),
                           .stride = rlhf__conv_scratch(s.max_q)};
    rlhf__split_run_own(cpu, rlhf__split_threads(cpu, s.total * channels),
                        (int64_t)rlhf__split_count(channels, BLOCK), backward_block, &c);
    return RLHF_OK;
}

void rlhf__cpu_needs_conv(struct rlhf__cpu *cpu, const rlhf_call *c, struct rlhf__cpu_needs *n) {
    rlhf_ragged r;
    if (c->op != RLHF_COMPUTE_OP(conv_bwd) || !c->ragged) return;
    if (rlhf_copy_in(&r, sizeof r, c->ragged, RLHF_SIZE_TO(rlhf_ragged, prefix_len)) == RLHF_OK)
        rlhf__cpu_need(n, RLHF__WS_STATE, scratch_bytes(cpu, r.max_q));
}

rlhf_status rlhf__cpu_supports_conv(struct rlhf__cpu *cpu, const char *op, const rlhf_conv *from) {
    rlhf_conv v;
    return read_conv(cpu, op, &v, from);
}

void rlhf__cpu_fill_conv(rlhf_compute *t) {
    t->conv = conv;
    t->conv_bwd = conv_bwd;
}
