// test_kit.c: the kit of rlhf/test.h detects the errors that it should: leaks and missing messages
// when memory runs out, wrong derivatives, and failing calls of the table.
#include "support/check.h"

#include <rlhf/test.h>

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static struct rlhf_test_host host;

// Silences stderr while the kit reports expected errors.
static int quiet(void) {
    int kept = dup(STDERR_FILENO);
    fflush(stderr);
    assert_non_null(freopen("/dev/null", "w", stderr));
    return kept;
}
static void loud(int kept) {
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
}

// ---- allocations ----

enum fault { SOUND, LEAKS, NO_SENTENCE, OTHER_STATUS };

static void *left; // leaked by a scenario

// Makes two allocations. `arg` chooses which error to make when the second one fails.
static rlhf_status scenario(struct rlhf_test_host *t, void *arg) {
    const enum fault fault = *(const enum fault *)arg;
    const rlhf_host *h = &t->table;
    void *a = h->alloc(h, 8), *b = a ? h->alloc(h, 8) : NULL;
    rlhf_status st = RLHF_OK;
    if (!b) {
        st = fault == OTHER_STATUS ? RLHF_E_INVALID : RLHF_E_NOMEM;
        if (fault != NO_SENTENCE) (h->fail)(h, st, "out of memory");
    }
    h->free(h, b);
    if (b || fault != LEAKS)
        h->free(h, a);
    else
        left = a;
    return st;
}

static void the_sweep_finds_what_is_wrong(void **state) {
    (void)state;
    for (enum fault fault = SOUND; fault <= OTHER_STATUS; fault++) {
        rlhf_test_init(&host, 1);
        int kept = quiet();
        const int64_t n = rlhf_test_alloc_sweep(&host, scenario, &fault);
        loud(kept);
        assert_int_equal(n, fault == SOUND ? 2 : -1);
        assert_true((left != NULL) == (fault == LEAKS));
        host.table.free(&host.table, left);
        left = NULL;
    }
}

static void checks_are_counted(void **state) {
    (void)state;
    rlhf_test_init(&host, 1);
    int kept = quiet();
    const int none = rlhf_test_end(&host); // there was no check at all
    RLHF_TEST_CHECK(&host, 1 == 1);
    const int good = rlhf_test_end(&host);
    RLHF_TEST_NEAR(&host, (double)NAN, 0, 1);
    const int nan = rlhf_test_end(&host);
    rlhf_test_init(&host, 1);
    RLHF_TEST_NEAR(&host, 1.5, 1, 0.5);
    void *p = host.table.alloc(&host.table, 1);
    const int leak = rlhf_test_end(&host);
    loud(kept);
    host.table.free(&host.table, p);
    assert_int_equal(none, 1);
    assert_int_equal(good, 0);
    assert_int_equal(nan, 1);
    assert_int_equal(leak, 1);
}

// ---- descriptors ----

static rlhf_status no_open(void *self, const rlhf_model_open *how) {
    (void)self;
    (void)how;
    return RLHF_OK;
}
static rlhf_status no_info(void *self, rlhf_model_info *out) {
    (void)self;
    (void)out;
    return RLHF_OK;
}
static rlhf_status no_param(void *self, uint32_t i, rlhf_param *out) {
    (void)self;
    (void)i;
    (void)out;
    return RLHF_E_INVALID;
}
static rlhf_status no_refresh(void *self) {
    (void)self;
    return RLHF_OK;
}
static rlhf_status no_forward(void *self, const rlhf_batch *b, const rlhf_forward *how,
                              const rlhf_heads *out) {
    (void)self;
    (void)b;
    (void)how;
    (void)out;
    return RLHF_OK;
}
static rlhf_status no_gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out) {
    (void)self;
    (void)n_slots;
    (void)max_len;
    *out = NULL;
    return RLHF_OK;
}
static rlhf_status no_gen_step(void *self, rlhf_gen *gen, const rlhf_gen_step *step) {
    (void)self;
    (void)gen;
    (void)step;
    return RLHF_OK;
}

static void no_gen_close(void *self, rlhf_gen *gen) {
    (void)self;
    (void)gen;
}
static void no_destroy(void *self) { (void)self; }

static void functions_belong_together(void **state) {
    static const rlhf_model_ops whole = {.size = sizeof whole,
                                         .compute_major = RLHF_COMPUTE_MAJOR,
                                         .compute_minor = RLHF_COMPUTE_MINOR,
                                         .open = no_open,
                                         .info = no_info,
                                         .param = no_param,
                                         .refresh = no_refresh,
                                         .forward = no_forward};
    rlhf_model_ops ops = whole;
    rlhf_plugin p = {.size = sizeof p,
                     .kind = RLHF_KIND_MODEL,
                     .id = "org.example.m",
                     .version = "1",
                     .summary = "",
                     .ops = &ops};
    char why[256];
    (void)state;
    if (rlhf_test_refused(&p, why, sizeof why)) fail_msg("%s", why);
    ops.gen_step = no_gen_step;
    assert_true(rlhf_test_refused(&p, why, sizeof why) > 0);
    assert_non_null(strstr(why, "but no gen_open()"));
    ops.gen_open = no_gen_open;
    assert_true(rlhf_test_refused(&p, why, sizeof why) > 0);
    assert_string_equal(why, "it has gen_open() but lacks the required function gen_close()");
    ops.gen_step = NULL;
    ops.gen_close = no_gen_close;
    assert_true(rlhf_test_refused(&p, why, sizeof why) > 0);
    assert_string_equal(why, "it has gen_open() but lacks the required function gen_step()");
    ops = whole;
    ops.refresh = NULL;
    assert_true(rlhf_test_refused(&p, why, sizeof why) > 0);
    assert_string_equal(why, "it lacks the required function refresh()");
    ops = whole;
    ops = whole;
    p.destroy = no_destroy;
    assert_true(rlhf_test_refused(&p, why, sizeof why) > 0);
    assert_non_null(strstr(why, "it has destroy() but no create(): without one there is no "));
    p.destroy = NULL;
    p.state_version = 1;
    assert_true(rlhf_test_refused(&p, why, sizeof why) > 0);
    assert_string_equal(why, "it has a state, which only algorithms and rewards may have; leave "
                             "out save(), load() and state_version");
}

