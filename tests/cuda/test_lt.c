// test_lt.c: products by cuBLASLt, on the fake of it: the values of the own products, row for row
// the same bits in any company, and own products wherever the library is missing, too old, offers
// nothing, cannot take a shape, or is not row exact.
#include "cuda/fake_lt.h"
#include "kernels/kit.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct world {
    struct kit kit; // reference, and no more of it
    void *so_cuda, *so_fake;
    const rlhf_kernels *cuda;
    rlhf_compute *own; // without the library
    uint64_t (*products)(void);
    uint64_t (*largest)(void);
    int (*tile)(void);
    bool (*fake_cuda)(const char *settings);
    char fake[4096], lacking[4096];
};

// A backend with RLHF_CUBLASLT, RLHF_CUDA_LT and FAKE_LT set so; NULL: not set.
static rlhf_compute *backend(struct world *w, const char *file, const char *lt, const char *fake) {
    const char *const names[] = {"RLHF_CUBLASLT", "RLHF_CUDA_LT", "FAKE_LT"};
    const char *const values[] = {file, lt, fake};
    for (int i = 0; i < 3; i++)
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    return kit_create(w->cuda, 1, 0, 0);
}

static rlhf_compute *with_fake(struct world *w, const char *mode) {
    return backend(w, w->fake, NULL, mode);
}

static int setup(void **state) {
    struct world *w = calloc(1, sizeof *w);
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!build) fail_msg("RLHF_BUILD_DIR is not set; run through ctest");
    snprintf(w->fake, sizeof w->fake, "%s/tests/cuda/fake_cublaslt.so", build);
    snprintf(w->lacking, sizeof w->lacking, "%s/tests/cuda/fake_cublaslt_short.so", build);
    w->kit.kernels_ref = kit_load("reference", &w->kit.so_ref);
    w->kit.ref = kit_create(w->kit.kernels_ref, 1, 0, 0);
    w->cuda = kit_load("cuda_emu", &w->so_cuda);
    w->own = backend(w, NULL, "off", NULL);
    w->so_fake = dlopen(w->fake, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!w->so_fake) fail_msg("%s", dlerror());
    void *f = dlsym(w->so_fake, "fake_lt_products");
    assert_non_null(f);
    memcpy(&w->products, &f, sizeof f);
    f = dlsym(w->so_fake, "fake_lt_largest");
    assert_non_null(f);
    memcpy(&w->largest, &f, sizeof f);
    f = dlsym(w->so_fake, "fake_lt_tile");
    assert_non_null(f);
    memcpy(&w->tile, &f, sizeof f);
    f = dlsym(w->so_cuda, "rlhf__fake_cuda");
    assert_non_null(f);
    memcpy(&w->fake_cuda, &f, sizeof f);
    *state = w;
    return 0;
}

static int teardown(void **state) {
    struct world *w = *state;
    w->cuda->destroy(w->own);
    w->kit.kernels_ref->destroy(w->kit.ref);
    free(w);
    return 0;
}

// ---- ops ----

enum op { LINEAR, LINEAR_ADD, LINEAR_DX, LINEAR_DW };

struct shape {
    enum op op;
    uint32_t rows;
    int32_t k, n, dtype, out_dtype, flags, accumulate, bias;
    uint32_t shift; // elements by which every operand lies behind a multiple of 16 bytes
};

static rlhf_dev shifted(struct call *k, const float *x, uint64_t n, int32_t dtype, uint32_t by) {
    float *y = call_host(k, (n + by) * sizeof *y);
    memcpy(y + by, x, n * sizeof *y);
    return rlhf_dev_at(call_floats(k, y, n + by, dtype), by * rlhf_dtype_size(dtype));
}

