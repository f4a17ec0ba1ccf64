// test_refused.c: calls that a backend must refuse, because of their sizes, flags, shapes or
// structs.
#include "kit.h"
#include <math.h>

#include <stdio.h>
#include <string.h>

static void too_large(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        const uint64_t before = c->bytes_in_use(c->ctx);
        const uint64_t sizes[] = {1ull << 46, 1ull << 63, ~0ull, ~0ull - 63};
        for (size_t j = 0; j < CHECK_COUNT(sizes); j++) {
            rlhf_dev p = NULL;
            char digits[32];
            kit_refused(c, c->alloc(c->ctx, sizes[j], &p), RLHF_E_NOMEM, "alloc");
            snprintf(digits, sizeof digits, "%llu", (unsigned long long)sizes[j]);
            assert_non_null(strstr(kit_said(c), digits));
            assert_null(p);
        }
        rlhf_weight *w = NULL;
        kit_refused(c, c->weight_create(c->ctx, 16777216, 16777216, RLHF_F32, 0, &w), RLHF_E_NOMEM,
                    "weight_create");
        assert_null(w);
        assert_int_equal(c->bytes_in_use(c->ctx), before);
    }
}

static void weights(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        const uint64_t before = c->bytes_in_use(c->ctx);
        rlhf_weight *w = NULL;
        kit_refused(c, c->weight_create(c->ctx, 0, 16, RLHF_F32, 0, &w), RLHF_E_INVALID, "k = 0");
        kit_refused(c, c->weight_create(c->ctx, 16, -1, RLHF_F32, 0, &w), RLHF_E_INVALID, "n = -1");
        kit_refused(c, c->weight_create(c->ctx, 16, 16, RLHF_I32, 0, &w), RLHF_E_INVALID, "i32");
        struct call k = {.c = c};
        rlhf_dev x = call_zeros(&k, 256, RLHF_F32), y = call_zeros(&k, 256, RLHF_F32);
        KIT_OK(c, c->weight_create(c->ctx, 16, 16, RLHF_F32, 0, &w));
        kit_refused(c, c->linear(c->ctx, y, RLHF_F32, 0, x, w, NULL, 2), RLHF_E_INVALID,
                    "not packed");
        KIT_OK(c, c->weight_pack(c->ctx, w, x));
        kit_refused(c, c->linear_dx(c->ctx, y, RLHF_F32, 0, x, w, 2), RLHF_E_INVALID,
                    "no backward");
        kit_refused(c, c->linear(c->ctx, y, RLHF_I32, 0, x, w, NULL, 2), RLHF_E_INVALID, "to i32");
        kit_refused(c, c->linear(c->ctx, y, RLHF_BF16, 1, x, w, NULL, 2), RLHF_E_INVALID,
                    "accumulate in bf16");
        c->weight_destroy(c->ctx, w);
        c->weight_destroy(c->ctx, NULL);
        call_finish(&k);
        assert_int_equal(c->bytes_in_use(c->ctx), before);
    }
}

static void unknown_flags(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        const uint64_t before = c->bytes_in_use(c->ctx);
        rlhf_weight *w = NULL;
        kit_refused(c, c->weight_create(c->ctx, 16, 16, RLHF_F32, RLHF_WEIGHT_KNOWN | 1u << 30, &w),
                    RLHF_E_UNSUPPORTED, "flags");
        assert_non_null(strstr(kit_said(c), "0x40000003"));
        assert_null(w);
        assert_int_equal(c->bytes_in_use(c->ctx), before);
    }
}

