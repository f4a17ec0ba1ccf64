// test_findings.c: which problems a run reports in which phase, for phases that are given as tables
// of numbers. The phases are read from a metrics.jsonl, as a resumed run reads them, so the same
// table also shows what a resumed run takes as reported.
#include "support/check.h"

#include "report/run_history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N NAN

// Members, in this order: entropy; KL per token; share of right answers; gradient norms (mean,
// largest); share of responses that were cut off; loss; fall of the preferred responses.
typedef struct {
    double entropy, kl, correct, norm, norm_max, cut_off, loss, fall;
} phase;

static void put(FILE *f, const char *name, double v) {
    if (isfinite(v)) fprintf(f, ", \"%s\": %.17g", name, v);
}

static void write_rows(const char *dir, const phase *p, size_t n) {
    char path[128];
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        fprintf(f, "{\"phase\": %zu", i + 1);
        put(f, "objective/entropy_per_token", p[i].entropy);
        put(f, "objective/kl_per_token", p[i].kl);
        put(f, "objective/verifiable_correct_rate", p[i].correct);
        put(f, "optim/grad_norm", p[i].norm);
        put(f, "optim/grad_norm_max", p[i].norm_max);
        put(f, "completions/clipped_ratio", p[i].cut_off);
        put(f, "objective/loss", p[i].loss);
        put(f, "optim/preferred_fall", p[i].fall);
        fputs("}\n", f);
    }
    fclose(f);
}

// Asserts which problems are reported in each phase, as names separated by spaces. `lost` says what
// happened to the policy of the last phase; NULL: nothing.
static void found(const phase *p, size_t n, const char *const *want, const char *lost) {
    char dir[] = "/tmp/rlhf-findings-XXXXXX";
    assert_non_null(mkdtemp(dir));
    write_rows(dir, p, n);
    struct rlhf__folder *run;
    assert_int_equal(rlhf__folder_open(NULL, dir, &run, NULL), RLHF_OK);
    size_t before = 0;
    for (size_t k = 1; k <= n; k++) {
        struct rlhf__run_history h = {.facts = {.may_end = 1, .lr = 0.5}};
        struct rlhf__buf said = RLHF__BUF_INIT;
        assert_int_equal(rlhf__run_history_read(&h, run, (int64_t)k, NULL), RLHF_OK);
        for (size_t i = before; i < h.n_said; i++)
            rlhf__buf_printf(&said, "%s%s", i > before ? " " : "", h.said[i]);
        if (strcmp(rlhf__buf_text(&said), want[k - 1]) != 0)
            fail_msg("phase %zu: found '%s', want '%s'", k, rlhf__buf_text(&said), want[k - 1]);
        rlhf__buf_finish(&said);
        before = h.n_said;
        if (k == n && (lost ? !h.lost || strcmp(h.lost, lost) != 0 : h.lost != NULL))
            fail_msg("the policy %s", h.lost ? h.lost : "is not lost");
        rlhf__run_history_finish(&h);
    }
    rlhf__folder_close(run);
    char command[160];
    snprintf(command, sizeof command, "%s/metrics.jsonl", dir);
    unlink(command);
    rmdir(dir);
}

#define FOUND(p, lost, ...) found(p, sizeof p / sizeof *p, (const char *const[]){__VA_ARGS__}, lost)

static void nothing_in_a_sound_run(void **state) {
    (void)state;
    static const phase sound[] = {
        {4.0, 0.00, N, 0.9, 1.2, N, N, N},    {3.9, 0.05, N, 0.8, 1.1, 0.5, N, N},
        {3.0, 0.30, N, 40, 300, 0.9, N, N},   // a spike is not an explosion
        {1.9, 0.75, N, 0.7, 1.0, 0.85, N, N}, // less than 0.5 nats more than before
        {0.5, 0.98, N, 0.7, 1.0, 0.10, N, N}, // more than a tenth of the first entropy
    };
    FOUND(sound, NULL, "", "", "", "", "");
}

#define FAR "is far from the reference"