static void run(struct call *c, const void *shape, struct outputs *out) {
    const struct shape *s = shape;
    rlhf_compute *t = c->c;
    const uint64_t rows = c->n_rows, k = (uint64_t)s->k, n = (uint64_t)s->n;
    const int dx = s->op == LINEAR_DX, dw = s->op == LINEAR_DW;
    const uint64_t in = dx ? n : k, cols = dx ? k : n;
    static const char *const names[] = {"linear", "linear_add", "linear_dx", "linear_dw"};
    snprintf(out->label, sizeof out->label, "%s %u x %d x %d %s -> %s%s%s%s, shifted by %u",
             names[s->op], s->rows, s->k, s->n, s->dtype == RLHF_BF16 ? "bf16" : "f32",
             s->out_dtype == RLHF_BF16 ? "bf16" : "f32", s->flags ? " [n,k]" : "",
             s->accumulate ? " add" : "", s->bias ? " bias" : "", s->shift);
    rlhf_weight *w = call_weight(c, call_normal(c, 1, k * n, 0.1), s->k, s->n, s->dtype,
                                 (uint32_t)s->flags | RLHF_WEIGHT_BACKWARD);
    rlhf_dev x = shifted(c, call_normal_rows(c, 2, in, 1.0), rows * in, s->dtype, s->shift);
    rlhf_dev bias = NULL;
    if (s->bias) bias = shifted(c, call_normal(c, 4, n, 1.0), n, RLHF_F32, s->shift);
    if (dw) {
        rlhf_dev dy = shifted(c, call_normal_rows(c, 3, n, 1.0), rows * n, s->dtype, s->shift);
        rlhf_dev to = shifted(c, call_normal(c, 5, n * k, 1.0), n * k, RLHF_F32, s->shift);
        KIT_OK(t, t->linear_dw(t->ctx, to, NULL, x, dy, w, (uint32_t)rows));
        outputs_add(out, c, "dw", to, RLHF_F32, n, k, NULL);
        return;
    }
    rlhf_dev y = shifted(c, call_normal_rows(c, 3, cols, 1.0), rows * cols, s->out_dtype, s->shift);
    if (s->op == LINEAR_ADD) {
        rlhf_dev add =
            shifted(c, call_normal_rows(c, 6, cols, 1.0), rows * cols, RLHF_F32, s->shift);
        KIT_OK(t, t->linear_add(t->ctx, y, add, x, w, bias, (uint32_t)rows));
    } else if (dx)
        KIT_OK(t, t->linear_dx(t->ctx, y, s->out_dtype, s->accumulate, x, w, (uint32_t)rows));
    else
        KIT_OK(t, t->linear(t->ctx, y, s->out_dtype, s->accumulate, x, w, bias, (uint32_t)rows));
    outputs_add(out, c, "out", y, s->out_dtype, rows, cols, c->rows);
}

enum { F = RLHF_F32, B = RLHF_BF16, OI = RLHF_WEIGHT_OUT_IN };

// What the library takes.
static const struct shape taken[] = {
    {LINEAR, 70, 64, 96, B, F, 0, 0, 1, 0},     {LINEAR, 70, 64, 96, B, F, OI, 1, 0, 0},
    {LINEAR, 70, 64, 96, B, B, 0, 0, 0, 0},     {LINEAR, 70, 128, 24, F, F, OI, 0, 1, 0},
    {LINEAR, 70, 128, 24, F, F, 0, 1, 1, 0},    {LINEAR_ADD, 70, 96, 64, B, F, 0, 0, 1, 0},
    {LINEAR_ADD, 70, 96, 64, F, F, 0, 0, 0, 0}, {LINEAR_DX, 70, 64, 96, B, B, 0, 0, 0, 0},
    {LINEAR_DX, 70, 64, 96, B, F, 0, 1, 0, 0},  {LINEAR_DX, 70, 128, 24, F, F, OI, 0, 0, 0},
    {LINEAR_DW, 70, 64, 96, B, F, 0, 0, 0, 0},  {LINEAR_DW, 70, 64, 96, B, F, OI, 0, 0, 0},
    {LINEAR_DW, 333, 32, 24, F, F, 0, 0, 0, 0}, {LINEAR_DW, 333, 32, 24, F, F, OI, 0, 0, 0},
    {LINEAR, 300, 1024, 24, B, B, 0, 0, 1, 0},  {LINEAR, 70, 64, 96, B, B, OI, 0, 1, 0}};

// Shapes that never go to the library: rows whose size is not a multiple of 16 bytes, few outputs.
static const struct shape own[] = {
    {LINEAR, 70, 1024, 27, B, B, OI, 0, 1, 0}, {LINEAR, 70, 100, 96, B, F, 0, 0, 0, 0},
    {LINEAR, 70, 64, 97, B, F, 0, 0, 1, 0},    {LINEAR, 70, 66, 98, F, F, OI, 0, 1, 0},
    {LINEAR, 70, 64, 2, F, F, OI, 0, 1, 0},    {LINEAR_DX, 70, 64, 97, B, F, 0, 0, 0, 0},
    {LINEAR_DW, 70, 63, 97, B, F, 0, 0, 0, 0}};

