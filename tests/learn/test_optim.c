// test_optim.c: the optimizer around the kernels: groups, clipping, skipping, state tensors.
// tests/kernels tests the arithmetic of AdamW and Muon.
#include "support/check.h"

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
    snprintf(dirs.lib, sizeof dirs.lib, "%s/lib/rlhf/1", getenv("RLHF_BUILD_DIR"));
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

static struct rlhf__share share; // share of the optimizers that create() makes

// Makes an optimizer of the parameters `p`.
static rlhf_status create(const rlhf_compute *t, const rlhf_param *p,
                          const struct rlhf__optim_config *c, double head_lr,
                          struct rlhf__optim **out, struct rlhf__error *err) {
    const struct rlhf__optim_spec spec = {
        .params = p, .n = 3, .config = c, .head_lr = head_lr, .share = &share};
    return rlhf__optim_open(t, &spec, out, err);
}

static struct rlhf__optim *made(struct fixture *f, const struct rlhf__optim_config *c,
                                double head_lr) {
    struct rlhf__optim *o = NULL;
    assert_int_equal(create(f->t, f->p, c, head_lr, &o, NULL), RLHF_OK);
    return o;
}

// The first AdamW step has the size of the learning rate for any gradient.
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
    rlhf__optim_close(o);
}

// A frozen parameter has no optimizer state, does not count in the norm, and needs no gradient.
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
    assert_int_equal(create(f->t, without, &config, 0.5, &o, NULL), RLHF_OK);
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
    rlhf__optim_close(o);
    without[0].flags |= RLHF_PARAM_FROZEN;
    without[2].flags |= RLHF_PARAM_FROZEN;
    assert_int_equal(create(f->t, without, &config, 0, &o, &err), RLHF_E_INVALID);
    assert_non_null(strstr(err.text, "nothing to train"));
    without[0].flags = 0;
    without[0].grad = NULL;
    assert_int_equal(create(f->t, without, &config, 0, &o, &err), RLHF_E_INTERNAL);
}

// Gradients in one range are zeroed together with the gaps between them, whether the step is
// skipped or not.
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
    const struct rlhf__optim_spec spec = {
        .params = in, .n = 3, .config = &config, .grads = all, .grads_bytes = sizeof g};
    assert_int_equal(rlhf__optim_open(f->t, &spec, &o, NULL), RLHF_OK);
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
    rlhf__optim_close(o);
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
    rlhf__optim_close(o);
}

// One step from 0 with a rank-one gradient. The direction u is the same vector for both storage
// orders, so the weights differ only by the factor sqrt(outputs / inputs).
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
        rlhf__optim_close(o);
    }
    assert_true(w[0] < 0);
    assert_float_equal(w[1], 2 * w[0], 1e-6f); // 4 outputs of 1 input
}

static void the_norm_is_clipped(void **state) {
    struct fixture *f = *state;
    struct rlhf__optim_config c = config;
    c.max_grad_norm = 1;
    c.eps = 1; // so that the step depends on the size of the gradient
    struct rlhf__optim *o = made(f, &c, 0);
    struct rlhf__optim_report r;
    set_grads(f, 100);
    assert_int_equal(rlhf__optim_step(o, 1, 1, &r, NULL), RLHF_OK);
    assert_float_equal((float)r.grad_norm_clipped, 1, 1e-6f);
    float g = 1 / sqrtf(10); // each of ten entries of a vector of norm 1
    assert_float_equal(weight(f, 1), -0.1f * g / (g + 1), 1e-6f);
    rlhf__optim_close(o);
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
    rlhf__optim_close(o);
}

// ---- lists of tensors ----

// The reference backend's table with counters of calls. If `singly` is set, it lacks the functions
// for lists.
struct counting {
    const rlhf_compute *inner;
    rlhf_compute table;
    int downloads, syncs, sumsqs;
};

static rlhf_status counted_download(void *ctx, void *dst, rlhf_dev src, uint64_t bytes) {
    struct counting *c = ctx;
    c->downloads++;
    return c->inner->download(c->inner->ctx, dst, src, bytes);
}

static rlhf_status counted_sync(void *ctx) {
    struct counting *c = ctx;
    c->syncs++;
    return c->inner->sync(c->inner->ctx);
}

