// test_lt_refused.c: the backend uses its own kernels in these cases: cuBLASLt is missing or too
// old, it offers no algorithm, it does not support a shape, its result is not row-exact, or there
// is no memory for the backend's proof. Also tests the effect of RLHF_CUBLASLT and RLHF_CUDA_LT.
#include "cuda/lt_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- a misbehaving library ----

static void hostile(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *c = lt_with_fake(w, "hostile");
    for (size_t i = 0; i < LT_TAKEN; i++) {
        if (lt_taken[i].op == LINEAR_DW) continue;
        lt_compare_bits(c, w->own, &lt_taken[i]);
        check_rows(c, lt_run, &lt_taken[i], lt_taken[i].rows);
    }
    lt_ends_with(c, "cuBLASLt 13.1.0; own products for shapes, 30 on which it is not row exact");
    kit_destroy(c);
}

// If the library's sums over rows are not repeatable, the backend's own kernels compute them. With
// "restless" the sums change each time, and with "residue" they change only after other work.
static void restless(void **state) {
    static const char *const modes[] = {"restless", "residue"};
    struct lt_world *w = *state;
    for (size_t m = 0; m < CHECK_COUNT(modes); m++) {
        rlhf_compute *c = lt_with_fake(w, modes[m]);
        for (size_t i = 0; i < LT_TAKEN; i++) {
            if (lt_taken[i].op != LINEAR_DW) continue;
            lt_compare_bits(c, w->own, &lt_taken[i]);
            const uint64_t before = w->products();
            lt_compare_bits(c, c, &lt_taken[i]);
            assert_int_equal(w->products(), before);
        }
        lt_ends_with(c, "cuBLASLt 13.1.0; own products for shapes, 8 that it does not repeat");
        kit_destroy(c);
    }
}

// The search forbids split-k and TF32. If the library offers them anyway, these offers are dropped
// before the canary.
static void unasked(void **state) {
    struct lt_world *w = *state;
    rlhf_compute *c = lt_with_fake(w, "unasked");
    struct kit k = w->kit;
    k.cpu1 = k.cpu2 = c;
    for (size_t i = 0; i < LT_TAKEN; i++) {
        if (lt_taken[i].op == LINEAR_DW) continue;
        const uint64_t before = w->products();
        lt_matches(&k, &lt_taken[i]);
        check_rows(c, lt_run, &lt_taken[i], lt_taken[i].rows);
        assert_true(w->products() > before);
    }
    lt_ends_with(c, "cuBLASLt 13.1.0");
    kit_destroy(c);
}

// ---- which library ----

static void own_products_only(void **state) {
    struct lt_world *w = *state;
    const struct {
        const char *file, *lt, *fake, *text;
    } cases[] = {
        {"/nowhere/libcublasLt.so.13", NULL, NULL,
         "own products (cuBLASLt: /nowhere/libcublasLt.so.13: cannot open shared object file: No "
         "such file or directory)"},
        {w->lacking, NULL, NULL, "own products (cuBLASLt lacks cublasLtMatmulAlgoCapGetAttribute)"},
        {w->fake, NULL, "old", "own products (cuBLASLt 11.6.0, used are 12 and 13)"},
        {w->fake, NULL, "nodriver",
         "own products (cuBLASLt 13.1.0 does not start: CUBLAS_STATUS_NOT_INITIALIZED)"},
        {w->fake, "off", NULL, "own products (RLHF_CUDA_LT=off)"},
        {NULL, NULL, NULL, "own products (cuBLASLt: RLHF_CUBLASLT names no file)"},
        {w->fake, NULL, "none", "cuBLASLt 13.1.0"}};
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        rlhf_compute *c = lt_backend(w, cases[i].file, cases[i].lt, cases[i].fake);
        const uint64_t before = w->products();
        lt_ends_with(c, cases[i].text);
        lt_compare_bits(c, w->own, &lt_taken[0]);
        lt_compare_bits(c, w->own, &lt_taken[LT_TAKEN_DW]);
        assert_int_equal(w->products(), before);
        kit_destroy(c);
    }
    rlhf_compute *c = lt_with_fake(w, "none");
    lt_compare_bits(c, w->own, &lt_taken[LT_TAKEN_DW]);
    lt_ends_with(c,
                 "cuBLASLt 13.1.0; own products for shapes, 10 for which it offers no algorithm");
    kit_destroy(c);
}

// RLHF_CUBLASLT may name a directory.
static void found_in_directory(void **state) {
    struct lt_world *w = *state;
    char dir[] = "/tmp/rlhf-lt-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/libcublasLt.so.13", dir);
    assert_int_equal(symlink(w->fake, path), 0);
    rlhf_compute *c = lt_backend(w, dir, NULL, NULL);
    assert_non_null(strstr(c->detail, "cuBLASLt 13.1.0"));
    kit_destroy(c);
    remove(path);
    remove(dir);
    c = lt_backend(w, "/proc", NULL, NULL); // a directory without the library
    assert_non_null(strstr(c->detail, "own products (cuBLASLt: /proc/libcublasLt.so.13: "));
    kit_destroy(c);
}

// ---- without memory, on other cards, and free ----

// If memory runs out during the proof, the backend uses its own kernels, and calls succeed.
static void no_room_to_prove(void **state) {
    struct lt_world *w = *state;
    assert_true(w->fake_cuda("memory=600K"));
    rlhf_compute *c = lt_with_fake(w, NULL);
    lt_compare_bits(c, w->own, &lt_taken[0]);
    lt_ends_with(c, "own products for shapes, 10 with too little memory to check");
    assert_true(w->fake_cuda(""));
    const uint64_t before = w->products();
    lt_compare_bits(c, w->own, &lt_taken[0]); // the decision is final
    assert_int_equal(w->products(), before);
    kit_destroy(c);
}