static void same_bits(const struct outputs *a, const struct outputs *b) {
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint64_t j = 0; j < a->o[i].n * a->o[i].width; j++)
            if (a->o[i].v[j] != b->o[i].v[j])
                fail_msg("%s: element %llu is %.9g and %.9g", a->label, (unsigned long long)j,
                         a->o[i].v[j], b->o[i].v[j]);
}

static void compare_bits(rlhf_compute *a, rlhf_compute *b, const struct shape *s) {
    struct outputs x, y;
    op_run(a, run, s, s->rows, &x);
    op_run(b, run, s, s->rows, &y);
    same_bits(&x, &y);
    outputs_finish(&x);
    outputs_finish(&y);
}

static const struct bound f32_bound = {2e-11, 5e-5}, bf16_bound = {1e-8, 2e-2};
// Long sums in another order: now and then one is rounded to the other neighbour. A bias before a
// bf16 result is rounded itself.
static const struct bound deep_bound = {1e-6, 2e-2}, bias_bound = {1e-5, 5e-2};

static void matches(struct kit *k, const struct shape *s) {
    const int rounds = s->bias && s->out_dtype == B;
    check_match(k, run, s, s->rows, f32_bound,
                rounds        ? bias_bound
                : s->k < 1024 ? bf16_bound
                              : deep_bound);
}

// ---- the library as it should be ----

static void honest(void **state) {
    struct world *w = *state;
    rlhf_compute *c = with_fake(w, NULL);
    assert_string_equal(c->detail + strlen(c->detail) - strlen("cuBLASLt 13.1.0"),
                        "cuBLASLt 13.1.0");
    struct kit k = w->kit;
    k.cpu1 = k.cpu2 = c;
    for (size_t i = 0; i < CHECK_COUNT(taken); i++) {
        matches(&k, &taken[i]);
        const uint64_t before = w->products();
        struct outputs out;
        op_run(c, run, &taken[i], taken[i].rows, &out);
        outputs_finish(&out);
        // Nothing but the product: the shape is known.
        if (w->products() != before + 1)
            fail_msg("%s: %llu library products", out.label,
                     (unsigned long long)(w->products() - before));
        if (taken[i].op != LINEAR_DW) check_rows(c, run, &taken[i], taken[i].rows);
        compare_bits(c, c, &taken[i]);
    }
    w->cuda->destroy(c);
}

// A bias before a result in bf16 is rounded to bf16 and added in f32; the sum is rounded once.
static void bias_rounded(void **state) {
    static const uint32_t rows[70];
    enum { K = 64, N = 24, ROWS = 70 };
    struct world *w = *state;
    struct call k = {.c = with_fake(w, NULL), .rows = rows, .n_rows = ROWS};
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
    w->cuda->destroy(c);
}

static void not_for_the_library(void **state) {
    struct world *w = *state;
    rlhf_compute *c = with_fake(w, NULL);
    for (size_t i = 0; i < CHECK_COUNT(own); i++) {
        struct outputs out;
        compare_bits(c, w->own, &own[i]);
        const uint64_t before = w->products();
        op_run(c, run, &own[i], own[i].rows, &out);
        outputs_finish(&out);
        assert_int_equal(w->products(), before);
    }
    w->cuda->destroy(c);
}

