// test_gradient_decoder.c: tests by finite differences (diff.h) that the backward ops of
// test_decoder.c, in the reference backend, are the derivatives of their forward ops.
#include "diff.h"
#include <math.h>

static rlhf_dev up(struct call *k, const float *x, uint64_t n) {
    return call_floats(k, x, n, RLHF_F32);
}

static rlhf_dev zeros(struct call *k, uint64_t n) { return call_zeros(k, n, RLHF_F32); }

static void down(struct call *k, float *to, rlhf_dev p, uint64_t n) {
    kit_read(k->c, to, p, n, RLHF_F32);
}

// ---- rms_norm: inputs x, gamma ----

enum { NORM_ROWS = 5, NORM_D = 24, NORM_N = NORM_ROWS * NORM_D };

static void rms_forward(struct call *k, struct diff *d) {
    rlhf_dev y = zeros(k, NORM_N);
    KIT_OK(k->c, k->c->rms_norm(k->c->ctx, y, RLHF_F32, NULL, up(k, d->in[0], NORM_N),
                                up(k, d->in[1], NORM_D), *(const double *)d->shape, 0.3, NORM_ROWS,
                                NORM_D));
    down(k, d->out[0], y, NORM_N);
}

static void rms_backward(struct call *k, struct diff *d) {
    const double offset = *(const double *)d->shape;
    rlhf_dev y = zeros(k, NORM_N), dx = zeros(k, NORM_N), stats = zeros(k, NORM_ROWS);
    rlhf_dev dgamma = zeros(k, NORM_D), x = up(k, d->in[0], NORM_N),
             gamma = up(k, d->in[1], NORM_D);
    KIT_OK(k->c,
           k->c->rms_norm(k->c->ctx, y, RLHF_F32, stats, x, gamma, offset, 0.3, NORM_ROWS, NORM_D));
    KIT_OK(k->c, k->c->rms_norm_bwd(k->c->ctx, dx, 0, dgamma, up(k, d->r[0], NORM_N), RLHF_F32, x,
                                    stats, gamma, offset, NORM_ROWS, NORM_D));
    down(k, d->grad[0], dx, NORM_N);
    down(k, d->grad[1], dgamma, NORM_D);
}