static rlhf_status counted_sumsq(void *ctx, rlhf_dev x, uint64_t n, double *out) {
    struct counting *c = ctx;
    c->sumsqs++;
    return c->inner->sumsq(c->inner->ctx, x, n, out);
}

#define PASS(name, declared, passed)                                                               \
    static rlhf_status pass_##name declared {                                                      \
        const rlhf_compute *t = ((struct counting *)ctx)->inner;                                   \
        return t->name passed;                                                                     \
    }
PASS(alloc, (void *ctx, uint64_t bytes, rlhf_dev *out), (t->ctx, bytes, out))
PASS(zero, (void *ctx, rlhf_dev p, uint64_t bytes), (t->ctx, p, bytes))
PASS(adamw,
     (void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n, const rlhf_adamw *a),
     (t->ctx, w, g, m, v, n, a))
PASS(muon,
     (void *ctx, rlhf_dev w, rlhf_dev g, rlhf_dev m, int32_t rows, int32_t cols,
      const rlhf_muon *a),
     (t->ctx, w, g, m, rows, cols, a))
PASS(sumsq_many, (void *ctx, const rlhf_tensors *list, double max, int32_t skip, rlhf_dev clip),
     (t->ctx, list, max, skip, clip))
PASS(adamw_many, (void *ctx, const rlhf_tensors *list, const rlhf_adamw *a, rlhf_dev clip),
     (t->ctx, list, a, clip))

static void pass_release(void *ctx, rlhf_dev p) {
    const rlhf_compute *t = ((struct counting *)ctx)->inner;
    t->release(t->ctx, p);
}

static void counting_init(struct counting *c, const rlhf_compute *inner, int singly) {
    *c = (struct counting){.inner = inner, .table = *inner};
    c->table.ctx = c;
    c->table.alloc = pass_alloc;
    c->table.release = pass_release;
    c->table.download = counted_download;
    c->table.zero = pass_zero;
    c->table.sync = counted_sync;
    c->table.sumsq = counted_sumsq;
    c->table.adamw = pass_adamw;
    c->table.muon = pass_muon;
    c->table.sumsq_many = pass_sumsq_many;
    c->table.adamw_many = pass_adamw_many;
    if (singly) c->table.size = RLHF_SIZE_TO(rlhf_compute, muon);
}