// The canary runs when a weight is packed for the first time, and no later product of it searches.
static void decided_at_pack(void **state) {
    struct world *w = *state;
    rlhf_compute *c = with_fake(w, NULL);
    struct call k = {.c = c};
    const uint64_t before = w->products();
    call_weight(&k, call_normal(&k, 1, 64 * 96, 0.1), 64, 96, RLHF_BF16, RLHF_WEIGHT_BACKWARD);
    const uint64_t canary = w->products() - before;
    assert_true(canary >= 40);
    call_weight(&k, call_normal(&k, 1, 64 * 96, 0.1), 64, 96, RLHF_BF16, RLHF_WEIGHT_BACKWARD);
    assert_int_equal(w->products(), before + canary); // the same shape again
    const struct shape forms[] = {
        {LINEAR, 9, 64, 96, B, F, 0, 0, 1, 0},    {LINEAR, 9, 64, 96, B, F, 0, 1, 0, 0},
        {LINEAR, 9, 64, 96, B, B, 0, 0, 0, 0},    {LINEAR_ADD, 9, 64, 96, B, F, 0, 0, 1, 0},
        {LINEAR_DX, 9, 64, 96, B, B, 0, 0, 0, 0}, {LINEAR_DX, 9, 64, 96, B, F, 0, 1, 0, 0}};
    for (size_t i = 0; i < CHECK_COUNT(forms); i++) {
        struct outputs out;
        op_run(c, run, &forms[i], forms[i].rows, &out);
        outputs_finish(&out);
        assert_int_equal(w->products(), before + canary + i + 1);
    }
    call_finish(&k);
    const uint64_t in_use = c->bytes_in_use(c->ctx);
    assert_true(in_use < 64 << 20); // the canary's buffers are gone
    w->cuda->destroy(c);
}

// The LM head's products are as wide as what fills up the weight: decided at pack, too, so the
// first of them may lie in a recording.
static void head_decided_at_pack(void **state) {
    struct world *w = *state;
    rlhf_compute *c = with_fake(w, NULL);
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
    w->cuda->destroy(c);
}

// An operand at an odd address does not change hands, and not a bit.
static void odd_addresses(void **state) {
    struct world *w = *state;
    rlhf_compute *c = with_fake(w, NULL);
    for (size_t i = 0; i < CHECK_COUNT(taken); i++) {
        if (taken[i].op == LINEAR_DW) continue; // repeats itself, no more
        struct shape s = taken[i];
        struct outputs x, y;
        op_run(c, run, &s, s.rows, &x);
        s.shift = 1;
        const uint64_t before = w->products();
        op_run(c, run, &s, s.rows, &y);
        assert_int_equal(w->products(), before + 1);
        same_bits(&x, &y);
        outputs_finish(&x);
        outputs_finish(&y);
    }
    w->cuda->destroy(c);
}

// ---- which algorithm, and for how many rows ----

static void run_rows(rlhf_compute *c, uint32_t rows, struct outputs *out) {
    const struct shape s = {LINEAR, rows, 32, 24, F, F, 0, 1, 1, 0};
    op_run(c, run, &s, rows, out);
}

// Among algorithms of the same bits the card's clock decides, separately for few rows and for many;
// one with other bits is not used together with the first, however fast it is.
static void fastest_of_equals(void **state) {
    struct world *w = *state;
    for (int unlike = 0; unlike < 2; unlike++) {
        rlhf_compute *c = with_fake(w, unlike ? "unlike" : "honest");
        struct outputs few, many;
        run_rows(c, 70, &few);
        assert_int_equal(w->tile(), unlike ? 128 : 64);
        run_rows(c, 1500, &many);
        assert_int_equal(w->tile(), 128);
        for (uint64_t i = 0; i < 70 * 24; i++)
            assert_true(few.o[0].v[i] == many.o[0].v[i]);
        outputs_finish(&few);
        outputs_finish(&many);
        w->cuda->destroy(c);
    }
}

// A call of more rows than the plan was proved with is proved first, once.
static void proved_again(void **state) {
    struct world *w = *state;
    rlhf_compute *c = with_fake(w, "honest");
    struct outputs out;
    run_rows(c, 70, &out); // 1,536 rows are proved, what the emulated card takes in three turns
    outputs_finish(&out);
    for (int again = 0; again < 2; again++) {
        const uint64_t before = w->products();
        w->largest();
        run_rows(c, 3000, &out);
        outputs_finish(&out);
        assert_int_equal(w->largest(), again ? 3000 : 4096);
        if (again) assert_int_equal(w->products(), before + 1);
    }
    w->cuda->destroy(c);
}

// A product that is not row exact beyond some number of rows is made in pieces of a proved size.
static void pieces(void **state) {
    struct world *w = *state;
    rlhf_compute *honest = with_fake(w, "honest"), *c = with_fake(w, "giant");
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
    same_bits(&got, &want);
    outputs_finish(&few);
    outputs_finish(&want);
    outputs_finish(&got);
    w->cuda->destroy(honest);
    w->cuda->destroy(c);
}