static void shapes(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        rlhf_dev x = call_zeros(&k, 4096, RLHF_F32), y = call_zeros(&k, 4096, RLHF_F32);
        int32_t offset[] = {0, 4};
        rlhf_dev o = call_ints(&k, offset, 2);
        kit_refused(c, c->act(c->ctx, y, x, 9, RLHF_F32, 16), RLHF_E_UNSUPPORTED, "activation 9");
        kit_refused(c, c->act(c->ctx, y, x, RLHF_ACT_RELU, RLHF_I32, 16), RLHF_E_INVALID,
                    "act of i32");
        kit_refused(c, c->pool(c->ctx, y, x, o, 1, 16, 7), RLHF_E_UNSUPPORTED, "pooling 7");
        kit_refused(c, c->convert(c->ctx, y, RLHF_I32, x, RLHF_F32, 16), RLHF_E_INVALID,
                    "convert to i32");
        rlhf_ragged r = {.size = sizeof r, .n = 1, .total = 4, .max_q = 4, .max_k = 4, .offset = o};
        r.start = r.kv_base = call_zeros(&k, 1, RLHF_I32);
        rlhf_attn a = {sizeof(rlhf_attn), 0, 0, 16, 1, RLHF_F32, 16, 16, 16, .scale = 0.25};
        kit_refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "no heads");
        a.heads = 1;
        a.dtype = RLHF_I32;
        kit_refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "i32 heads");
        a.dtype = RLHF_F32;
        a.kv_heads = 2;
        kit_refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID,
                    "2 heads of 1");
        a.kv_heads = -1;
        kit_refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "-1 heads");
        a.kv_heads = 1;
        a.window = -1;
        kit_refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "window -1");
        a.window = 4;
        a.causal = 0;
        kit_refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID,
                    "a window that is not causal");
        a.window = 0;
        const double caps[] = {-1.0, NAN, INFINITY};
        for (size_t cap = 0; cap < CHECK_COUNT(caps); cap++) {
            a.softcap = caps[cap];
            kit_refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "a cap");
        }
        const rlhf_adamw adam = {sizeof(rlhf_adamw), 0, 1e-3, 0.9, 0.999, 1e-8, 0.0, 1.0, 0};
        kit_refused(c, c->adamw(c->ctx, x, y, x, y, 16, &adam), RLHF_E_INVALID, "adamw step 0");
        call_finish(&k);
    }
}

static void heads(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        rlhf_dist dist = RLHF_DIST_WHOLE;
        int32_t target[] = {1, 2};
        float w[16 * 20] = {0};
        rlhf_lm_head a = {
            .size = sizeof a, .rows = 2, .d = 16, .vocab = 20, .dtype = RLHF_F32, .dist = &dist};
        a.hidden = call_zeros(&k, 32, RLHF_F32);
        a.target = call_ints(&k, target, 2);
        a.logp = call_zeros(&k, 2, RLHF_F32);
        a.weight = call_weight(&k, w, 16, 20, RLHF_F32, 0);
        KIT_OK(c, c->lm_head(c->ctx, &a));
        rlhf_lm_head bad = a;
        bad.vocab = 21;
        kit_refused(c, c->lm_head(c->ctx, &bad), RLHF_E_INVALID, "vocab is not the weight's n");
        bad = a;
        bad.dtype = RLHF_BF16;
        kit_refused(c, c->lm_head(c->ctx, &bad), RLHF_E_INVALID, "dtype is not the weight's");
        bad = a;
        bad.d_hidden = call_zeros(&k, 32, RLHF_F32);
        kit_refused(c, c->lm_head_bwd(c->ctx, &bad), RLHF_E_INVALID, "no backward weight");
        const rlhf_dist bad_dist[] = {RLHF_DIST(0.0, 1.0, 0, 0), RLHF_DIST(1.0, 0.0, 0, 0),
                                      RLHF_DIST(1.0, 1.5, 0, 0), RLHF_DIST(1.0, 1.0, -1, 0)};
        for (size_t j = 0; j < CHECK_COUNT(bad_dist); j++) {
            bad = a;
            bad.dist = &bad_dist[j];
            kit_refused(c, c->lm_head(c->ctx, &bad), RLHF_E_INVALID, "distribution");
        }
        call_finish(&k);
    }
}

// ---- argument structs of other versions ----

// Arguments of every op that takes a sized struct.
struct sized_args {
    rlhf_dev x, y;
    rlhf_ragged rows;
    rlhf_attn attn;
    rlhf_lm_head head;
    rlhf_conv conv;
};

static rlhf_status call_attn(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->attention(c->ctx, s, &a->rows, a->y, NULL, a->x, a->x, a->x);
}

