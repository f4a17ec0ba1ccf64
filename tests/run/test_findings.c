// test_findings.c: which findings are reported for phases that are given as tables of numbers. A
// stopped and resumed run must have the same findings.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "report/findings.h"

#include <math.h>
#include <string.h>

#define N NAN

// Members, in this order: entropy; kl; share of right answers; gradient norms (mean, first,
// largest); share of responses that were cut off; loss; fall of the preferred responses.
typedef struct rlhf__phase_numbers phase;

static const phase sound[] = {
    {4.0, 0.00, N, 0.9, 0.9, 1.2, N, N, N},    {3.9, 0.05, N, 0.8, 0.8, 1.1, 0.5, N, N},
    {3.0, 0.30, N, 40, 2.0, 300, 0.94, N, N},  // a spike is not an explosion
    {1.9, 0.75, N, 0.7, 0.7, 1.0, 0.90, N, N}, // less than 0.5 nats more than before
    {0.5, 0.98, N, 0.7, 0.7, 1.0, 0.10, N, N}, // more than a tenth of the first entropy
};

// Asserts the new findings of each phase. If `resumed` is set, saves and loads the state before
// each phase.
static void finds(const phase *p, size_t n, const uint32_t *want, int resumed) {
    struct rlhf__findings f = {0};
    for (size_t i = 0; i < n; i++) {
        const struct rlhf__found found = rlhf__findings_judge(&f, &p[i]);
        if (found.what != want[i])
            fail_msg("phase %zu: found %x, want %x", i + 1, found.what, want[i]);
        if (!resumed) continue;
        json_t *v = rlhf__findings_save(&f);
        assert_non_null(v);
        memset(&f, 0xff, sizeof f);
        assert_int_equal(rlhf__findings_load(&f, v, NULL), RLHF_OK);
        json_decref(v);
    }
}

static void found(const phase *p, size_t n, const uint32_t *want) {
    finds(p, n, want, 0);
    finds(p, n, want, 1);
}

static void nothing_in_a_sound_run(void **state) {
    (void)state;
    static const uint32_t none[5] = {0};
    found(sound, 5, none);
}

static void a_policy_far_from_the_reference(void **state) {
    (void)state;
    static const phase p[] = {{4, 0, N, 1, 1, 1, N, N, N},
                              {4, 0.49, N, 1, 1, 1, N, N, N},
                              {4, 0.98, N, 1, 1, 1, N, N, N},
                              {4, 1.01, N, 1, 1, 1, N, N, N},
                              {4, 9, N, 1, 1, 1, N, N, N}}; // reported once
    static const uint32_t want[] = {0, 0, 0, RLHF__FAR, 0};
    found(p, 5, want);
    static const phase at_once[] = {{4, 0, N, 1, 1, 1, N, N, N},
                                    {4, INFINITY, N, 1, 1, 1, N, N, N},
                                    {4, 0, N, 1, 1, 1, N, N, N},
                                    {4, 0.6, N, 1, 1, 1, N, N, N}};
    static const uint32_t once[] = {0, RLHF__FAR, 0, 0};
    found(at_once, 4, once);
    // After RLHF__FAR, only a collapse is still reported.
    static const phase later[] = {{4, 0, N, 1, 1, 1, N, N, N},
                                  {4, 1.2, N, 1, 1, 9e9, 1, N, N},
                                  {0.3, 1.2, N, 1, 1, 1, 1, N, N},
                                  {4, 2.2, N, 1, 1, 1, 1, N, N}};
    static const uint32_t both[] = {0, RLHF__FAR | RLHF__EXPLODED, 0, 0};
    found(later, 4, both);
    struct rlhf__findings f = {0};
    rlhf__findings_judge(&f, &later[0]);
    rlhf__findings_judge(&f, &later[1]);
    assert_true(f.is_far && !f.is_collapsed);
    rlhf__findings_judge(&f, &later[2]);
    assert_true(f.is_far && f.is_collapsed);
}