// The proof that the library's sum over rows is repeatable needs a workspace. If the workspace
// cannot be allocated, the backend's own kernels always compute the sum. In free mode, which has no
// proof, the call fails.
static void no_room_to_sum(void **state) {
    struct lt_world *w = *state;
    static const uint32_t rows[70];
    assert_true(w->fake_cuda("memory=8M"));
    rlhf_compute *c = lt_with_fake(w, NULL);
    lt_compare_bits(c, w->own, &lt_taken[LT_TAKEN_DW]);
    lt_ends_with(c, " with too little memory to check");
    assert_true(w->fake_cuda(""));
    const uint64_t before = w->products();
    lt_compare_bits(c, w->own, &lt_taken[LT_TAKEN_DW]);
    assert_int_equal(w->products(), before);
    kit_destroy(c);
    assert_true(w->fake_cuda("memory=8M"));
    c = lt_backend(w, w->fake, "free", NULL);
    struct call k = {.c = c, .rows = rows, .n_rows = 70};
    rlhf_weight *m = call_weight(&k, call_normal(&k, 1, 64 * 96, 0.1), 64, 96, B, 0);
    rlhf_dev x = call_zeros(&k, 70 * 64, B), dy = call_zeros(&k, 70 * 96, B);
    rlhf_dev dw = call_zeros(&k, 64 * 96, F);
    assert_int_equal(c->linear_dw(c->ctx, dw, NULL, x, dy, m, 70), RLHF_E_NOMEM);
    assert_non_null(strstr(kit_said(c), "out of device memory"));
    call_finish(&k);
    kit_destroy(c);
    assert_true(w->fake_cuda(""));
}

// Below compute capability 9.0, rows may depend on each other even without split-k.
static void older_card(void **state) {
    struct lt_world *w = *state;
    assert_true(w->fake_cuda("sm=80"));
    rlhf_compute *c = lt_with_fake(w, NULL);
    lt_ends_with(c, "own products (cuBLASLt is used from compute capability 9.0 on)");
    lt_compare_bits(c, w->own, &lt_taken[0]);
    kit_destroy(c);
    c = lt_backend(w, w->fake, "force", NULL);
    lt_ends_with(c, "cuBLASLt 13.1.0");
    kit_destroy(c);
    assert_true(w->fake_cuda(""));
}

// Free mode is only for measurements: the library may split sums, and a row's bits depend on the
// other rows of its batch.
static void free_choice(void **state) {
    struct lt_world *w = *state;
    assert_true(w->own->flags & RLHF_COMPUTE_ROW_EXACT);
    assert_true(w->fake_cuda("sm=80"));
    rlhf_compute *c = lt_backend(w, w->fake, "free", "hostile");
    assert_true(w->fake_cuda(""));
    assert_false(c->flags & RLHF_COMPUTE_ROW_EXACT);
    lt_ends_with(c, "cuBLASLt 13.1.0, not row exact (RLHF_CUDA_LT=free)");
    struct kit k = w->kit;
    k.cpu1 = k.cpu2 = c;
    for (size_t i = 0; i < LT_TAKEN; i++) {
        const uint64_t before = w->products();
        lt_matches(&k, &lt_taken[i]);
        assert_true(w->products() == before + 1); // without a canary
    }
    const struct lt_shape s = {LINEAR, 70, 64, 96, B, F, 0, 0, 0, 0};
    struct outputs some, all;
    uint64_t differ = 0;
    op_run(c, lt_run, &s, 40, &some);
    op_run(c, lt_run, &s, 70, &all);
    for (uint64_t i = 0; i < 40 * 96; i++)
        differ += some.o[0].v[i] != all.o[0].v[i];
    assert_true(differ > 0);
    outputs_finish(&some);
    outputs_finish(&all);
    lt_ends_with(c, "cuBLASLt 13.1.0, not row exact (RLHF_CUDA_LT=free)");
    kit_destroy(c);
    c = lt_backend(w, NULL, "free", NULL); // only the backend's own kernels
    assert_true(c->flags & RLHF_COMPUTE_ROW_EXACT);
    kit_destroy(c);
}

static void refused_setting(void **state) {
    struct lt_world *w = *state;
    struct rlhf_test_backend b;
    const rlhf_kernels_open opt = {.size = sizeof opt, .threads = 1};
    setenv("RLHF_CUDA_LT", "maybe", 1);
    assert_int_equal(rlhf_test_backend_open(&b, w->cuda, &opt), RLHF_E_UNSUPPORTED);
    assert_string_equal(b.said, "RLHF_CUDA_LT is \"maybe\", allowed are off, force, free");
    rlhf_test_backend_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(hostile),
                                       cmocka_unit_test(restless),
                                       cmocka_unit_test(unasked),
                                       cmocka_unit_test(own_products_only),
                                       cmocka_unit_test(found_in_directory),
                                       cmocka_unit_test(no_room_to_prove),
                                       cmocka_unit_test(no_room_to_sum),
                                       cmocka_unit_test(older_card),
                                       cmocka_unit_test(free_choice),
                                       cmocka_unit_test(refused_setting)};
    return cmocka_run_group_tests_name("cuda: cuBLASLt refused", tests, lt_setup, lt_teardown);
}
