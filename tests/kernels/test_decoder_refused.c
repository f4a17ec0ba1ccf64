// test_decoder_refused.c: the ops of test_decoder.c are called with one wrong argument. A backend
// must refuse the call with an error text.
#include "kit.h"
#include <stdio.h>
#include <string.h>

// Asserts that the call is refused, at once or in the next wait, with an error text that contains
// `word`. Backends may differ in whether they return "invalid" or "not supported".
static void refused(rlhf_compute *c, rlhf_status got, const char *word, const char *what) {
    if (got == RLHF_OK) got = c->sync(c->ctx);
    const char *text = kit_said(c);
    printf("  %s, %s: %d \"%s\"\n", c->name, what, got, text);
    if (got != RLHF_E_INVALID && got != RLHF_E_UNSUPPORTED)
        fail_msg("%s: %s gives %d", c->name, what, got);
    if (!strstr(text, word))
        fail_msg("%s: %s: \"%s\" says nothing of %s", c->name, what, text, word);
}

static void norms(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        rlhf_dev x = call_zeros(&k, 64, RLHF_F32), y = call_zeros(&k, 64, RLHF_F32);
        void *ctx = c->ctx;
        refused(c, c->rms_norm(ctx, y, RLHF_F32, NULL, x, x, 0.0, 1e-5, 2, 0), "rms_norm",
                "no width");
        refused(c, c->rms_norm(ctx, y, RLHF_I32, NULL, x, x, 0.0, 1e-5, 2, 16), "rms_norm",
                "to i32");
        refused(c, c->rms_norm_bwd(ctx, y, 0, NULL, x, RLHF_F32, x, x, x, 0.0, 2, -1),
                "rms_norm_bwd", "a negative width");
        refused(c, c->rms_norm_bwd(ctx, y, 0, NULL, x, RLHF_I32, x, x, x, 0.0, 2, 16),
                "rms_norm_bwd", "dy in i32");
        call_finish(&k);
    }
}

static void gates(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        rlhf_dev x = call_zeros(&k, 64, RLHF_F32), y = call_zeros(&k, 64, RLHF_F32);
        void *ctx = c->ctx;
        refused(c, c->gate(ctx, y, x, 0, RLHF_F32, 2, 8), "gate", "kind 0");
        refused(c, c->gate(ctx, y, x, RLHF_ACT_SIGMOID + 1, RLHF_F32, 2, 8), "gate", "kind 7");
        refused(c, c->gate(ctx, y, x, RLHF_ACT_SILU, RLHF_I32, 2, 8), "gate", "of i32");
        refused(c, c->gate(ctx, y, x, RLHF_ACT_SILU, RLHF_F32, 2, 0), "gate", "no width");
        refused(c, c->gate_bwd(ctx, y, x, x, RLHF_ACT_SIGMOID + 1, RLHF_F32, 2, 8), "gate_bwd",
                "kind 7");
        refused(c, c->gate_bwd(ctx, y, x, x, RLHF_ACT_SILU, RLHF_I32, 2, 8), "gate_bwd", "of i32");
        refused(c, c->gate_bwd(ctx, y, x, x, RLHF_ACT_SILU, RLHF_F32, 2, -8), "gate_bwd",
                "a negative width");
        call_finish(&k);
    }
}

static void embeddings(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        const int32_t one[] = {0, 1};
        rlhf_dev x = call_zeros(&k, 64, RLHF_F32), y = call_zeros(&k, 64, RLHF_F32);
        rlhf_dev ids = call_ints(&k, one, 2);
        void *ctx = c->ctx;
        refused(c, c->embed(ctx, y, ids, ids, x, NULL, 1.0, 2, 16), "embed", "positions, no table");
        refused(c, c->embed(ctx, y, ids, NULL, x, x, 1.0, 2, 16), "embed", "a table, no positions");
        refused(c, c->embed_bwd(ctx, x, x, y, ids, NULL, 1.0, 2, 16, 4, 4), "embed_bwd",
                "a table, no positions");
        refused(c, c->embed_bwd(ctx, x, NULL, y, ids, ids, 1.0, 2, 16, 4, 4), "embed_bwd",
                "positions, no table");
        refused(c, c->embed_bwd(ctx, x, NULL, y, ids, NULL, 1.0, 2, 16, 4, 4), "n_pos",
                "4 positions, none of which is read");
        call_finish(&k);
    }
}

// ---- rope ----

struct rope {
    rlhf_rope g;
    rlhf_dev x, y;
};