static void a_collapse_by_entropy(void **state) {
    (void)state;
    static const phase p[] = {{4, N, N, 1, 1, 1, N, N, N},
                              {0.41, N, N, 1, 1, 1, N, N, N},
                              {0.39, N, N, 1, 1, 1, N, N, N}};
    static const uint32_t want[] = {0, 0, RLHF__COLLAPSED};
    found(p, 3, want);
    // At first the policy becomes certain of right answers, and their share rises. Later it becomes
    // certain of wrong answers.
    static const phase right[] = {{2, 0, 0.4, 1, 1, 1, N, N, N},
                                  {0.1, 0.3, 0.9, 1, 1, 1, N, N, N},
                                  {0.1, 0.3, 0.3, 1, 1, 1, N, N, N}};
    static const uint32_t sure[] = {0, 0, RLHF__COLLAPSED};
    found(right, 3, sure);
}

static void a_jump(void **state) {
    (void)state;
    static const phase p[] = {{4, 0.1, N, 1, 1, 1, N, N, N},
                              {4, 0.59, N, 1, 1, 1, N, N, N},
                              {4, N, N, 1, 1, 1, N, N, N},
                              {4, 0.2, N, 1, 1, 1, N, N, N},
                              {4, 0.71, N, 1, 1, 1, N, N, N}};
    static const uint32_t want[] = {0, 0, 0, 0, RLHF__JUMPED};
    found(p, 5, want);
    struct rlhf__findings f = {0};
    rlhf__findings_judge(&f, &p[3]);
    const struct rlhf__found found = rlhf__findings_judge(&f, &p[4]);
    assert_true(found.kl_before == 0.2 && f.wild == 2 && !f.is_collapsed);
}

static void exploding_gradients(void **state) {
    (void)state;
    // Within the first phase, norms are compared with each other. Later they are compared with the
    // median of the earlier phases, one of which is an outlier.
    static const phase first[] = {{4, 0, N, 2e22, 1.1, 9e22, N, N, N}};
    static const uint32_t now[] = {RLHF__EXPLODED};
    found(first, 1, now);
    static const phase p[] = {{4, 0, N, 1, 1, 2, N, N, N},
                              {4, 0, N, 50, 1, 900, N, N, N},
                              {4, 0, N, 1, 1, 2, N, N, N},
                              {4, 0, N, 9, 1, 999, N, N, N},
                              {4, 0, N, 200, 1, 9.1e3, N, N, N}};
    static const uint32_t want[] = {0, 0, 0, 0, RLHF__EXPLODED};
    found(p, 5, want);
    // The learning signal is missing at first and appears later. Small norms do not count as
    // exploding.
    static const phase still[] = {{4, 0, N, 0, 0, 0, N, N, N},
                                  {4, 0, N, 1e-9, 1e-9, 1e-9, N, N, N},
                                  {4, 0, N, 0.7, 0.5, 9, N, N, N}};
    static const uint32_t none[] = {0, 0, 0};
    found(still, 3, none);
}

// More phases than the number of norms that are kept.
static void a_long_run_keeps_the_newest_norms(void **state) {
    (void)state;
    struct rlhf__findings f = {0};
    for (int i = 0; i < 300; i++) {
        const phase p = {4, 0, N, 1 + i, 1 + i, 1 + i, N, N, N};
        assert_int_equal(rlhf__findings_judge(&f, &p).what, 0);
    }
    assert_int_equal(f.norms, RLHF__FINDINGS_NORMS);
    assert_true(f.norm[0] == 300 - RLHF__FINDINGS_NORMS + 1 && f.norm[f.norms - 1] == 300);
    const phase p = {4, 0, N, 1, 1, 300000, N, N, N};
    assert_int_equal(rlhf__findings_judge(&f, &p).what, RLHF__EXPLODED);
}

static void responses_that_are_cut_off(void **state) {
    (void)state;
    static const phase p[] = {{4, 0, N, 1, 1, 1, 0.949, N, N},
                              {4, 0, N, 1, 1, 1, N, N, N},
                              {4, 0, N, 1, 1, 1, 0.95, N, N},
                              {4, 0, N, 1, 1, 1, 1, N, N}};
    static const uint32_t want[] = {0, 0, RLHF__ALL_CUT_OFF, 0};
    found(p, 4, want);
}

