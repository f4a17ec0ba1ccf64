// test_kto.c: compares kto.so with float64 numbers of TRL's KTO trainer (tests/oracle/kto_loss.py
// compares them with TRL's code) and with finite differences, in any split into microbatches. Also
// tests the metrics and refusals of kto.so.
#include "algos/preference_case.h"

#include <math.h>

enum { N = 8, TOTAL = 32, OWN = 4, CASES = 6 };

// Four prompts. Each has two completions: its own one and the completion of another row.
static const int32_t offset[N + 1] = {0, 4, 7, 10, 15, 20, 23, 27, 32};
static const int32_t prompt_len[N] = {2, 2, 1, 1, 2, 2, 2, 2};
static const int32_t label[N] = {1, -1, 0, -1, 1, -1, 0, -1};
static const int32_t group[N] = {0, 0, 1, 1, 2, 2, 3, 3};
static const float ref[TOTAL] = {0,  0,  -1.25, -2.5,  0,  0, -3,    0,      -0.75, -1.5, 0,
                                 -2, -1, -0.5,  -2.25, 0,  0, -1.75, -0.125, -3.5,  0,    0,
                                 -2, 0,  0,     -0.25, -1, 0, 0,     -1,     -1.5,  -2};
static const float logp[TOTAL] = {0,    0,  -1,    -2,    0,      0, -2.5,  0,     -0.5, -2.25, 0,
                                  -1.5, -1, -0.25, -2,    0,      0, -1.25, -0.25, -3,   0,     0,
                                  -2.5, 0,  0,     -0.75, -0.875, 0, 0,     -0.5,  -1,   -1.75};
// Log-probs of a policy that is below the reference on other rows' completions, so that z is 0.
static const float logp_below[TOTAL] = {
    0, 0,     -1,    -2, 0, 0, -3.5, 0, -0.5, -2.25, 0,      -2.5, -1, -0.75, -2.5, 0,
    0, -1.25, -0.25, -3, 0, 0, -2.5, 0, 0,    -0.75, -0.875, 0,    0,  -1.5,  -2,   -2.75};
// Columns: beta, desirable_weight, undesirable_weight, loss (0: kto, 1: apo_zero_unpaired), and 1
// if the case uses logp_below.
static const double config[CASES][5] = {{0.1, 1, 1, 0, 0}, {0.5, 1.5, 0.75, 0, 0},
                                        {5, 1, 0, 0, 0},   {0.3, 1, 2, 0, 1},
                                        {0.4, 1, 2, 1, 0}, {2, 0.5, 1, 1, 1}};
// Results of TRL 1.16: the loss, z, and the derivative at a token of each row's own completion.
static const double want[CASES][2 + OWN] = {
    {0.484385721185283, 0.5625, -0.00624945071577866, 0.00623239397510781, -0.00624847436941208,
     0.00623628718139252},
    {0.493186949593407, 0.5625, -0.0467721538604439, 0.0218586141818466, -0.0465900578446529,
     0.0221957611418168},
    {0.113673453339618, 0.5625, -0.252770614420723, 0, -0.179074254518902, 0},
    {0.686921230596002, 0, -0.0185146833049541, 0.0372898510016314, -0.0184306754956451,
     0.0373815974905279},
    {0.666103054739639, 0, -0.0244458311690746, 0.049503314542372, -0.02424973950225,
     0.0497198013355086},
    {0.188749770778406, 0, -0.0372866130175832, 0.0983059666207409, -0.0315323062966638,
     0.108947496880907}};
static const char *const names[] = {"kto/wanted",        "kto/logp_wanted", "kto/unwanted",
                                    "kto/logp_unwanted", "kto/margin",      NULL};

static struct batch b;

static void load(int k) {
    memset(&b, 0, sizeof b);
    b.n = N;
    b.total = TOTAL;
    b.max_len = 8;
    memcpy(b.offset, offset, sizeof offset);
    memcpy(b.prompt_len, prompt_len, sizeof prompt_len);
    memcpy(b.label, label, sizeof label);
    memcpy(b.group, group, sizeof group);
    memcpy(b.ref, ref, sizeof ref);
    memcpy(b.logp, config[k][4] != 0 ? logp_below : logp, sizeof logp);
    memcpy(b.old, b.logp, sizeof logp);
}

// Removes mismatched completions, as the host does without RLHF_PLAN_MISMATCHED.
static void own_rows_alone(void) {
    struct batch all = b;
    b.n = b.total = 0;
    for (int32_t i = 0; i < all.n; i++) {
        if (all.label[i] < 0) continue;
        const int32_t len = all.offset[i + 1] - all.offset[i];
        memcpy(b.ref + b.total, all.ref + all.offset[i], sizeof(float) * (size_t)len);
        memcpy(b.logp + b.total, all.logp + all.offset[i], sizeof(float) * (size_t)len);
        b.prompt_len[b.n] = all.prompt_len[i];
        b.label[b.n] = all.label[i];
        b.group[b.n++] = all.group[i];
        b.offset[b.n] = b.total += len;
    }
}

static void open_case(struct algo *a, int k) {
    char options[128];
    load(k);
    snprintf(options, sizeof options, "beta=%g,desirable_weight=%g,undesirable_weight=%g,loss=%s",
             config[k][0], config[k][1], config[k][2],
             config[k][3] != 0 ? "apo_zero_unpaired" : "kto");
    algo_open(a, "kto.so", options, N);
    if (!(a->plan.flags & RLHF_PLAN_MISMATCHED)) {
        own_rows_alone();
        return;
    }
    assert_int_equal(batch_advantages(a, &b), RLHF_OK);
    for (int i = 0; i < N; i++)
        assert_int_equal(b.use[i], label[i] < 0 ? RLHF_USE_EXCLUDED : RLHF_USE_TRAINS);
}