static struct rope rope_of(struct call *k) {
    static const int32_t pos[] = {0, 3};
    struct rope r = {.g = {.size = sizeof r.g,
                           .heads = 2,
                           .kv_heads = 1,
                           .head_dim = 8,
                           .dtype = RLHF_F32,
                           .n_pos = 4,
                           .stride = 24}};
    r.x = call_zeros(k, 64, RLHF_F32);
    r.y = call_zeros(k, 64, RLHF_F32);
    r.g.pos = call_ints(k, pos, 2);
    r.g.turn = call_zeros(k, 32, RLHF_F32);
    return r;
}

static void both(rlhf_compute *c, const struct rope *r, rlhf_rope g, const char *word,
                 const char *what) {
    refused(c, c->rope(c->ctx, &g, r->x, 2), word, what);
    refused(c, c->rope_bwd(c->ctx, &g, r->x, NULL, NULL, 2), word, what);
}

// Tests `g` with one field changed.
#define BOTH(field, value, word, what)                                                             \
    do {                                                                                           \
        rlhf_rope bad = r.g;                                                                       \
        bad.field = (value);                                                                       \
        both(c, &r, bad, word, what);                                                              \
    } while (0)

static void geometry(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        const struct rope r = rope_of(&k);
        KIT_OK(c, c->rope(c->ctx, &r.g, r.x, 2));
        KIT_OK(c, c->rope_bwd(c->ctx, &r.g, r.x, NULL, NULL, 2));
        BOTH(heads, 0, "head", "no heads");
        BOTH(kv_heads, -1, "head", "-1 heads of keys");
        BOTH(head_dim, 7, "head_dim", "an odd head");
        BOTH(head_dim, 0, "head_dim", "an empty head");
        BOTH(rotary_dim, 3, "rotary_dim", "an odd part");
        BOTH(rotary_dim, 10, "rotary_dim", "a part wider than the head");
        BOTH(rotary_dim, -2, "rotary_dim", "a part of -2 elements");
        BOTH(n_pos, 0, "n_pos", "no positions");
        BOTH(stride, 23, "stride", "rows that overlap");
        BOTH(dtype, RLHF_I32, "rope", "i32");
        BOTH(gamma_q, r.y, "gamma", "a norm of queries alone");
        BOTH(gamma_k, r.y, "gamma", "a norm of keys alone");
        BOTH(stats, r.y, "raw", "stats alone");
        rlhf_rope g = r.g;
        g.raw = g.stats = r.y;
        both(c, &r, g, "gamma", "raw without norms");
        g.raw = g.stats = NULL;
        refused(c, c->rope_bwd(c->ctx, &g, r.x, r.y, NULL, 2), "gamma", "dgamma without norms");
        g.gamma_q = g.gamma_k = r.y;
        refused(c, c->rope_bwd(c->ctx, &g, r.x, NULL, NULL, 2), "raw", "norms without raw");
        call_finish(&k);
    }
}

static void positions(void **state) {
    static const int32_t bad[][2] = {{0, 4}, {-1, 0}, {3, 2147483647}};
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        struct rope r = rope_of(&k);
        for (size_t j = 0; j < CHECK_COUNT(bad); j++) {
            r.g.pos = call_ints(&k, bad[j], 2);
            both(c, &r, r.g, "pos", "a position that is not there");
        }
        call_finish(&k);
    }
}

// Passes the struct of a newer caller, with its last field 0 or set. Also passes a struct whose
// size is impossible.
static void sizes(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        const struct rope r = rope_of(&k);
        struct {
            rlhf_rope g;
            uint64_t later;
        } longer = {r.g, 0};
        longer.g.size = sizeof longer;
        KIT_OK(c, c->rope(c->ctx, &longer.g, r.x, 2));
        KIT_OK(c, c->rope_bwd(c->ctx, &longer.g, r.x, NULL, NULL, 2));
        longer.later = 1;
        refused(c, c->rope(c->ctx, &longer.g, r.x, 2), "rope", "a field of a newer caller");
        refused(c, c->rope_bwd(c->ctx, &longer.g, r.x, NULL, NULL, 2), "rope_bwd", "the same");
        longer.g.size = 40;
        refused(c, c->rope(c->ctx, &longer.g, r.x, 2), "rope", "too short");
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(norms),      cmocka_unit_test(gates),
                                       cmocka_unit_test(embeddings), cmocka_unit_test(geometry),
                                       cmocka_unit_test(positions),  cmocka_unit_test(sizes)};
    return cmocka_run_group_tests_name("kernels: decoder refused", tests, kit_setup, kit_teardown);
}
