// test_optim.c: the optimiser around the kernels: groups, clipping, skipping, state tensors.
// The arithmetic of AdamW and Muon themselves is tested in tests/kernels.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "learn/optim.h"
#include "model/compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct rlhf__compute *compute;
    const rlhf_compute *t;
    rlhf_param p[3]; // a trunk matrix 2 x 2, an embedding 2 x 2, a value head of 2
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__dirs dirs = {.exe = ""};
    struct rlhf__error err = {0, ""};
    snprintf(dirs.lib, sizeof dirs.lib, "%s/lib/rlhf/0", getenv("RLHF_BUILD_DIR"));
    struct rlhf__compute_spec spec = {.dirs = &dirs, .backend = "reference", .threads = 1};
    if (!f || rlhf__compute_open(&spec, &f->compute, &err) != RLHF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    f->t = f->compute->table;
    const rlhf_param p[3] = {{.name = "h.w", .shape = {2, 2}, .ndim = 2, .flags = RLHF_PARAM_DECAY},
                             {.name = "wte", .shape = {2, 2}, .ndim = 2, .flags = RLHF_PARAM_EMBED},
                             {.name = "v", .shape = {2}, .ndim = 1, .group = RLHF_PARAM_VALUE}};
    for (int i = 0; i < 3; i++) {
        f->p[i] = p[i];
        if (f->t->alloc(f->t->ctx, 16, &f->p[i].value) != RLHF_OK ||
            f->t->alloc(f->t->ctx, 16, &f->p[i].grad) != RLHF_OK)
            return -1;
    }
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        f->t->release(f->t->ctx, f->p[i].value);
        f->t->release(f->t->ctx, f->p[i].grad);
    }
    rlhf__compute_close(f->compute);
    free(f);
    return 0;
}

static const struct rlhf__optim_config config = {.lr = 0.1,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.999,
                                                 .eps = 1e-8,
                                                 .muon_lr = 0.02,
                                                 .muon_momentum = 0.95,
                                                 .max_skipped = 2};

static void set_grads(struct fixture *f, float value) {
    const float g[4] = {value, value, value, value};
    for (int i = 0; i < 3; i++)
        assert_int_equal(f->t->upload(f->t->ctx, f->p[i].grad, g, f->p[i].ndim == 2 ? 16 : 8), 0);
}

static float weight(struct fixture *f, int i) {
    float w[4] = {0};
    assert_int_equal(f->t->download(f->t->ctx, w, f->p[i].value, 8), 0);
    return w[0];
}

static struct rlhf__optim *made(struct fixture *f, const struct rlhf__optim_config *c,
                                double head_lr) {
    struct rlhf__optim *o = NULL;
    assert_int_equal(rlhf__optim_create(f->t, f->p, 3, c, head_lr, &o, NULL), RLHF_OK);
    return o;
}

// The first AdamW step moves by the learning rate, whatever the gradient.
static void groups_have_their_own_rates(void **state) {
    struct fixture *f = *state;
    struct rlhf__optim *o = made(f, &config, 0.5);
    struct rlhf__optim_report r;
    set_grads(f, 3);
    assert_int_equal(rlhf__optim_step(o, 0.5, 1, &r, NULL), RLHF_OK);
    assert_float_equal(weight(f, 0), -0.05f, 1e-6f);
    assert_float_equal(weight(f, 1), -0.05f, 1e-6f);
    assert_float_equal(weight(f, 2), -0.25f, 1e-6f);
    assert_float_equal((float)r.grad_norm, 3 * sqrtf(10), 1e-5f);
    assert_int_equal(o->count.step, 1);
    float g[4] = {1, 1, 1, 1};
    assert_int_equal(f->t->download(f->t->ctx, g, f->p[0].grad, 16), 0);
    for (int i = 0; i < 4; i++)
        assert_true(g[i] == 0);
    rlhf__optim_destroy(o);
}

