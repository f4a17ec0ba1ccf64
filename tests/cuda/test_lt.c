// test_lt.c: GEMMs by a fake of cuBLASLt. They give the same values as the backend's own kernels,
// and a row has the same bits in any batch. When a weight is packed, the backend decides which
// algorithm to use: the fastest of those that give the same bits.
#include "cuda/lt_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// These shapes never use the library, because a row is not a multiple of 16 bytes or because there
// are few outputs.
static const struct lt_shape own[] = {
    {LINEAR, 70, 1024, 27, B, B, OI, 0, 1, 0}, {LINEAR, 70, 100, 96, B, F, 0, 0, 0, 0},
    {LINEAR, 70, 64, 97, B, F, 0, 0, 1, 0},    {LINEAR, 70, 66, 98, F, F, OI, 0, 1, 0},
    {LINEAR, 70, 64, 2, F, F, OI, 0, 1, 0},    {LINEAR_DX, 70, 64, 97, B, F, 0, 0, 0, 0},
    {LINEAR_DW, 70, 63, 97, B, F, 0, 0, 0, 0}};

// ---- a well-behaved library ----

static void honest(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *c = lt_with_fake(w, NULL);
    assert_string_equal(c->detail + strlen(c->detail) - strlen("cuBLASLt 13.1.0"),
                        "cuBLASLt 13.1.0");
    struct kit k = w->kit;
    k.cpu1 = k.cpu2 = c;
    for (size_t i = 0; i < LT_TAKEN; i++) {
        lt_matches(&k, &lt_taken[i]);
        const uint64_t before = w->products();
        struct outputs out;
        op_run(c, lt_run, &lt_taken[i], lt_taken[i].rows, &out);
        outputs_finish(&out);
        // Only the GEMM itself runs, because the shape is already decided.
        if (w->products() != before + 1)
            fail_msg("%s: %llu library products", out.label,
                     (unsigned long long)(w->products() - before));
        if (lt_taken[i].op != LINEAR_DW) check_rows(c, lt_run, &lt_taken[i], lt_taken[i].rows);
        lt_compare_bits(c, c, &lt_taken[i]);
    }
    kit_destroy(c);
}

// If the result is bf16, the bias is rounded to bf16 and added to the f32 sum, which is then
// rounded once.
static void bias_rounded(void **state) {
    static const uint32_t rows[70];
    enum { K = 64, N = 24, ROWS = 70 };
    struct lt_world *w = *state;
    struct call k = {.c = lt_with_fake(w, NULL), .rows = rows, .n_rows = ROWS};
    rlhf_compute *c = k.c;
    float *bias = call_normal(&k, 4, N, 1.0), *rounded = call_host(&k, N * sizeof *rounded);
    for (int i = 0; i < N; i++)
        rounded[i] = kit_bf16(bias[i]);
    rlhf_weight *weight = call_weight(&k, call_normal(&k, 1, K * N, 0.1), K, N, B, 0);
    rlhf_dev x = call_floats(&k, call_normal(&k, 2, ROWS * K, 1.0), ROWS * K, B);
    rlhf_dev low = call_zeros(&k, ROWS * N, B), full = call_zeros(&k, ROWS * N, F);
    uint16_t got[ROWS * N];
    float want[ROWS * N];
    KIT_OK(c, c->linear(c->ctx, low, B, 0, x, weight, call_floats(&k, bias, N, F), ROWS));
    KIT_OK(c, c->linear(c->ctx, full, F, 0, x, weight, call_floats(&k, rounded, N, F), ROWS));
    KIT_OK(c, c->download(c->ctx, got, low, sizeof got));
    KIT_OK(c, c->download(c->ctx, want, full, sizeof want));
    for (int i = 0; i < ROWS * N; i++) {
        const float rounds_to = kit_bf16(want[i]);
        uint32_t bits;
        memcpy(&bits, &rounds_to, sizeof bits);
        if (got[i] != bits >> 16)
            fail_msg("element %d: 0x%04x of %.9g", i, got[i], (double)want[i]);
    }
    call_finish(&k);
    kit_destroy(c);
}