// ---- options ----

static void a_value_that_is_refused_is_told(void **state) {
    struct config {
        int64_t cap;
    };
    static const rlhf_opt options[] = {RLHF_OPT_I64(struct config, cap, 3, 0, 9, "a bound")};
    const rlhf_plugin p = {.size = sizeof p,
                           .id = "org.example.o",
                           .opts = options,
                           .n_opts = 1,
                           .opt_stride = sizeof *options,
                           .config_size = sizeof(struct config)};
    struct config c;
    char said[200];
    (void)state;
    FILE *to = tmpfile();
    assert_non_null(to);
    rlhf_test_config(&p, &c);
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    dup2(fileno(to), STDERR_FILENO);
    const int set = rlhf_test_set(&p, &c, "cap", "9"), high = rlhf_test_set(&p, &c, "cap", "10"),
              other = rlhf_test_set(&p, &c, "cup", "1");
    loud(kept);
    rewind(to);
    said[fread(said, 1, sizeof said - 1, to)] = 0;
    fclose(to);
    assert_true(set && !high && !other);
    assert_int_equal(c.cap, 9);
    assert_string_equal(said, "option \"cap\" of org.example.o cannot be \"10\"\n"
                              "org.example.o has no option \"cup\"\n");
}

// ---- derivatives ----

static double cube(void *arg) {
    const float *x = arg;
    return (double)x[0] * (double)x[0] * (double)x[0] + 2 * (double)x[1];
}

static void derivatives_are_compared(void **state) {
    (void)state;
    float x[] = {2, 5}, right[] = {12, 2}, wrong[] = {12, 3};
    uint64_t worst = 9;
    assert_true(rlhf_test_derivative(cube, x, x, right, 2, 1e-3, NULL) < 1e-4);
    const double off = rlhf_test_derivative(cube, x, x, wrong, 2, 1e-3, &worst);
    assert_true(fabs(off - 1.0 / 3) < 1e-3);
    assert_int_equal(worst, 1);
    assert_float_equal(x[0], 2, 0);
    float none[] = {NAN, 0};
    assert_true(isnan(rlhf_test_derivative(cube, x, x, none, 2, 1e-3, NULL)));
}

// L = sum logp^2 over response tokens. *self is a factor of the derivative. The right factor is 2.
static rlhf_status square_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    for (uint32_t i = 0; i < in->total; i++) {
        const double v = (double)in->heads->logp[i];
        out->loss += v * v;
        out->d_heads->logp[i] = (float)(*(const double *)self * v);
    }
    return RLHF_OK;
}

static void losses_are_differentiated(void **state) {
    (void)state;
    static const int32_t offset[] = {0, 3}, prompt_len[] = {1};
    float logp[] = {0, -1, -2};
    const rlhf_head_values heads = {.size = sizeof heads, .logp = logp};
    const rlhf_loss_in in = {.size = sizeof in,
                             .n = 1,
                             .total = 3,
                             .offset = offset,
                             .prompt_len = prompt_len,
                             .heads = &heads};
    const rlhf_algo_ops ops = {.size = sizeof ops, .loss = square_loss};
    double right = 2, wrong = 2.5;
    assert_true(rlhf_test_loss_derivative(&ops, &right, &in, 1e-3) < 1e-3);
    assert_true(rlhf_test_loss_derivative(&ops, &wrong, &in, 1e-3) > 0.1);
    assert_float_equal(logp[2], -2, 0);
}

// ---- the compute table ----

static void calls_of_the_table_fail(void **state) {
    (void)state;
    rlhf_test_init(&host, 1);
    rlhf_compute *c = rlhf_test_compute(&host, 1);
    rlhf_dev x = NULL, y = NULL;
    assert_non_null(c);
    assert_int_equal(c->alloc(c->ctx, 64, &x), RLHF_OK);
    rlhf_test_fail_op(c, 2, 0);
    assert_int_equal(c->zero(c->ctx, x, 64), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, 64, &y), RLHF_E_DEVICE);
    assert_non_null(strstr(rlhf_test_failure(&host), "alloc: "));
    assert_int_equal(c->zero(c->ctx, x, 64), RLHF_OK);
    assert_int_equal(rlhf_test_ops(c), 3);
    rlhf_test_fail_op(c, 1, 1);
    assert_int_equal(c->zero(c->ctx, x, 64), RLHF_E_DEVICE);
    assert_int_equal(c->zero(c->ctx, x, 64), RLHF_E_DEVICE);
    rlhf_test_fail_op(c, 0, 0);
    assert_int_equal(c->zero(c->ctx, x, 64), RLHF_OK);
    c->release(c->ctx, x);
    assert_int_equal(c->bytes_in_use(c->ctx), 0);
    rlhf_test_compute_end(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sweep_finds_what_is_wrong),
        cmocka_unit_test(checks_are_counted),
        cmocka_unit_test(functions_belong_together),
        cmocka_unit_test(a_value_that_is_refused_is_told),
        cmocka_unit_test(derivatives_are_compared),
        cmocka_unit_test(losses_are_differentiated),
        cmocka_unit_test(calls_of_the_table_fail),
    };
    return cmocka_run_group_tests_name("test_kit", tests, NULL, NULL);
}