// A frozen parameter has no state and no part in the norm, and needs no gradient.
static void frozen_parameters_stay(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0, ""};
    char name[64];
    rlhf_dev dev;
    const rlhf_param *p;
    rlhf_param without[3] = {f->p[0], f->p[1], f->p[2]};
    without[1].flags |= RLHF_PARAM_FROZEN;
    without[1].grad = NULL;
    struct rlhf__optim *o = NULL;
    struct rlhf__optim_report r;
    assert_int_equal(rlhf__optim_create(f->t, without, 3, &config, 0.5, &o, NULL), RLHF_OK);
    set_grads(f, 3);
    assert_int_equal(rlhf__optim_step(o, 0.5, 1, &r, NULL), RLHF_OK);
    assert_float_equal(weight(f, 0), -0.05f, 1e-6f);
    assert_float_equal(weight(f, 1), 0, 0);
    assert_float_equal(weight(f, 2), -0.25f, 1e-6f);
    assert_float_equal((float)r.grad_norm, 3 * sqrtf(6), 1e-5f);
    static const char *const want[] = {"m.h.w", "v.h.w", "m.v", "v.v"};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(rlhf__optim_tensor(o, i, name, sizeof name, &dev, &p), RLHF_OK);
        assert_string_equal(name, want[i]);
    }
    assert_int_equal(rlhf__optim_tensor(o, 4, name, sizeof name, &dev, &p), RLHF_E_INVALID);
    rlhf__optim_destroy(o);
    without[0].flags |= RLHF_PARAM_FROZEN;
    without[2].flags |= RLHF_PARAM_FROZEN;
    assert_int_equal(rlhf__optim_create(f->t, without, 3, &config, 0, &o, &err), RLHF_E_INVALID);
    assert_non_null(strstr(err.text, "nothing to train"));
    without[0].flags = 0;
    without[0].grad = NULL;
    assert_int_equal(rlhf__optim_create(f->t, without, 3, &config, 0, &o, &err), RLHF_E_INTERNAL);
}

// Gradients in one range are zeroed in one go, with what is between them; skipped or not.
static void a_range_of_gradients(void **state) {
    struct fixture *f = *state;
    struct rlhf__optim_report r;
    rlhf_param in[3];
    rlhf_dev all;
    float g[16];
    assert_int_equal(f->t->alloc(f->t->ctx, sizeof g, &all), RLHF_OK);
    for (int i = 0; i < 3; i++) {
        in[i] = f->p[i];
        in[i].grad = rlhf_dev_at(all, 20 * (uint64_t)i); // one float between
    }
    struct rlhf__optim *o = NULL;
    assert_int_equal(rlhf__optim_create(f->t, in, 3, &config, 0, &o, NULL), RLHF_OK);
    rlhf__optim_range(o, all, sizeof g);
    for (int skip = 0; skip < 2; skip++) {
        for (int i = 0; i < 16; i++)
            g[i] = 1;
        assert_int_equal(f->t->upload(f->t->ctx, all, g, sizeof g), RLHF_OK);
        assert_int_equal(rlhf__optim_step(o, 1, !skip, &r, NULL), RLHF_OK);
        assert_int_equal(f->t->download(f->t->ctx, g, all, sizeof g), RLHF_OK);
        for (int i = 0; i < 16; i++)
            assert_true(g[i] == 0);
        assert_float_equal((float)r.grad_norm, sqrtf(10), 1e-5f);
    }
    rlhf__optim_destroy(o);
    f->t->release(f->t->ctx, all);
}

static void muon_is_for_trunk_matrices(void **state) {
    struct fixture *f = *state;
    struct rlhf__optim_config c = config;
    c.kind = RLHF__OPTIM_MUON;
    struct rlhf__optim *o = made(f, &c, 0);
    char name[64];
    static const char *const want[] = {"momentum.h.w", "m.wte", "v.wte", "m.v", "v.v"};
    rlhf_dev dev;
    const rlhf_param *p;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(rlhf__optim_tensor(o, i, name, sizeof name, &dev, &p), RLHF_OK);
        assert_string_equal(name, want[i]);
    }
    assert_int_equal(rlhf__optim_tensor(o, 5, name, sizeof name, &dev, &p), RLHF_E_INVALID);
    rlhf__optim_destroy(o);
}