static void not_for_the_library(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *c = lt_with_fake(w, NULL);
    for (size_t i = 0; i < CHECK_COUNT(own); i++) {
        struct outputs out;
        lt_compare_bits(c, w->own, &own[i]);
        const uint64_t before = w->products();
        op_run(c, lt_run, &own[i], own[i].rows, &out);
        outputs_finish(&out);
        assert_int_equal(w->products(), before);
    }
    kit_destroy(c);
}

// The canary runs when a weight is packed for the first time. Later GEMMs with the weight do not
// search.
static void decided_at_pack(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *c = lt_with_fake(w, NULL);
    struct call k = {.c = c};
    const uint64_t before = w->products();
    call_weight(&k, call_normal(&k, 1, 64 * 96, 0.1), 64, 96, RLHF_BF16, RLHF_WEIGHT_BACKWARD);
    const uint64_t canary = w->products() - before;
    assert_true(canary >= 40);
    call_weight(&k, call_normal(&k, 1, 64 * 96, 0.1), 64, 96, RLHF_BF16, RLHF_WEIGHT_BACKWARD);
    assert_int_equal(w->products(), before + canary); // the same shape again
    const struct lt_shape forms[] = {
        {LINEAR, 9, 64, 96, B, F, 0, 0, 1, 0},    {LINEAR, 9, 64, 96, B, F, 0, 1, 0, 0},
        {LINEAR, 9, 64, 96, B, B, 0, 0, 0, 0},    {LINEAR_ADD, 9, 64, 96, B, F, 0, 0, 1, 0},
        {LINEAR_DX, 9, 64, 96, B, B, 0, 0, 0, 0}, {LINEAR_DX, 9, 64, 96, B, F, 0, 1, 0, 0}};
    for (size_t i = 0; i < CHECK_COUNT(forms); i++) {
        struct outputs out;
        op_run(c, lt_run, &forms[i], forms[i].rows, &out);
        outputs_finish(&out);
        assert_int_equal(w->products(), before + canary + i + 1);
    }
    call_finish(&k);
    const uint64_t in_use = c->bytes_in_use(c->ctx);
    assert_true(in_use < 64 << 20); // the canary's buffers are gone
    kit_destroy(c);
}

// The LM head's GEMMs include the weight's padding. For these shapes, too, the backend chooses the
// algorithm when the weight is packed. So the first such GEMM may be inside a recording.
static void head_decided_at_pack(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *c = lt_with_fake(w, NULL);
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
        struct call k = {.c = c};
        const rlhf_dist whole = RLHF_DIST_WHOLE;
        rlhf_lm_head a = {.size = sizeof a, .rows = 5, .d = 64, .vocab = 97, .dtype = dtype};
        a.dist = &whole;
        a.weight = call_weight(&k, call_normal(&k, 1, 64 * 97, 0.1), 64, 97, dtype,
                               RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
        a.hidden = call_floats(&k, call_normal(&k, 2, 5 * 64, 1.0), 5 * 64, dtype);
        a.target = call_ints(&k, call_host(&k, 5 * sizeof(int32_t)), 5);
        a.logp = call_zeros(&k, 5, RLHF_F32);
        a.d_logp = call_floats(&k, call_normal(&k, 3, 5, 1.0), 5, RLHF_F32);
        a.d_hidden = call_zeros(&k, 5 * 64, dtype);
        for (uint64_t i = 0; i < 3; i++) {
            int32_t what;
            const uint64_t before = w->products();
            KIT_OK(c, c->record(c->ctx, 7 + (uint64_t)dtype, &what));
            if (what != RLHF_RECORD_REPLAY) KIT_OK(c, c->lm_head(c->ctx, &a));
            KIT_OK(c, c->record_end(c->ctx));
            assert_int_equal(w->products(), before + (what != RLHF_RECORD_REPLAY));
        }
        const uint64_t before = w->products();
        KIT_OK(c, c->lm_head_bwd(c->ctx, &a));
        assert_in_range(w->products(), before + 1, before + 2); // the logits may have been kept
        call_finish(&k);
    }
    kit_destroy(c);
}

