// test_quantised_refused.c: how many bytes a quantised weight takes, and which arguments and calls
// are refused.
#include "quantised_weight.h"

// A weight takes as many bytes as weight_quantised_bytes says. On other backends than the
// reference, which also keeps the elements, this is not much more than the blocks.
static void sizes(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu2};
    static const struct quantised_shape s = {1024, 2, {Q4_K, Q6_K}, {192, 64}};
    for (size_t b = 0; b < 2; b++)
        for (int d = 0; d < 2; d++) {
            struct call k = {.c = backends[b]};
            const rlhf_quantised a = quantised_arguments(&s, d ? RLHF_BF16 : RLHF_F32);
            const uint64_t before = k.c->bytes_in_use(k.c->ctx);
            quantised_weight(&k, &s, a.dtype);
            const uint64_t bytes = k.c->weight_quantised_bytes(k.c->ctx, &a);
            assert_int_equal(k.c->bytes_in_use(k.c->ctx) - before, bytes);
            const uint64_t blocks =
                192 * rlhf_format_row_bytes(Q4_K, s.k) + 64 * rlhf_format_row_bytes(Q6_K, s.k);
            if (b && (bytes < blocks || bytes > blocks + blocks / 32))
                fail_msg("%llu bytes for %llu of blocks", (unsigned long long)bytes,
                         (unsigned long long)blocks);
            call_finish(&k);
            assert_int_equal(k.c->bytes_in_use(k.c->ctx), before);
        }
}

#define BAD(member, value, what)                                                                   \
    do {                                                                                           \
        rlhf_quantised bad = good;                                                                 \
        bad.member = value;                                                                        \
        w = NULL;                                                                                  \
        kit_refused(c, c->weight_create_quantised(c->ctx, &bad, &w), RLHF_E_INVALID, what);        \
        assert_null(w);                                                                            \
        assert_int_equal(c->weight_quantised_bytes(c->ctx, &bad), 0);                              \
    } while (0)

static void bad_creation(rlhf_compute *c) {
    static const int32_t format[] = {Q4_K, Q6_K}, count[] = {10, 6}, less[] = {10, 5};
    static const int32_t none[] = {16, 0}, negative[] = {20, -4};
    static const int32_t f32[] = {Q4_K, RLHF_FORMAT_F32}, unknown[] = {Q4_K, 8},
                         below[] = {-1, Q4_K};
    const rlhf_quantised good = {sizeof good, 256, 16, RLHF_F32, 0, 2, format, count};
    rlhf_weight *w = NULL;
    BAD(k, 128, "k that is not a multiple of a block");
    BAD(k, 0, "k of 0");
    BAD(k, -256, "a negative k");
    BAD(n, 17, "fewer rows in the parts than in the weight");
    BAD(count, less, "parts of too few rows");
    BAD(count, none, "a part without rows");
    BAD(count, negative, "a part of negative size");
    BAD(n_parts, 0, "no parts");
    BAD(format, f32, "an f32 part");
    BAD(format, unknown, "an unknown format");
    BAD(format, below, "a negative format");
    BAD(dtype, RLHF_I32, "a dtype");
    BAD(flags, 4, "a flag");
    BAD(size, 8, "a small struct");
}

static void bad_calls(rlhf_compute *c) {
    static const struct quantised_shape s = {256, 2, {Q4_K, Q8_0}, {10, 6}};
    struct call k = {.c = c};
    const rlhf_quantised a = quantised_arguments(&s, RLHF_F32);
    uint8_t *blocks = call_host(&k, 16 * rlhf_format_row_bytes(Q8_0, 256));
    rlhf_dev x = call_zeros(&k, (uint64_t)256 * 16, RLHF_F32),
             y = call_zeros(&k, (uint64_t)256 * 16, RLHF_F32);
    rlhf_weight *w = NULL;
    KIT_OK(c, c->weight_create_quantised(c->ctx, &a, &w));
    k.weight[k.n_weight++] = w;
    const int32_t bad = RLHF_E_INVALID;
    kit_refused(c, c->weight_put(c->ctx, w, 8, 3, blocks), bad, "rows of two parts");
    kit_refused(c, c->weight_put(c->ctx, w, 14, 3, blocks), bad, "rows past the end");
    kit_refused(c, c->weight_put(c->ctx, w, -1, 2, blocks), bad, "a negative row");
    kit_refused(c, c->weight_put(c->ctx, w, 0, 0, blocks), bad, "no rows");
    kit_refused(c, c->weight_put(c->ctx, w, 3, INT32_MAX, blocks), bad, "too many rows");
    KIT_OK(c, c->weight_put(c->ctx, w, 0, 10, blocks));
    KIT_OK(c, c->weight_put(c->ctx, w, 10, 5, blocks));
    kit_refused(c, c->linear(c->ctx, y, RLHF_F32, 0, x, w, NULL, 1), bad, "a row that is missing");
    rlhf_dev id = call_ints(&k, (const int32_t[]){3}, 1);
    kit_refused(c, c->embed_weight(c->ctx, y, id, w, 1.0, 1), bad, "a row that is missing");
    KIT_OK(c, c->weight_put(c->ctx, w, 15, 1, blocks));
    KIT_OK(c, c->linear(c->ctx, y, RLHF_F32, 0, x, w, NULL, 1));
    kit_refused(c, c->linear_dw(c->ctx, y, NULL, x, x, w, 1), bad, "linear_dw");
    kit_refused(c, c->weight_pack(c->ctx, w, x), bad, "weight_pack");
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const rlhf_lm_head head = {.size = sizeof head,
                               .rows = 1,
                               .d = 256,
                               .vocab = 16,
                               .dtype = RLHF_F32,
                               .dist = &whole,
                               .hidden = x,
                               .weight = w,
                               .target = id,
                               .logp = y,
                               .d_logp = y,
                               .d_weight = y};
    kit_refused(c, c->lm_head_bwd(c->ctx, &head), bad, "lm_head_bwd with d_weight");
    rlhf_weight *dense = call_weight(&k, call_normal(&k, 1, 256, 1.0), 16, 16, RLHF_F32, 0);
    kit_refused(c, c->weight_put(c->ctx, dense, 0, 1, blocks), bad, "weight_put of a dense weight");
    kit_refused(c, c->embed_weight(c->ctx, y, id, dense, 1.0, 1), bad,
                "embed_weight of a dense weight");
    call_finish(&k);
}

static void wrong_arguments(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu2};
    for (size_t b = 0; b < 2; b++) {
        bad_creation(backends[b]);
        bad_calls(backends[b]);
    }
}

// An id outside of the weight is refused, at the latest by sync.
static void bad_ids(void **state) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu2};
    static const struct quantised_shape s = {256, 2, {Q4_K, Q8_0}, {10, 6}};
    for (size_t i = 0; i < 4; i++) {
        struct call k = {.c = backends[i % 2]};
        const int32_t id = i < 2 ? 16 : -1;
        rlhf_weight *w = quantised_weight(&k, &s, RLHF_F32);
        rlhf_dev y = call_zeros(&k, 256, RLHF_F32), ids = call_ints(&k, &id, 1);
        rlhf_status st = k.c->embed_weight(k.c->ctx, y, ids, w, 1.0, 1);
        if (st == RLHF_OK) st = k.c->sync(k.c->ctx);
        kit_refused(k.c, st, RLHF_E_INVALID, "an id outside of the weight");
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(bad_ids),
    };
    return cmocka_run_group_tests_name("kernels: quantised, refused", tests, kit_setup,
                                       kit_teardown);
}