// One step from 0 with a rank-one gradient: u is the same vector whichever way the matrix is said
// to be stored, so the weights differ by the factor sqrt(outputs / inputs) alone.
static void muon_knows_how_a_matrix_is_stored(void **state) {
    struct fixture *f = *state;
    struct rlhf__optim_config c = config;
    struct rlhf__optim_report r;
    float w[2];
    c.kind = RLHF__OPTIM_MUON;
    for (int in_out = 0; in_out < 2; in_out++) {
        const float zero[4] = {0};
        f->p[0].shape[0] = 1;
        f->p[0].shape[1] = 4;
        f->p[0].flags = in_out ? RLHF_PARAM_IN_OUT : 0;
        assert_int_equal(f->t->upload(f->t->ctx, f->p[0].value, zero, 16), 0);
        set_grads(f, 1);
        struct rlhf__optim *o = made(f, &c, 0);
        assert_int_equal(rlhf__optim_step(o, 1, 1, &r, NULL), RLHF_OK);
        w[in_out] = weight(f, 0);
        rlhf__optim_destroy(o);
    }
    assert_true(w[0] < 0);
    assert_float_equal(w[1], 2 * w[0], 1e-6f); // 4 outputs of 1 input
}

static void the_norm_is_clipped(void **state) {
    struct fixture *f = *state;
    struct rlhf__optim_config c = config;
    c.max_grad_norm = 1;
    c.eps = 1; // so that the size of the gradient shows in the step
    struct rlhf__optim *o = made(f, &c, 0);
    struct rlhf__optim_report r;
    set_grads(f, 100);
    assert_int_equal(rlhf__optim_step(o, 1, 1, &r, NULL), RLHF_OK);
    assert_float_equal((float)r.grad_norm_clipped, 1, 1e-6f);
    float g = 1 / sqrtf(10); // each of ten entries of a vector of norm 1
    assert_float_equal(weight(f, 1), -0.1f * g / (g + 1), 1e-6f);
    rlhf__optim_destroy(o);
}

static void what_is_not_finite_is_skipped(void **state) {
    struct fixture *f = *state;
    struct rlhf__optim *o = made(f, &config, 0);
    struct rlhf__optim_report r;
    struct rlhf__error err = {0, ""};
    set_grads(f, NAN);
    assert_int_equal(rlhf__optim_step(o, 1, 1, &r, &err), RLHF_OK);
    assert_int_equal(r.skipped, 1);
    assert_true(weight(f, 0) == 0);
    set_grads(f, 1);
    assert_int_equal(rlhf__optim_step(o, 1, 1, &r, &err), RLHF_OK); // the NaN is gone
    assert_int_equal(r.skipped, 0);
    assert_int_equal(o->count.skipped, 1);
    set_grads(f, INFINITY);
    assert_int_equal(rlhf__optim_step(o, 1, 1, &r, &err), RLHF_OK);
    set_grads(f, 1);
    assert_int_equal(rlhf__optim_step(o, 1, 0, &r, &err),
                     RLHF_E_NUMERIC); // the loss was not finite
    assert_non_null(strstr(err.text, "2 steps in a row"));
    rlhf__optim_destroy(o);
}

// A backend without Muon serves AdamW, and says so when Muon is asked for.
static void an_op_that_the_backend_lacks_is_named(void **state) {
    struct fixture *f = *state;
    rlhf_compute table = *f->t;
    struct rlhf__optim_config c = config;
    struct rlhf__optim *o = NULL;
    struct rlhf__error err = {0, ""};
    table.size = RLHF_SIZE_TO(rlhf_compute, adamw);
    assert_int_equal(rlhf__optim_create(&table, f->p, 3, &c, 0, &o, &err), RLHF_OK);
    rlhf__optim_destroy(o);
    c.kind = RLHF__OPTIM_MUON;
    assert_int_equal(rlhf__optim_create(&table, f->p, 3, &c, 0, &o, &err), RLHF_E_UNSUPPORTED);
    assert_string_equal(err.text,
                        "the compute backend 'reference' does not support muon, which training "
                        "needs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups_have_their_own_rates, setup, teardown),
        cmocka_unit_test_setup_teardown(frozen_parameters_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(a_range_of_gradients, setup, teardown),
        cmocka_unit_test_setup_teardown(muon_is_for_trunk_matrices, setup, teardown),
        cmocka_unit_test_setup_teardown(muon_knows_how_a_matrix_is_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(the_norm_is_clipped, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_finite_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(an_op_that_the_backend_lacks_is_named, setup, teardown),
    };
    return cmocka_run_group_tests_name("optim", tests, NULL, NULL);
}