// RLHF_CUDA_LT_LOG gets a line for every decision.
static void decisions_logged(void **state) {
    struct world *w = *state;
    char path[] = "/tmp/rlhf-lt-XXXXXX", line[512];
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    setenv("RLHF_CUDA_LT_LOG", path, 1);
    rlhf_compute *c = with_fake(w, "giant");
    struct outputs out;
    run_rows(c, 3000, &out);
    outputs_finish(&out);
    w->cuda->destroy(c);
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

// RLHF_CUBLASLT may name a directory.
static void found_in_directory(void **state) {
    struct world *w = *state;
    char dir[] = "/tmp/rlhf-lt-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/libcublasLt.so.13", dir);
    assert_int_equal(symlink(w->fake, path), 0);
    rlhf_compute *c = backend(w, dir, NULL, NULL);
    assert_non_null(strstr(c->detail, "cuBLASLt 13.1.0"));
    w->cuda->destroy(c);
    remove(path);
    remove(dir);
    c = backend(w, "/proc", NULL, NULL); // a directory without it
    assert_non_null(strstr(c->detail, "own products (cuBLASLt: /proc/libcublasLt.so.13: "));
    w->cuda->destroy(c);
}

// ---- the library as it should not be ----

static void ends_with(const rlhf_compute *c, const char *text) {
    const size_t n = strlen(text), len = strlen(c->detail);
    printf("  %s\n", c->detail);
    if (len < n || strcmp(c->detail + len - n, text) != 0)
        fail_msg("the detail is \"%s\", expected \"%s\" at its end", c->detail, text);
}

static void hostile(void **state) {
    struct world *w = *state;
    rlhf_compute *c = with_fake(w, "hostile");
    for (size_t i = 0; i < CHECK_COUNT(taken); i++) {
        if (taken[i].op == LINEAR_DW) continue;
        compare_bits(c, w->own, &taken[i]);
        check_rows(c, run, &taken[i], taken[i].rows);
    }
    ends_with(c, "cuBLASLt 13.1.0; own products for shapes, 30 that it is not row exact on");
    w->cuda->destroy(c);
}

// A sum over rows that does not repeat itself, at once or after other work, is the own product's.
static void restless(void **state) {
    static const char *const modes[] = {"restless", "residue"};
    struct world *w = *state;
    for (size_t m = 0; m < CHECK_COUNT(modes); m++) {
        rlhf_compute *c = with_fake(w, modes[m]);
        for (size_t i = 0; i < CHECK_COUNT(taken); i++) {
            if (taken[i].op != LINEAR_DW) continue;
            compare_bits(c, w->own, &taken[i]);
            const uint64_t before = w->products();
            compare_bits(c, c, &taken[i]);
            assert_int_equal(w->products(), before);
        }
        ends_with(c, "cuBLASLt 13.1.0; own products for shapes, 8 that it does not repeat");
        w->cuda->destroy(c);
    }
}

// ---- Muon: all sizes of its products are the matrix's ----

struct matrix {
    int32_t rows, cols;
};

static void muon_run(struct call *c, const void *shape, struct outputs *out) {
    const struct matrix *s = shape;
    const uint64_t n = (uint64_t)s->rows * (uint64_t)s->cols;
    const rlhf_muon a = {sizeof a, 1, 5, 0, 0.02, 0.95, 0.1, 1.0};
    rlhf_dev w = call_floats(c, call_normal(c, 1, n, 1.0), n, RLHF_F32);
    rlhf_dev g = call_floats(c, call_normal(c, 2, n, 1.0), n, RLHF_F32);
    rlhf_dev m = call_floats(c, call_normal(c, 3, n, 1.0), n, RLHF_F32);
    snprintf(out->label, sizeof out->label, "muon %d x %d", s->rows, s->cols);
    KIT_OK(c->c, c->c->muon(c->c->ctx, w, g, m, s->rows, s->cols, &a));
    outputs_add(out, c, "w", w, RLHF_F32, (uint64_t)s->rows, (uint64_t)s->cols, NULL);
}