// If an operand has an odd address, neither the choice of implementation nor any bit changes.
static void odd_addresses(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *c = lt_with_fake(w, NULL);
    for (size_t i = 0; i < LT_TAKEN; i++) {
        if (lt_taken[i].op == LINEAR_DW) continue; // this shape is only repeatable
        struct lt_shape s = lt_taken[i];
        struct outputs x, y;
        op_run(c, lt_run, &s, s.rows, &x);
        s.shift = 1;
        const uint64_t before = w->products();
        op_run(c, lt_run, &s, s.rows, &y);
        assert_int_equal(w->products(), before + 1);
        lt_same_bits(&x, &y);
        outputs_finish(&x);
        outputs_finish(&y);
    }
    kit_destroy(c);
}

// ---- which algorithm, and for how many rows ----

static void run_rows(rlhf_compute *c, uint32_t rows, struct outputs *out) {
    const struct lt_shape s = {LINEAR, rows, 32, 24, F, F, 0, 1, 1, 0};
    op_run(c, lt_run, &s, rows, out);
}

// Among algorithms with the same bits, the card's clock decides, separately for few rows and for
// many rows. If an algorithm gives other bits, it is never used together with these, however fast
// it is.
static void fastest_of_equals(void **state) {
    struct lt_world *w = *state;
    for (int unlike = 0; unlike < 2; unlike++) {
        rlhf_compute *c = lt_with_fake(w, unlike ? "unlike" : "honest");
        struct outputs few, many;
        run_rows(c, 70, &few);
        assert_int_equal(w->tile(), unlike ? 128 : 64);
        run_rows(c, 1500, &many);
        assert_int_equal(w->tile(), 128);
        for (uint64_t i = 0; i < 70 * 24; i++)
            assert_true(few.o[0].v[i] == many.o[0].v[i]);
        outputs_finish(&few);
        outputs_finish(&many);
        kit_destroy(c);
    }
}

// If a call has more rows than the plan was proved for, the plan is first proved for them, and only
// once.
static void proved_again(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *c = lt_with_fake(w, "honest");
    struct outputs out;
    run_rows(c, 70, &out); // 1,536 rows are proved: three waves on the emulated card
    outputs_finish(&out);
    for (int again = 0; again < 2; again++) {
        const uint64_t before = w->products();
        w->largest();
        run_rows(c, 3000, &out);
        outputs_finish(&out);
        assert_int_equal(w->largest(), again ? 3000 : 4096);
        if (again) assert_int_equal(w->products(), before + 1);
    }
    kit_destroy(c);
}

// A GEMM that is not row-exact above some number of rows is split into calls of a proved size.
static void pieces(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *honest = lt_with_fake(w, "honest"), *c = lt_with_fake(w, "giant");
    struct outputs few, want, got;
    run_rows(c, 70, &few);
    run_rows(honest, 3000, &want);
    run_rows(c, 3000, &got); // the proof
    outputs_finish(&got);
    w->largest();
    const uint64_t before = w->products();
    run_rows(c, 3000, &got);
    assert_int_equal(w->largest(), 1536);
    assert_int_equal(w->products(), before + 2);
    lt_same_bits(&got, &want);
    outputs_finish(&few);
    outputs_finish(&want);
    outputs_finish(&got);
    kit_destroy(honest);
    kit_destroy(c);
}

// RLHF_CUDA_LT_LOG gets a line for every decision.
static void decisions_logged(void **state) {
    struct lt_world *w = *state;
    char path[] = "/tmp/rlhf-lt-XXXXXX", line[512];
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    setenv("RLHF_CUDA_LT_LOG", path, 1);
    rlhf_compute *c = lt_with_fake(w, "giant");
    struct outputs out;
    run_rows(c, 3000, &out);
    outputs_finish(&out);
    kit_destroy(c);
    unsetenv("RLHF_CUDA_LT_LOG");
    static const char *const wanted[] = {
        "refused: a row's bits depend on others", ", used for few", ", used for many",
        "not more than 1536 rows at once: above", "repeats itself, used"};
    int found[sizeof wanted / sizeof *wanted] = {0};
    FILE *f = fdopen(fd, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            found[i] += strncmp(line, "f32 [", 5) == 0 && strstr(line, wanted[i]) != NULL;
    fclose(f);
    remove(path);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!found[i]) fail_msg("no line says \"%s\"", wanted[i]);
}

// ---- Muon: all dimensions of its GEMMs are those of the matrix ----

