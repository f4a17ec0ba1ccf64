// lt_kit.c: GEMMs on the fake cuBLASLt (lt_kit.h).
#include "cuda/lt_kit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rlhf_compute *lt_backend(struct lt_world *w, const char *file, const char *lt, const char *fake) {
    const char *const names[] = {"RLHF_CUBLASLT", "RLHF_CUDA_LT", "FAKE_LT"};
    const char *const values[] = {file, lt, fake};
    for (int i = 0; i < 3; i++)
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
    return kit_create(w->cuda, 1, 0, 0);
}

rlhf_compute *lt_with_fake(struct lt_world *w, const char *mode) {
    return lt_backend(w, w->fake, NULL, mode);
}

int lt_setup(void **state) {
    struct lt_world *w = calloc(1, sizeof *w);
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!build) fail_msg("RLHF_BUILD_DIR is not set; run through ctest");
    snprintf(w->fake, sizeof w->fake, "%s/tests/cuda/fake_cublaslt.so", build);
    snprintf(w->lacking, sizeof w->lacking, "%s/tests/cuda/fake_cublaslt_short.so", build);
    w->kit.kernels_ref = kit_load("reference", &w->kit.so_ref);
    w->kit.ref = kit_create(w->kit.kernels_ref, 1, 0, 0);
    w->cuda = kit_load("cuda_emu", &w->so_cuda);
    w->own = lt_backend(w, NULL, "off", NULL);
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

int lt_teardown(void **state) {
    struct lt_world *w = *state;
    kit_destroy(w->own);
    kit_destroy(w->kit.ref);
    free(w);
    return 0;
}

// ---- ops ----

static rlhf_dev shifted(struct call *k, const float *x, uint64_t n, int32_t dtype, uint32_t by) {
    float *y = call_host(k, (n + by) * sizeof *y);
    memcpy(y + by, x, n * sizeof *y);
    return rlhf_dev_at(call_floats(k, y, n + by, dtype), by * rlhf_dtype_size(dtype));
}

void lt_run(struct call *c, const void *shape, struct outputs *out) {
    const struct lt_shape *s = shape;
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

const struct lt_shape lt_taken[LT_TAKEN] = {
    {LINEAR, 70, 64, 96, B, F, 0, 0, 1, 0},     {LINEAR, 70, 64, 96, B, F, OI, 1, 0, 0},
    {LINEAR, 70, 64, 96, B, B, 0, 0, 0, 0},     {LINEAR, 70, 128, 24, F, F, OI, 0, 1, 0},
    {LINEAR, 70, 128, 24, F, F, 0, 1, 1, 0},    {LINEAR_ADD, 70, 96, 64, B, F, 0, 0, 1, 0},
    {LINEAR_ADD, 70, 96, 64, F, F, 0, 0, 0, 0}, {LINEAR_DX, 70, 64, 96, B, B, 0, 0, 0, 0},
    {LINEAR_DX, 70, 64, 96, B, F, 0, 1, 0, 0},  {LINEAR_DX, 70, 128, 24, F, F, OI, 0, 0, 0},
    {LINEAR_DW, 70, 64, 96, B, F, 0, 0, 0, 0},  {LINEAR_DW, 70, 64, 96, B, F, OI, 0, 0, 0},
    {LINEAR_DW, 333, 32, 24, F, F, 0, 0, 0, 0}, {LINEAR_DW, 333, 32, 24, F, F, OI, 0, 0, 0},
    {LINEAR, 300, 1024, 24, B, B, 0, 0, 1, 0},  {LINEAR, 70, 64, 96, B, B, OI, 0, 1, 0}};

void lt_same_bits(const struct outputs *a, const struct outputs *b) {
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint64_t j = 0; j < a->o[i].n * a->o[i].width; j++)
            if (a->o[i].v[j] != b->o[i].v[j])
                fail_msg("%s: element %llu is %.9g and %.9g", a->label, (unsigned long long)j,
                         a->o[i].v[j], b->o[i].v[j]);
}

void lt_compare_bits(rlhf_compute *a, rlhf_compute *b, const struct lt_shape *s) {
    struct outputs x, y;
    op_run(a, lt_run, s, s->rows, &x);
    op_run(b, lt_run, s, s->rows, &y);
    lt_same_bits(&x, &y);
    outputs_finish(&x);
    outputs_finish(&y);
}

static const struct bound f32_bound = {2e-11, 5e-5}, bf16_bound = {1e-8, 2e-2};
// Wider bounds for two cases. deep_bound is for long sums: the two backends add them in different
// orders, so a result may round to the other neighbor. bias_bound is for bf16 results with a bias,
// which the library rounds to bf16, too.
static const struct bound deep_bound = {1e-6, 2e-2}, bias_bound = {1e-5, 5e-2};

void lt_matches(struct kit *k, const struct lt_shape *s) {
    const int rounds = s->bias && s->out_dtype == B;
    check_match(k, lt_run, s, s->rows, f32_bound,
                rounds        ? bias_bound
                : s->k < 1024 ? bf16_bound
                              : deep_bound);
}

void lt_ends_with(const rlhf_compute *c, const char *text) {
    const size_t n = strlen(text), len = strlen(c->detail);
    printf("  %s\n", c->detail);
    if (len < n || strcmp(c->detail + len - n, text) != 0)
        fail_msg("the detail is \"%s\", expected \"%s\" at its end", c->detail, text);
}