static void muon_products(void **state) {
    static const struct matrix sizes[] = {{64, 96}, {200, 48}, {64, 64}};
    static const struct bound bound = {1e-5, 1e-2};
    static const char *const lt[] = {NULL, "free"};
    struct world *w = *state;
    for (int f = 0; f < 2; f++) {
        rlhf_compute *c = backend(w, w->fake, lt[f], "honest");
        struct kit k = w->kit;
        k.cpu1 = k.cpu2 = c;
        for (size_t i = 0; i < CHECK_COUNT(sizes); i++) {
            check_match(&k, muon_run, &sizes[i], 1, bound, bound);
            const uint64_t before = w->products();
            struct outputs out;
            op_run(c, muon_run, &sizes[i], 1, &out);
            outputs_finish(&out);
            assert_int_equal(w->products(), before + 3 * 5);
        }
        ends_with(c, f ? "not row exact (RLHF_CUDA_LT=free)" : "cuBLASLt 13.1.0");
        w->cuda->destroy(c);
    }
    rlhf_compute *c = with_fake(w, "restless");
    struct outputs x, y;
    op_run(c, muon_run, &sizes[0], 1, &x);
    op_run(w->own, muon_run, &sizes[0], 1, &y);
    same_bits(&x, &y);
    outputs_finish(&x);
    outputs_finish(&y);
    ends_with(c, "; own products for shapes, 3 that it does not repeat");
    w->cuda->destroy(c);
}

// A split of k and TF32, offered although the search forbids them, are dropped before the canary.
static void unasked(void **state) {
    struct world *w = *state;
    rlhf_compute *c = with_fake(w, "unasked");
    struct kit k = w->kit;
    k.cpu1 = k.cpu2 = c;
    for (size_t i = 0; i < CHECK_COUNT(taken); i++) {
        if (taken[i].op == LINEAR_DW) continue;
        const uint64_t before = w->products();
        matches(&k, &taken[i]);
        check_rows(c, run, &taken[i], taken[i].rows);
        assert_true(w->products() > before);
    }
    ends_with(c, "cuBLASLt 13.1.0");
    w->cuda->destroy(c);
}

static void own_products_only(void **state) {
    struct world *w = *state;
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
        rlhf_compute *c = backend(w, cases[i].file, cases[i].lt, cases[i].fake);
        const uint64_t before = w->products();
        ends_with(c, cases[i].text);
        compare_bits(c, w->own, &taken[0]);
        compare_bits(c, w->own, &taken[10]);
        assert_int_equal(w->products(), before);
        w->cuda->destroy(c);
    }
    rlhf_compute *c = with_fake(w, "none");
    compare_bits(c, w->own, &taken[10]);
    ends_with(c, "cuBLASLt 13.1.0; own products for shapes, 10 that it offers none");
    w->cuda->destroy(c);
}

// Without memory for the proof the own product takes over, and nobody fails.
static void no_room_to_prove(void **state) {
    struct world *w = *state;
    assert_true(w->fake_cuda("memory=600K"));
    rlhf_compute *c = with_fake(w, NULL);
    compare_bits(c, w->own, &taken[0]);
    ends_with(c, "own products for shapes, 10 that there was no memory to prove it on");
    assert_true(w->fake_cuda(""));
    const uint64_t before = w->products();
    compare_bits(c, w->own, &taken[0]); // what was decided holds
    assert_int_equal(w->products(), before);
    w->cuda->destroy(c);
}

// A sum over rows that cannot be proved for want of its workspace is the own product's for good;
// free, without a proof, it fails.
static void no_room_to_sum(void **state) {
    struct world *w = *state;
    static const uint32_t rows[70];
    assert_true(w->fake_cuda("memory=8M"));
    rlhf_compute *c = with_fake(w, NULL);
    compare_bits(c, w->own, &taken[10]);
    ends_with(c, " that there was no memory to prove it on");
    assert_true(w->fake_cuda(""));
    const uint64_t before = w->products();
    compare_bits(c, w->own, &taken[10]);
    assert_int_equal(w->products(), before);
    w->cuda->destroy(c);
    assert_true(w->fake_cuda("memory=8M"));
    c = backend(w, w->fake, "free", NULL);
    struct call k = {.c = c, .rows = rows, .n_rows = 70};
    rlhf_weight *m = call_weight(&k, call_normal(&k, 1, 64 * 96, 0.1), 64, 96, B, 0);
    rlhf_dev x = call_zeros(&k, 70 * 64, B), dy = call_zeros(&k, 70 * 96, B);
    rlhf_dev dw = call_zeros(&k, 64 * 96, F);
    assert_int_equal(c->linear_dw(c->ctx, dw, NULL, x, dy, m, 70), RLHF_E_NOMEM);
    assert_non_null(strstr(c->last_error(c->ctx), "out of device memory"));
    call_finish(&k);
    w->cuda->destroy(c);
    assert_true(w->fake_cuda(""));
}