struct matrix {
    int32_t rows, cols, dtype; // sizes and dtype of the GEMMs
};

// A bf16 weight now exists, so Muon's GEMMs use bf16 from here on.
static void bf16_run(rlhf_compute *c) {
    rlhf_weight *w = NULL;
    KIT_OK(c, c->weight_create(c->ctx, 8, 8, B, 0, &w));
    c->weight_destroy(c->ctx, w);
}

static void muon_run(struct call *c, const void *shape, struct outputs *out) {
    const struct matrix *s = shape;
    const uint64_t n = (uint64_t)s->rows * (uint64_t)s->cols;
    const rlhf_muon a = {sizeof a, 1, 5, 0, 0.02, 0.95, 0.1, 1.0};
    rlhf_dev w = call_floats(c, call_normal(c, 1, n, 1.0), n, RLHF_F32);
    rlhf_dev g = call_floats(c, call_normal(c, 2, n, 1.0), n, RLHF_F32);
    rlhf_dev m = call_floats(c, call_normal(c, 3, n, 1.0), n, RLHF_F32);
    snprintf(out->label, sizeof out->label, "muon %d x %d %s", s->rows, s->cols,
             s->dtype == B ? "bf16" : "f32");
    KIT_OK(c->c, c->c->muon(c->c->ctx, w, g, m, s->rows, s->cols, &a));
    outputs_add(out, c, "w", w, RLHF_F32, (uint64_t)s->rows, (uint64_t)s->cols, NULL);
}

static void muon_products(void **state) {
    static const struct matrix sizes[] = {{64, 96, F}, {200, 48, F}, {64, 64, F},
                                          {64, 96, B}, {200, 48, B}, {64, 64, B}};
    static const struct bound exact = {1e-10, 1e-4}, rounded = {1e-5, 1e-2};
    static const char *const lt[] = {NULL, "free"};
    struct lt_world *w = *state;
    for (int f = 0; f < 2; f++) {
        rlhf_compute *c = lt_backend(w, w->fake, lt[f], "honest");
        struct kit k = w->kit;
        k.cpu1 = k.cpu2 = c;
        for (size_t i = 0; i < CHECK_COUNT(sizes); i++) {
            const struct bound bound = sizes[i].dtype == B ? rounded : exact;
            if (sizes[i].dtype == B) bf16_run(c);
            check_match(&k, muon_run, &sizes[i], 1, bound, bound);
            const uint64_t before = w->products();
            struct outputs out;
            op_run(c, muon_run, &sizes[i], 1, &out);
            outputs_finish(&out);
            assert_int_equal(w->products(), before + 3 * 5);
        }
        lt_ends_with(c, f ? "not row exact (RLHF_CUDA_LT=free)" : "cuBLASLt 13.1.0");
        kit_destroy(c);
    }
    rlhf_compute *own_only = lt_backend(w, NULL, "off", NULL); // w->own has had bf16 weights
    rlhf_compute *c = lt_with_fake(w, "restless");
    struct outputs x, y;
    for (size_t i = 0; i < CHECK_COUNT(sizes); i += 3) {
        if (sizes[i].dtype == B) {
            bf16_run(c);
            bf16_run(own_only);
        }
        op_run(c, muon_run, &sizes[i], 1, &x);
        op_run(own_only, muon_run, &sizes[i], 1, &y);
        lt_same_bits(&x, &y);
        outputs_finish(&x);
        outputs_finish(&y);
    }
    lt_ends_with(c, "; own products for shapes, 6 that it does not repeat");
    kit_destroy(own_only);
    kit_destroy(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(honest),
                                       cmocka_unit_test(bias_rounded),
                                       cmocka_unit_test(not_for_the_library),
                                       cmocka_unit_test(decided_at_pack),
                                       cmocka_unit_test(head_decided_at_pack),
                                       cmocka_unit_test(odd_addresses),
                                       cmocka_unit_test(fastest_of_equals),
                                       cmocka_unit_test(proved_again),
                                       cmocka_unit_test(pieces),
                                       cmocka_unit_test(decisions_logged),
                                       cmocka_unit_test(muon_products)};
    return cmocka_run_group_tests_name("cuda: cuBLASLt", tests, lt_setup, lt_teardown);
}