// Four steps. The first is clipped, the second has a loss that is not finite, and the third has NaN
// gradients. The last is a plain step with another learning rate.
static void four_steps(struct fixture *f, struct counting *c, const struct rlhf__optim_config *how,
                       struct rlhf__optim_report r[4], float w[3][4]) {
    const float start[4] = {0.5f, -0.25f, 0.125f, 1}, grad[4] = {3, 0.01f, NAN, 0.02f};
    struct rlhf__optim *o = NULL;
    for (int i = 0; i < 3; i++)
        assert_int_equal(f->t->upload(f->t->ctx, f->p[i].value, start, 16), 0);
    assert_int_equal(create(&c->table, f->p, how, 0.5, &o, NULL), RLHF_OK);
    for (int s = 0; s < 4; s++) {
        set_grads(f, grad[s]);
        if (s == 3) o->config.lr = o->head_lr = 0.03;
        assert_int_equal(rlhf__optim_step(o, 0.7, s != 1, &r[s], NULL), RLHF_OK);
        if (s == 1) o->count.skipped_row = 0;
    }
    assert_int_equal(o->count.step, 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(f->t->download(f->t->ctx, w[i], f->p[i].value, 16), 0);
    rlhf__optim_close(o);
}

// Minibatches with shards take the step in blocks. Here the parameters fit into one block, so that
// even the norm has the same bits.
static void blocks_take_the_same_step(struct fixture *f, const struct rlhf__optim_config *c,
                                      const struct rlhf__optim_report want[4], float want_w[3][4]) {
    for (int singly = 0; singly < 2; singly++) {
        struct counting table;
        struct rlhf__optim_report got[4];
        float w[3][4];
        share = (struct rlhf__share){.shards = 4, .ranks = 1};
        counting_init(&table, f->t, singly);
        four_steps(f, &table, c, got, w);
        share = (struct rlhf__share){0};
        assert_memory_equal(w, want_w, sizeof w);
        for (int s = 0; s < 4; s++) {
            assert_int_equal(got[s].skipped, want[s].skipped);
            assert_memory_equal(&got[s].grad_norm_clipped, &want[s].grad_norm_clipped, 8);
        }
        assert_int_equal(table.sumsqs, singly ? 12 : 0);
        assert_int_equal(table.downloads, singly ? 0 : 4);
        assert_int_equal(table.syncs, 0);
    }
}

// A list gives the same bits as one call per tensor, with one download per step and no other wait.
static void a_list_is_a_tensor_a_call(void **state) {
    struct fixture *f = *state;
    struct rlhf__optim_config c = config;
    c.max_grad_norm = 1;
    c.weight_decay = 0.1;
    for (int kind = 0; kind < 2; kind++) {
        struct counting list, singly;
        struct rlhf__optim_report got[4], want[4];
        float got_w[3][4], want_w[3][4];
        c.kind = kind ? RLHF__OPTIM_MUON : RLHF__OPTIM_ADAMW;
        counting_init(&singly, f->t, 1);
        four_steps(f, &singly, &c, want, want_w);
        counting_init(&list, f->t, 0);
        four_steps(f, &list, &c, got, got_w);
        assert_memory_equal(got_w, want_w, sizeof want_w);
        assert_true(want[0].grad_norm > want[0].grad_norm_clipped);
        for (int s = 0; s < 4; s++) {
            assert_int_equal(got[s].skipped, want[s].skipped);
            assert_memory_equal(&got[s].grad_norm_clipped, &want[s].grad_norm_clipped, 8);
            if (s != 2) assert_true(got[s].grad_norm == want[s].grad_norm);
        }
        assert_int_equal(want[1].skipped + want[2].skipped, 2);
        assert_int_equal(singly.sumsqs, 12);
        assert_int_equal(list.sumsqs, 0);
        assert_int_equal(list.downloads, 4);
        assert_int_equal(list.syncs, 0);
        blocks_take_the_same_step(f, &c, want, want_w);
    }
}

// A value in the config takes precedence. 0 means the device's hint, or the CPU's default.
static void a_device_may_wish(void **state) {
    const struct fixture *f = *state;
    rlhf_compute t = *f->t;
    assert_int_equal(rlhf__compute_slots(&t, 0), 64);
    assert_int_equal(rlhf__compute_microbatch(&t, 0, 65536), 4096);
    assert_int_equal(rlhf__compute_microbatch(&t, 0, 262144), 384); // 384 MiB of logits
    assert_int_equal(rlhf__compute_microbatch(&t, 0, INT32_MAX), 1);
    t.slots_hint = 512;
    t.microbatch_hint = 32768;
    assert_int_equal(rlhf__compute_slots(&t, 0), 512);
    assert_int_equal(rlhf__compute_microbatch(&t, 0, 262144), 32768);
    assert_int_equal(rlhf__compute_slots(&t, 7), 7);
    assert_int_equal(rlhf__compute_microbatch(&t, 9, 262144), 9);
    t.size = RLHF_SIZE_TO(rlhf_compute, flags); // an older table
    assert_int_equal(rlhf__compute_slots(&t, 0), 64);
}

// A backend without Muon works with AdamW. If Muon is requested, it reports an error.
static void an_op_that_the_backend_lacks_is_named(void **state) {
    struct fixture *f = *state;
    rlhf_compute table = *f->t;
    struct rlhf__optim_config c = config;
    struct rlhf__optim *o = NULL;
    struct rlhf__error err = {0, ""};
    table.size = RLHF_SIZE_TO(rlhf_compute, adamw);
    assert_int_equal(create(&table, f->p, &c, 0, &o, &err), RLHF_OK);
    rlhf__optim_close(o);
    c.kind = RLHF__OPTIM_MUON;
    assert_int_equal(create(&table, f->p, &c, 0, &o, &err), RLHF_E_UNSUPPORTED);
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
        cmocka_unit_test_setup_teardown(a_list_is_a_tensor_a_call, setup, teardown),
        cmocka_unit_test_setup_teardown(a_device_may_wish, setup, teardown),
        cmocka_unit_test_setup_teardown(an_op_that_the_backend_lacks_is_named, setup, teardown),
    };
    return cmocka_run_group_tests_name("optim", tests, NULL, NULL);
}