static void rms_norm_is_differentiated(void **state) {
    struct kit *kit = *state;
    static const double offsets[] = {0.0, 1.0};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        struct call k = {.c = kit->ref};
        struct diff d = {.name = i ? "rms_norm with offset" : "rms_norm",
                         .shape = &offsets[i],
                         .n_in = 2,
                         .n_out = 1,
                         .in_n = {NORM_N, NORM_D},
                         .out_n = {NORM_N},
                         .forward = rms_forward,
                         .backward = rms_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

// ---- gate: input x ----

enum { GATE_ROWS = 4, INNER = 25, GATE_N = GATE_ROWS * INNER };

static void gate_forward(struct call *k, struct diff *d) {
    rlhf_dev y = zeros(k, GATE_N);
    KIT_OK(k->c, k->c->gate(k->c->ctx, y, up(k, d->in[0], 2 * GATE_N), *(const int32_t *)d->shape,
                            RLHF_F32, GATE_ROWS, INNER));
    down(k, d->out[0], y, GATE_N);
}

static void gate_backward(struct call *k, struct diff *d) {
    rlhf_dev x = up(k, d->in[0], 2 * GATE_N);
    KIT_OK(k->c, k->c->gate_bwd(k->c->ctx, x, up(k, d->r[0], GATE_N), x, *(const int32_t *)d->shape,
                                RLHF_F32, GATE_ROWS, INNER));
    down(k, d->grad[0], x, 2 * GATE_N);
}

static void gate_is_differentiated(void **state) {
    struct kit *kit = *state;
    const char *names[] = {"gate gelu_tanh", "gate gelu_erf", "gate relu",
                           "gate silu",      "gate relu2",    "gate sigmoid"};
    for (int32_t kind = RLHF_ACT_GELU_TANH; kind <= RLHF_ACT_SIGMOID; kind++) {
        struct call k = {.c = kit->ref};
        struct diff d = {.name = names[kind - 1],
                         .shape = &kind,
                         .n_in = 1,
                         .n_out = 1,
                         .in_n = {2 * GATE_N},
                         .out_n = {GATE_N},
                         .forward = gate_forward,
                         .backward = gate_backward};
        diff_init(&k, &d, 1.5);
        for (int i = 0; i < 2 * GATE_N; i++)
            d.in[0][i] += d.in[0][i] < 0.0f ? -0.05f : 0.05f; // away from 0
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

// ---- rope: inputs x, gamma_q, gamma_k ----

enum { RP_ROWS = 5, RP_HEADS = 3, RP_KV = 1, RP_DIM = 6, RP_POS = 9 };
enum { RP_N = RP_ROWS * (RP_HEADS + RP_KV) * RP_DIM };

struct rope_form {
    const char *name;
    uint32_t n_in; // 1, or 3 with norms
    double offset;
    int32_t part;  // how many elements of a head are rotated
    int32_t whole; // 1: norms of whole rows
    int32_t reserved;
};

static rlhf_rope rope_of(struct call *k, const struct diff *d) {
    const struct rope_form *f = d->shape;
    const int part = f->part, half = part / 2;
    int32_t pos[RP_ROWS];
    float turn[RP_POS * RP_DIM];
    for (int i = 0; i < RP_ROWS; i++)
        pos[i] = i * 5 % RP_POS;
    for (int i = 0; i < RP_POS * part; i++) {
        const double angle = i / part * pow(10.0, -(double)(i % half) / half);
        turn[i] = (float)(i % part < half ? cos(angle) : sin(angle));
    }
    rlhf_rope g = {.size = sizeof g,
                   .heads = RP_HEADS,
                   .kv_heads = RP_KV,
                   .head_dim = RP_DIM,
                   .dtype = RLHF_F32,
                   .n_pos = RP_POS,
                   .stride = RP_N / RP_ROWS,
                   .eps = 0.3,
                   .gamma_offset = f->offset,
                   .rotary_dim = f->part,
                   .whole = f->whole};
    g.pos = call_ints(k, pos, RP_ROWS);
    g.turn = up(k, turn, (uint64_t)(RP_POS * part));
    if (d->n_in == 1) return g;
    g.gamma_q = up(k, d->in[1], d->in_n[1]);
    g.gamma_k = up(k, d->in[2], d->in_n[2]);
    g.raw = zeros(k, RP_N);
    g.stats = zeros(k, RP_ROWS * (RP_HEADS + RP_KV));
    return g;
}

static void rope_forward(struct call *k, struct diff *d) {
    const rlhf_rope g = rope_of(k, d);
    rlhf_dev x = up(k, d->in[0], RP_N);
    KIT_OK(k->c, k->c->rope(k->c->ctx, &g, x, RP_ROWS));
    down(k, d->out[0], x, RP_N);
}

static void rope_backward(struct call *k, struct diff *d) {
    const rlhf_rope g = rope_of(k, d);
    rlhf_dev dx = up(k, d->r[0], RP_N), dq = NULL, dk = NULL;
    if (d->n_in > 1) {
        dq = zeros(k, d->in_n[1]);
        dk = zeros(k, d->in_n[2]);
    }
    KIT_OK(k->c, k->c->rope(k->c->ctx, &g, up(k, d->in[0], RP_N), RP_ROWS));
    KIT_OK(k->c, k->c->rope_bwd(k->c->ctx, &g, dx, dq, dk, RP_ROWS));
    down(k, d->grad[0], dx, RP_N);
    if (dq) down(k, d->grad[1], dq, d->in_n[1]);
    if (dk) down(k, d->grad[2], dk, d->in_n[2]);
}

static void rope_is_differentiated(void **state) {
    struct kit *kit = *state;
    static const struct rope_form forms[] = {
        {"rope", 1, 0.0, RP_DIM, 0, 0},
        {"rope with norms", 3, 0.0, RP_DIM, 0, 0},
        {"rope with offset", 3, 1.0, RP_DIM, 0, 0},
        {"rope of a part", 1, 0.0, 4, 0, 0},
        {"rope of a part with norms", 3, 1.0, 2, 0, 0},
        {"rope with norms of rows", 3, 0.0, RP_DIM, 1, 0},
        {"rope of a part with norms of rows", 3, 1.0, 4, 1, 0},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const uint64_t q = forms[i].whole ? RP_HEADS : 1, keys = forms[i].whole ? RP_KV : 1;
        struct call k = {.c = kit->ref};
        struct diff d = {.name = forms[i].name,
                         .shape = &forms[i],
                         .n_in = forms[i].n_in,
                         .n_out = 1,
                         .in_n = {RP_N, q * RP_DIM, keys * RP_DIM},
                         .out_n = {RP_N},
                         .forward = rope_forward,
                         .backward = rope_backward};
        diff_init(&k, &d, 1.0);
        diff_check(kit->ref, &d, 2e-3, 2e-3);
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rms_norm_is_differentiated),
                                       cmocka_unit_test(gate_is_differentiated),
                                       cmocka_unit_test(rope_is_differentiated)};
    return cmocka_run_group_tests_name("kernels: gradient of decoder", tests, kit_setup,
                                       kit_teardown);
}