static void plan(void **state) {
    struct algo a;
    (void)state;
    algo_open(&a, "kto.so", "", 8);
    assert_int_equal(a.plan.source, RLHF_SOURCE_COMPLETIONS);
    assert_int_equal(a.plan.heads, RLHF_HEAD_LOGP);
    assert_int_equal(a.plan.flags,
                     RLHF_PLAN_REFERENCE | RLHF_PLAN_RECOMPUTE_LOGP | RLHF_PLAN_MISMATCHED);
    assert_int_equal(a.plan.epochs * a.plan.minibatches * a.plan.group_size, 1);
    algo_close(&a);
    algo_open(&a, "kto.so", "loss=apo_zero_unpaired", 8);
    assert_int_equal(a.plan.flags, RLHF_PLAN_REFERENCE);
    algo_close(&a);
}

// Loss, reference point and derivatives equal TRL's, both at once and group by group.
static void reference(void **state) {
    (void)state;
    for (int k = 0; k < CASES; k++) {
        struct algo a;
        double parts = 0;
        int32_t own = 0;
        open_case(&a, k);
        assert_near(batch_loss(&a, &b, 0, b.n, 0), want[k][0], 1e-12, "loss");
        for (int32_t i = 0; i < b.n; i++) {
            if (b.label[i] < 0) continue;
            for (int32_t t = b.offset[i]; t < b.offset[i + 1]; t++)
                assert_near((double)b.d_logp[t],
                            t < b.offset[i] + b.prompt_len[i] ? 0 : want[k][2 + own], 1e-7,
                            "slope");
            own++;
        }
        assert_int_equal(own, OWN);
        batch_differences(&a, &b, b.logp, b.d_logp, b.total, 1e-4, 0, "with z fixed");
        preference_phase_end(&a);
        if (a.plan.flags & RLHF_PLAN_MISMATCHED) {
            assert_near(metric(&a, "kto/kl"), want[k][1], 1e-12, "kto/kl");
            assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        }
        for (int32_t i = 0; i < b.n; i += b.n / 4)
            parts += batch_loss(&a, &b, i, i + b.n / 4, 0);
        assert_near(parts, want[k][0], 1e-12, "parts");
        algo_close(&a);
    }
}

static void metrics(void **state) {
    struct algo a;
    (void)state;
    open_case(&a, 1);
    double reward[2] = {0, 0}, logps[2] = {0, 0}, loss = batch_loss(&a, &b, 0, N, 0);
    for (int32_t i = 0; i < N; i++)
        for (int32_t t = offset[i]; label[i] >= 0 && t < offset[i + 1]; t++) {
            reward[label[i]] += config[1][0] * ((double)logp[t] - (double)ref[t]) / 2;
            logps[label[i]] += (double)logp[t] / 2; // two rows of each kind
        }
    preference_phase_end(&a);
    const double expect[] = {reward[1], logps[1], reward[0], logps[0], reward[1] - reward[0]};
    for (int k = 0; names[k]; k++)
        assert_near(metric(&a, names[k]), expect[k], 1e-12, names[k]);
    assert_near(metric(&a, "objective/loss"), loss, 1e-12, "objective/loss");
    assert_int_equal(a.host->n_metrics, 7);
    a.host->n_metrics = 0;
    preference_phase_end(&a); // the phase's sums are reset
    assert_int_equal(a.host->n_metrics, 0);
    algo_close(&a);
}

// If all rows are of one kind, neither the margin nor the metrics of the other kind are reported.
static void one_kind_alone(void **state) {
    struct algo a;
    double value;
    (void)state;
    open_case(&a, 0);
    batch_loss(&a, &b, 0, 2, 0);
    preference_phase_end(&a);
    metric(&a, "kto/wanted");
    assert_false(rlhf_test_metric(a.host, "kto/unwanted", &value));
    assert_false(rlhf_test_metric(a.host, "kto/margin", &value));
    algo_close(&a);
}

static void broken_batches(void **state) {
    static const char *const both = "desirable_weight=0,undesirable_weight=0";
    struct algo a;
    (void)state;
    assert_int_equal(algo_try(&a, "kto.so", both), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, "both 0"));
    algo_close(&a);
    open_case(&a, 0);
    rlhf_head_values x = {.size = sizeof x, .logp = b.logp};
    rlhf_head_gradients d = {.size = sizeof d, .logp = b.d_logp};
    assert_int_equal(preference_try(&a, &b, 1, &x, &d, b.ref), RLHF_OK);
    assert_int_equal(preference_try(&a, &b, 1, &x, &d, NULL), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "logp_ref"));
    assert_int_equal(preference_try(&a, &b, 2, &x, &d, b.ref), RLHF_E_INTERNAL); // a mismatched row
    assert_non_null(strstr(a.host->fail_text, "label -1"));
    b.old[4 + 2] = NAN; // the host must see the NaN
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    assert_true(isnan(batch_loss(&a, &b, 0, 1, 0)));
    algo_close(&a);
}

static void allocation_failure(void **state) {
    (void)state;
    algo_needs_memory("kto.so");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan),           cmocka_unit_test(reference),
        cmocka_unit_test(metrics),        cmocka_unit_test(one_kind_alone),
        cmocka_unit_test(broken_batches), cmocka_unit_test(allocation_failure)};
    return cmocka_run_group_tests_name("algos/kto", tests, NULL, NULL);
}