// A collapse has consequences, which are not reported in its phase or later.
static void nothing_after_a_collapse(void **state) {
    (void)state;
    static const phase p[] = {{4, 0, N, 1, 1, 1, 0.5, N, N},
                              {0.1, 1.2, N, 1, 1, 1, 1, N, N},
                              {4, 0, N, 1, 1, 1, 1, N, N}, // even if the numbers recover
                              {4, 0.9, N, 1, 1, 9e9, 1, N, N}};
    static const uint32_t want[] = {0, RLHF__COLLAPSED, 0, 0};
    found(p, 4, want);
}

static void a_damaged_state_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "{}",
        "{\"phases\": -1, \"said\": 0, \"wild\": 0, \"entropy\": 1, \"correct\": null, \"kl\": 0, "
        "\"norms\": []}",
        "{\"phases\": 1, \"said\": 0, \"wild\": 0, \"entropy\": \"x\", \"correct\": null, \"kl\": "
        "0, "
        "\"norms\": []}",
        "{\"phases\": 1, \"said\": 0, \"wild\": 0, \"entropy\": 1, \"correct\": null, \"kl\": 0, "
        "\"norms\": [], \"loss\": \"x\"}",
        "{\"phases\": 1, \"said\": 0, \"wild\": 0, \"entropy\": 1, \"correct\": null, \"kl\": 0}"};
    struct rlhf__error err;
    struct rlhf__findings f;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *v = json_loads(bad[i], 0, NULL);
        assert_non_null(v);
        if (rlhf__findings_load(&f, v, &err) != RLHF_E_INVALID) fail_msg("%s is taken", bad[i]);
        json_decref(v);
    }
    assert_int_equal(rlhf__findings_load(&f, NULL, &err), RLHF_OK);
    assert_int_equal(f.phases, 0);
}

static void a_loss_that_diverges(void **state) {
    (void)state;
    static const phase p[] = {
        {N, N, N, 7, 7, 7, N, 4.7, N}, // up to twice that plus 2 counts as noise
        {N, N, N, 7, 7, 7, N, 11.3, N},
        {N, N, N, 7, 7, 90000, N, 11.5, N}, // its gradients are not reported in addition
        {N, N, N, 7, 7, 90000, N, 1867, N},
        {N, N, N, 7, 7, 7, N, 0.1, N}};
    static const uint32_t want[] = {0, 0, RLHF__DIVERGED, 0, 0};
    found(p, 5, want);
    static const phase bounded[] = {{N, N, N, 7, 7, 7, N, 0.02, N}, {N, N, N, 7, 7, 7, N, 2.03, N}};
    static const uint32_t none[] = {0, 0};
    found(bounded, 2, none);
    static const phase exploded[] = {{N, N, N, 7, 7, 7, N, 1, N}, {N, N, N, 7, 7, 7001, N, 1, N}};
    static const uint32_t norms[] = {0, RLHF__EXPLODED};
    found(exploded, 2, norms);
}

// A bounded loss does not show that preferred responses become unlikely, so their reward is checked
// as well. If the loss has diverged, only the divergence is reported.
static void preferred_responses_that_are_lost(void **state) {
    (void)state;
    static const phase p[] = {{N, N, N, 1, 1, 1, N, 0.5, -0.2},
                              {N, N, N, 1, 1, 1, N, 0.5, 0.99},
                              {N, N, N, 1, 1, 1, N, 0.5, 1.01},
                              {N, N, N, 1, 1, 1, N, 0.5, 7}};
    static const uint32_t want[] = {0, 0, RLHF__FELL, 0};
    found(p, 4, want);
    static const phase beside[] = {{N, N, N, 1, 1, 1, N, 0.5, 0}, {N, N, N, 1, 1, 1, N, 40, 9}};
    static const uint32_t one[] = {0, RLHF__DIVERGED};
    found(beside, 2, one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_that_diverges),
        cmocka_unit_test(preferred_responses_that_are_lost),
        cmocka_unit_test(nothing_in_a_sound_run),
        cmocka_unit_test(a_policy_far_from_the_reference),
        cmocka_unit_test(a_collapse_by_entropy),
        cmocka_unit_test(a_jump),
        cmocka_unit_test(exploding_gradients),
        cmocka_unit_test(a_long_run_keeps_the_newest_norms),
        cmocka_unit_test(responses_that_are_cut_off),
        cmocka_unit_test(nothing_after_a_collapse),
        cmocka_unit_test(a_damaged_state_is_refused),
    };
    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