// Below compute capability 9.0 splitting k is not the only thing that ties rows together.
static void older_card(void **state) {
    struct world *w = *state;
    assert_true(w->fake_cuda("sm=80"));
    rlhf_compute *c = with_fake(w, NULL);
    ends_with(c, "own products (cuBLASLt is used from compute capability 9.0 on)");
    compare_bits(c, w->own, &taken[0]);
    w->cuda->destroy(c);
    c = backend(w, w->fake, "force", NULL);
    ends_with(c, "cuBLASLt 13.1.0");
    w->cuda->destroy(c);
    assert_true(w->fake_cuda(""));
}

// For measuring only: sums taken apart as the library likes, and a row's bits show in what company
// it came.
static void free_choice(void **state) {
    struct world *w = *state;
    assert_true(w->own->flags & RLHF_COMPUTE_ROW_EXACT);
    assert_true(w->fake_cuda("sm=80"));
    rlhf_compute *c = backend(w, w->fake, "free", "hostile");
    assert_true(w->fake_cuda(""));
    assert_false(c->flags & RLHF_COMPUTE_ROW_EXACT);
    ends_with(c, "cuBLASLt 13.1.0, not row exact (RLHF_CUDA_LT=free)");
    struct kit k = w->kit;
    k.cpu1 = k.cpu2 = c;
    for (size_t i = 0; i < CHECK_COUNT(taken); i++) {
        const uint64_t before = w->products();
        matches(&k, &taken[i]);
        assert_true(w->products() == before + 1); // and no canary
    }
    const struct shape s = {LINEAR, 70, 64, 96, B, F, 0, 0, 0, 0};
    struct outputs some, all;
    uint64_t differ = 0;
    op_run(c, run, &s, 40, &some);
    op_run(c, run, &s, 70, &all);
    for (uint64_t i = 0; i < 40 * 96; i++)
        differ += some.o[0].v[i] != all.o[0].v[i];
    assert_true(differ > 0);
    outputs_finish(&some);
    outputs_finish(&all);
    ends_with(c, "cuBLASLt 13.1.0, not row exact (RLHF_CUDA_LT=free)");
    w->cuda->destroy(c);
    c = backend(w, NULL, "free", NULL); // own products only
    assert_true(c->flags & RLHF_COMPUTE_ROW_EXACT);
    w->cuda->destroy(c);
}

static void refused_setting(void **state) {
    struct world *w = *state;
    char err[256] = "";
    rlhf_compute *c = NULL;
    const rlhf_kernels_options opt = {.size = sizeof opt, .threads = 1};
    setenv("RLHF_CUDA_LT", "maybe", 1);
    assert_int_equal(w->cuda->create(&opt, &c, err, sizeof err), RLHF_E_UNSUPPORTED);
    assert_string_equal(err, "RLHF_CUDA_LT is \"maybe\", allowed are off, force, free");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(honest),
                                       cmocka_unit_test(bias_rounded),
                                       cmocka_unit_test(not_for_the_library),
                                       cmocka_unit_test(decided_at_pack),
                                       cmocka_unit_test(head_decided_at_pack),
                                       cmocka_unit_test(no_room_to_prove),
                                       cmocka_unit_test(no_room_to_sum),
                                       cmocka_unit_test(fastest_of_equals),
                                       cmocka_unit_test(proved_again),
                                       cmocka_unit_test(pieces),
                                       cmocka_unit_test(decisions_logged),
                                       cmocka_unit_test(found_in_directory),
                                       cmocka_unit_test(odd_addresses),
                                       cmocka_unit_test(hostile),
                                       cmocka_unit_test(restless),
                                       cmocka_unit_test(muon_products),
                                       cmocka_unit_test(unasked),
                                       cmocka_unit_test(own_products_only),
                                       cmocka_unit_test(older_card),
                                       cmocka_unit_test(free_choice),
                                       cmocka_unit_test(refused_setting)};
    return cmocka_run_group_tests_name("cuda: cuBLASLt", tests, setup, teardown);
}