static void a_policy_far_from_the_reference(void **state) {
    (void)state;
    static const phase p[] = {{4, 0, N, 1, 1, N, N, N},
                              {4, 0.49, N, 1, 1, N, N, N},
                              {4, 0.98, N, 1, 1, N, N, N},
                              {4, 1.01, N, 1, 1, N, N, N},
                              {4, 9, N, 1, 1, N, N, N}}; // reported once
    FOUND(p, FAR, "", "", "", "far", "");
    // Later problems are consequences, except a collapse.
    static const phase later[] = {{4, 0, N, 1, 1, N, N, N},
                                  {4, 1.2, N, 1, 1, 1, N, N},
                                  {0.3, 1.2, N, 1, 9e9, 1, N, N},
                                  {4, 2.2, N, 1, 1, 1, N, N}};
    FOUND(later, FAR, "", "far", "collapsed", "");
    // Responses that were cut off before are not a consequence.
    static const phase before[] = {{4, 0, N, 1, 1, 1, N, N}, {4, 2, N, 1, 1, 1, N, N}};
    FOUND(before, FAR, "cut_off", "far");
    static const phase back[] = {
        {4, 0, N, 1, 1, N, N, N}, {4, 2, N, 1, 1, N, N, N}, {4, 0.5, N, 1, 1, N, N, N}};
    FOUND(back, NULL, "", "far", "");
}

static void another_reference(void **state) {
    (void)state;
    static const phase p[] = {{4, 0.3, N, 1, 1, N, N, N}, {4, 0.6, N, 1, 1, N, N, N}};
    FOUND(p, NULL, "other_reference", "");
}

#define COLLAPSED "has collapsed"

static void a_collapse_by_entropy(void **state) {
    (void)state;
    static const phase p[] = {
        {4, N, N, 1, 1, N, N, N}, {0.41, N, N, 1, 1, N, N, N}, {0.39, N, N, 1, 1, N, N, N}};
    FOUND(p, COLLAPSED, "", "", "collapsed");
    // At first the policy becomes certain of right answers, and their share rises. Later it becomes
    // certain of wrong answers.
    static const phase right[] = {
        {2, 0, 0.4, 1, 1, N, N, N}, {0.1, 0.3, 0.9, 1, 1, N, N, N}, {0.1, 0.3, 0.3, 1, 1, N, N, N}};
    FOUND(right, COLLAPSED, "", "", "collapsed");
    // Below a quarter it is a trend, which is reported from phase 10 on, after five phases.
    static const phase slow[] = {
        {4, N, N, 1, 1, N, N, N},   {3, N, N, 1, 1, N, N, N},   {3, N, N, 1, 1, N, N, N},
        {3, N, N, 1, 1, N, N, N},   {3, N, N, 1, 1, N, N, N},   {0.9, N, N, 1, 1, N, N, N},
        {0.9, N, N, 1, 1, N, N, N}, {0.9, N, N, 1, 1, N, N, N}, {0.9, N, N, 1, 1, N, N, N},
        {0.9, N, N, 1, 1, N, N, N}, {0.9, N, N, 1, 1, N, N, N}};
    FOUND(slow, COLLAPSED, "", "", "", "", "", "", "", "", "", "collapsed", "");
    phase later[13];
    for (int i = 0; i < 13; i++)
        later[i] = (phase){i < 8 ? 4 : 0.9, N, N, 1, 1, N, N, N};
    FOUND(later, COLLAPSED, "", "", "", "", "", "", "", "", "", "", "", "", "collapsed");
}

// A collapse has consequences, which are not reported in its phase or later.
static void nothing_after_a_collapse(void **state) {
    (void)state;
    static const phase p[] = {{4, 0, N, 1, 1, 0.5, N, N},
                              {0.1, 1.2, N, 1, 1, 1, N, N},
                              {4, 0, N, 1, 1, 1, N, N}, // even if the numbers recover
                              {4, 0.9, N, 1, 9e9, 1, N, N}};
    FOUND(p, NULL, "", "collapsed", "", "");
}

static void a_jump(void **state) {
    (void)state;
    static const phase p[] = {{4, 0.1, N, 1, 1, N, N, N},  {4, 0.35, N, 1, 1, N, N, N},
                              {4, N, N, 1, 1, N, N, N},    {4, 0.05, N, 1, 1, N, N, N},
                              {4, 0.8, N, 1, 1, N, N, N}, // less than 0.5 above the largest so far
                              {4, 0.05, N, 1, 1, N, N, N}, {4, 0.8, N, 1, 1, N, N, N}};
    FOUND(p, NULL, "", "", "", "", "", "", "");
    static const phase jump[] = {
        {4, 0.1, N, 1, 1, N, N, N}, {4, 0.35, N, 1, 1, N, N, N}, {4, 0.86, N, 1, 1, N, N, N}};
    FOUND(jump, NULL, "", "", "jumped");
}