static rlhf_status call_rows(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->attention(c->ctx, &a->attn, s, a->y, NULL, a->x, a->x, a->x);
}

static rlhf_status call_kv_rows(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->kv_store(c->ctx, a->y, a->y, a->x, a->x, 16, s, 16, RLHF_F32);
}

static rlhf_status call_dist(rlhf_compute *c, const struct sized_args *a, const void *s) {
    rlhf_lm_head h = a->head;
    h.dist = s;
    return c->lm_head(c->ctx, &h);
}

static rlhf_status call_adamw(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->adamw(c->ctx, a->x, a->y, a->x, a->y, 16, s);
}

static rlhf_status call_muon(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->muon(c->ctx, a->x, a->y, a->x, 4, 4, s);
}

static rlhf_status call_blocks(rlhf_compute *c, const struct sized_args *a, const void *s) {
    rlhf_weight *w = NULL;
    (void)a;
    const rlhf_status st = c->weight_create_blocks(c->ctx, s, &w);
    c->weight_destroy(c->ctx, w);
    return st;
}

static rlhf_status call_linear_sum(rlhf_compute *c, const struct sized_args *a, const void *s) {
    (void)a;
    return c->linear_sum(c->ctx, s);
}

static rlhf_status call_conv(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->conv(c->ctx, s, &a->rows, NULL, a->y, a->x);
}

static rlhf_status call_states(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->conv(c->ctx, &a->conv, &a->rows, s, a->y, a->x);
}

static rlhf_status call_delta(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->delta(c->ctx, s, &a->rows, NULL, a->y, a->x, a->x, a->x);
}

static rlhf_status call_gated_norm(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->gated_norm(c->ctx, s, a->y, NULL, a->x, a->x, 4);
}

static rlhf_status call_columns(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->multiply(c->ctx, s, a->y, a->x, a->x, 4);
}

typedef rlhf_status sized_call(rlhf_compute *c, const struct sized_args *a, const void *s);

// Passes the struct twice as a newer caller does: longer, with its last field 0 and then set. Also
// passes a struct that is too short for any caller.
static void other_size(rlhf_compute *c, const struct sized_args *a, sized_call *call, const void *s,
                       uint32_t size, const char *what) {
    unsigned char longer[128] = {0};
    uint32_t said = size + 8;
    assert_true(said <= sizeof longer);
    memcpy(longer, s, size);
    memcpy(longer, &said, sizeof said);
    KIT_OK(c, call(c, a, longer));
    longer[size + 7] = 1;
    kit_refused(c, call(c, a, longer), RLHF_E_UNSUPPORTED, what);
    said = size / 2;
    memcpy(longer, &said, sizeof said);
    kit_refused(c, call(c, a, longer), RLHF_E_INVALID, what);
}

// The structs of layers with a state. a->x is zeros, f32 [4, 16].
static void state_structs(rlhf_compute *c, struct sized_args *a, struct call *k) {
    const int32_t minus[] = {-1};
    a->conv = (rlhf_conv){.size = sizeof a->conv,
                          .channels = 16,
                          .taps = 3,
                          .dtype = RLHF_F32,
                          .x_stride = 16,
                          .y_stride = 16,
                          .weight = call_zeros(k, 48, RLHF_F32)};
    rlhf_states states = {.size = sizeof states, .state = call_zeros(k, 64, RLHF_F32)};
    states.stride = 128;
    states.from = states.to = call_ints(k, minus, 1);
    const rlhf_delta delta = {.size = sizeof delta,
                              .heads = 1,
                              .key_heads = 1,
                              .key_dim = 4,
                              .value_dim = 4,
                              .dtype = RLHF_F32,
                              .x_stride = 16,
                              .gate_stride = 16,
                              .out_stride = 16,
                              .scale = 0.5,
                              .eps = 1e-6,
                              .a_log = a->x,
                              .dt_bias = a->x};
    const rlhf_gated_norm norm = {.size = sizeof norm,
                                  .heads = 1,
                                  .head_dim = 16,
                                  .dtype = RLHF_F32,
                                  .act = RLHF_ACT_SILU,
                                  .x_stride = 16,
                                  .gate_stride = 16,
                                  .out_stride = 16,
                                  .eps = 1e-6,
                                  .gamma = a->x};
    const rlhf_columns columns = {.size = sizeof columns,
                                  .blocks = 1,
                                  .width = 16,
                                  .dtype = RLHF_F32,
                                  .act = RLHF_ACT_SIGMOID,
                                  .x_stride = 16,
                                  .gate_stride = 16,
                                  .out_stride = 16,
                                  .x_step = 16,
                                  .gate_step = 16,
                                  .out_step = 16};
    other_size(c, a, call_conv, &a->conv, sizeof a->conv, "conv");
    other_size(c, a, call_states, &states, sizeof states, "states");
    other_size(c, a, call_delta, &delta, sizeof delta, "delta");
    other_size(c, a, call_gated_norm, &norm, sizeof norm, "gated_norm");
    other_size(c, a, call_columns, &columns, sizeof columns, "columns");
}