static void exploding_gradients(void **state) {
    (void)state;
    // Norms are compared with the median of the earlier phases, one of which is an outlier.
    static const phase first[] = {{4, 0, N, 2e22, 9e22, N, N, N}};
    FOUND(first, NULL, "exploded");
    static const phase p[] = {{4, 0, N, 1, 2, N, N, N},
                              {4, 0, N, 50, 900, N, N, N},
                              {4, 0, N, 1, 2, N, N, N},
                              {4, 0, N, 9, 999, N, N, N},
                              {4, 0, N, 200, 9.1e3, N, N, N}};
    FOUND(p, NULL, "", "", "", "", "exploded");
    // The learning signal is missing at first and appears later. Small norms do not count as
    // exploding.
    static const phase still[] = {
        {4, 0, N, 0, 0, N, N, N}, {4, 0, N, 1e-9, 1e-9, N, N, N}, {4, 0, N, 0.7, 9, N, N, N}};
    FOUND(still, NULL, "", "", "");
}

static void responses_that_are_cut_off(void **state) {
    (void)state;
    static const phase p[] = {{4, 0, N, 1, 1, 0.9, N, N},
                              {4, 0, N, 1, 1, N, N, N},
                              {4, 0, N, 1, 1, 0.91, N, N},
                              {4, 0, N, 1, 1, 1, N, N}};
    FOUND(p, NULL, "", "", "cut_off", "");
}

static void a_loss_that_diverges(void **state) {
    (void)state;
    static const phase p[] = {{N, N, N, 7, 7, N, 4.7, N}, // up to twice that plus 2 counts as noise
                              {N, N, N, 7, 7, N, 11.3, N},
                              {N, N, N, 7, 90000, N, 11.5, N}, // its gradients are not reported
                              {N, N, N, 7, 90000, N, 1867, N},
                              {N, N, N, 7, 7, N, 0.1, N}};
    FOUND(p, NULL, "", "", "diverged", "", "");
    static const phase bounded[] = {{N, N, N, 7, 7, N, 0.02, N}, {N, N, N, 7, 7, N, 2.03, N}};
    FOUND(bounded, NULL, "", "");
    static const phase exploded[] = {{N, N, N, 7, 7, N, 1, N}, {N, N, N, 7, 7001, N, 1, N}};
    FOUND(exploded, NULL, "", "exploded");
}

// A bounded loss does not show that preferred responses become unlikely, so their log-probs are
// checked as well. If the loss has diverged, only the divergence is reported.
static void preferred_responses_that_are_lost(void **state) {
    (void)state;
    static const phase p[] = {{N, N, N, 1, 1, N, 0.5, -0.2},
                              {N, N, N, 1, 1, N, 0.5, 0.99},
                              {N, N, N, 1, 1, N, 0.5, 1.01},
                              {N, N, N, 1, 1, N, 0.5, 7}};
    FOUND(p, NULL, "", "", "fell", "");
    static const phase beside[] = {{N, N, N, 1, 1, N, 0.5, 0}, {N, N, N, 1, 1, N, 40, 9}};
    FOUND(beside, NULL, "", "diverged");
}

static void a_policy_that_does_not_move(void **state) {
    (void)state;
    phase p[11];
    for (int i = 0; i < 11; i++)
        p[i] = (phase){4, 0, N, 1, 1, N, N, N};
    FOUND(p, NULL, "", "", "", "", "", "", "", "", "", "frozen", "");
    p[3].kl = 2.4e-9; // the rounding error of one token's log-prob
    FOUND(p, NULL, "", "", "", "", "", "", "", "", "", "frozen", "");
    p[3].kl = 1e-6;
    FOUND(p, NULL, "", "", "", "", "", "", "", "", "", "", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_in_a_sound_run),
        cmocka_unit_test(a_policy_far_from_the_reference),
        cmocka_unit_test(another_reference),
        cmocka_unit_test(a_collapse_by_entropy),
        cmocka_unit_test(nothing_after_a_collapse),
        cmocka_unit_test(a_jump),
        cmocka_unit_test(exploding_gradients),
        cmocka_unit_test(responses_that_are_cut_off),
        cmocka_unit_test(a_loss_that_diverges),
        cmocka_unit_test(preferred_responses_that_are_lost),
        cmocka_unit_test(a_policy_that_does_not_move),
    };
    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