static void structs_of_other_sizes(void **state) {
    const rlhf_adamw adamw = {sizeof(rlhf_adamw), 0, 1e-3, 0.9, 0.999, 1e-8, 0.0, 1.0, 1};
    const rlhf_muon muon = {sizeof(rlhf_muon), 1, 5, 0, 0.02, 0.95, 0.0, 1.0};
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
        struct call k = {.c = c};
        const int32_t offset[] = {0, 4}, target[] = {1, 2};
        float w[16 * 20] = {0};
        struct sized_args a = {.x = call_zeros(&k, 4 * 16, RLHF_F32),
                               .y = call_zeros(&k, 4 * 16, RLHF_F32)};
        a.rows = (rlhf_ragged){.size = sizeof a.rows, .n = 1, .total = 4, .max_q = 4, .max_k = 4};
        a.rows.offset = call_ints(&k, offset, 2);
        a.rows.start = a.rows.kv_base = call_zeros(&k, 1, RLHF_I32);
        a.attn = (rlhf_attn){sizeof(rlhf_attn), 2, 0, 8, 1, RLHF_F32, 16, 16, 16, .scale = 0.25};
        a.head = (rlhf_lm_head){
            .size = sizeof a.head, .rows = 2, .d = 16, .vocab = 20, .dtype = RLHF_F32};
        a.head.hidden = a.x;
        a.head.target = call_ints(&k, target, 2);
        a.head.logp = call_zeros(&k, 2, RLHF_F32);
        a.head.weight = call_weight(&k, w, 16, 20, RLHF_F32, 0);
        other_size(c, &a, call_attn, &a.attn, sizeof a.attn, "attention geometry");
        other_size(c, &a, call_rows, &a.rows, sizeof a.rows, "rows of attention");
        other_size(c, &a, call_kv_rows, &a.rows, sizeof a.rows, "rows of kv_store");
        other_size(c, &a, call_dist, &dist, sizeof dist, "a dist");
        other_size(c, &a, call_adamw, &adamw, sizeof adamw, "adamw");
        other_size(c, &a, call_muon, &muon, sizeof muon, "muon");
        const int32_t from[] = {0, 8}, count[] = {8, 8};
        const rlhf_blocks blocks = {sizeof blocks, 16, 4, RLHF_F32, 0, 2, from, count, 1.0};
        const rlhf_weight *square = call_weight(&k, w, 16, 16, RLHF_F32, 0);
        const rlhf_linear_sum sum = {.size = sizeof sum,
                                     .rows = 4,
                                     .out_dtype = RLHF_F32,
                                     .out = a.y,
                                     .x = a.x,
                                     .x2 = a.x,
                                     .w = square,
                                     .w2 = square};
        other_size(c, &a, call_blocks, &blocks, sizeof blocks, "blocks");
        other_size(c, &a, call_linear_sum, &sum, sizeof sum, "linear_sum");
        state_structs(c, &a, &k);
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_large),     cmocka_unit_test(weights),
        cmocka_unit_test(unknown_flags), cmocka_unit_test(shapes),
        cmocka_unit_test(heads),         cmocka_unit_test(structs_of_other_sizes)};
    return cmocka_run_group_tests_name("kernels: refused", tests, kit_setup, kit_teardown);
}
