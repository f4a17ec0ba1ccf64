// update_rules.c: rules about the updates: jumps of the policy, gradients, skipped steps and rows,
// KL over its target, clipped tokens, the critic, and the time that scoring takes.
#include "base/buf.h"
#include "verdict/rules.h"

#include <stdlib.h>

#define KL_JUMP     0.5    // rise of the KL above all earlier phases, nats per token
#define NORM_USUAL  1000.0 // multiple of the usual gradient norm that counts as exploding
#define NORM_LARGE  10.0   // a norm up to this does not count
#define OVER_TARGET 1.5    // multiple of the KL that the settings ask for

// ---- single steps ----

int64_t rlhf__jump(const struct rlhf__history *h, double *before, double *kl) {
    const struct rlhf__series *s = rlhf__measured(h, "objective/kl_per_token");
    for (int64_t i = 0; i < s->n; i++) {
        if (i > 0 && s->value[i] - *before > KL_JUMP) {
            *kl = s->value[i];
            return s->phase[i];
        }
        *before = i > 0 && *before > s->value[i] ? *before : s->value[i];
    }
    return 0;
}

// Returns the median norm of the phases before `phase`, except those without a learning signal.
// Their gradients come only from penalties. Without other phases, returns NORM_LARGE.
static double usual_norm(const struct rlhf__history *h, int64_t phase) {
    const struct rlhf__series *all = rlhf__measured(h, "optim/grad_norm"),
                              *flat = rlhf__measured(h, "frac_reward_zero_std");
    struct rlhf__series some = {.value =
                                    all->n ? malloc((size_t)all->n * sizeof *some.value) : NULL};
    for (int64_t i = 0, k = 0; some.value && i < all->n && all->phase[i] < phase; i++) {
        while (k < flat->n && flat->phase[k] < all->phase[i])
            k++;
        const int teaches = k == flat->n || flat->phase[k] != all->phase[i] || flat->value[k] < 1;
        if (teaches && all->value[i] > 0) some.value[some.n++] = all->value[i];
    }
    const double usual = some.n ? rlhf__trend_median(&some) : NORM_LARGE;
    free(some.value);
    return usual;
}

int64_t rlhf__explosion(const struct rlhf__history *h, double *usual, double *norm) {
    const struct rlhf__series *most = rlhf__measured(h, "optim/grad_norm_max");
    double least = NORM_LARGE;
    for (int64_t i = 0; i < most->n; i++) {
        const double v = most->value[i];
        // A norm that is not far above the smallest one so far needs no median.
        if (v > NORM_LARGE && v > NORM_USUAL * least &&
            v > NORM_USUAL * usual_norm(h, most->phase[i])) {
            *usual = usual_norm(h, most->phase[i]);
            *norm = v;
            return most->phase[i];
        }
        if (v > 0 && v < least) least = v;
    }
    return 0;
}

static void add_step(const struct rlhf__history *h, struct rlhf__run_note *form, const char *what,
                     double to, double from, struct rlhf__notes *out) {
    struct rlhf__buf change = RLHF__BUF_INIT;
    char a[40], b[40];
    rlhf__put_cause(h, 0, &change);
    if (change.bad) out->bad = 1;
    form->level = RLHF__NOTE_WARN;
    form->change = rlhf__buf_text(&change);
    rlhf__notes_add(out, form, what, rlhf__figure(to, a), rlhf__figure(from, b));
    rlhf__buf_finish(&change);
}

void rlhf__rule_jumped(const struct rlhf__history *h, struct rlhf__notes *out) {
    double before = 0, kl = 0;
    const int64_t phase = rlhf__jump(h, &before, &kl);
    struct rlhf__run_note form = {
        .id = "jumped",
        .rule = "KL from the reference more than 0.5 nats per token above all earlier phases",
        .held = {phase, 1}};
    if (phase)
        add_step(
            h, &form,
            "The policy jumped away from the reference: KL %s nats per token, at most %s before.",
            kl, before, out);
}

void rlhf__rule_exploded(const struct rlhf__history *h, struct rlhf__notes *out) {
    double usual = 0, norm = 0;
    const int64_t phase = rlhf__explosion(h, &usual, &norm);
    struct rlhf__run_note form = {.id = "exploded",
                                  .rule = "optim/grad_norm_max above 10 and above 1,000 times the "
                                          "median of optim/grad_norm before",
                                  .held = {phase, 1}};
    if (phase)
        add_step(h, &form, "The gradient norm exploded: %s, where at most %s is usual.", norm,
                 usual, out);
}

// The metric counts from the start of the run.
void rlhf__rule_skipped_steps(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = rlhf__measured(h, "optim/skipped_steps");
    const double skipped = s->n ? s->value[s->n - 1] : 0;
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "skipped_steps",
        .rule = "optim/skipped_steps above 0",
        .change = "a lower optim.lr; with rewards, smaller ones (their weights, rewards.normalize, "
                  "rewards.clip)",
        .held = rlhf__trend_above(s, 0)};
    if (form.held.n)
        rlhf__notes_add(
            out, &form,
            "%.0f update%s skipped so far, because the loss or a gradient was not finite.", skipped,
            skipped == 1 ? " was" : "s were");
}

// The metric is absent in phases without such rows.
void rlhf__rule_not_finite_rows(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = rlhf__measured(h, "optim/not_finite_rows");
    const double rows = rlhf__trend_sum(s);
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "not_finite_rows",
        .rule = "optim/not_finite_rows above 0",
        .change = "correct the algorithm's advantages(); 'rlhf-host plugin check' tests a plugin",
        .held = rlhf__trend_above(s, 0)};
    if (form.held.n)
        rlhf__notes_add(out, &form,
                        "%.0f row%s left out of the updates so far, because an advantage or a "
                        "return in the group was not finite.",
                        rows, rows == 1 ? " was" : "s were");
}

// ---- trends ----

void rlhf__rule_kl_over_target(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = rlhf__measured(h, "objective/kl");
    const double limit = OVER_TARGET * h->facts->kl_limit;
    const struct rlhf__run_note form = {.level = RLHF__NOTE_WARN,
                                        .id = "kl_over_target",
                                        .rule = "objective/kl above 1.5 times the target",
                                        .change = "raise algo.kl_coef or lower optim.lr",
                                        .held = rlhf__trend_above(s, limit)};
    char kl[40], target[40];
    if (!(limit > 0) || !(rlhf__last_of(s) > limit)) return;
    rlhf__notes_add(out, &form, "KL is %s nats per sequence; the target (%s) is %s.",
                    rlhf__figure(rlhf__last_of(s), kl), h->facts->kl_setting,
                    rlhf__figure(h->facts->kl_limit, target));
}

void rlhf__rule_gradient(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = rlhf__measured(h, "optim/grad_norm");
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_INFO,
        .id = "gradient",
        .rule = "optim/grad_norm above optim.max_grad_norm in more than nine phases of ten"};
    const double limit = h->facts->max_grad_norm;
    int64_t above = 0;
    char norm[40], at[40];
    for (int64_t i = 0; i < s->n; i++)
        above += s->value[i] > limit;
    if (!(limit > 0) || s->n < RLHF__TREND_FEWEST || 10 * above <= 9 * s->n) return;
    rlhf__notes_add(out, &form,
                    "The gradient was clipped in %.0f %% of the phases: its norm is %s, the limit "
                    "%s.",
                    100 * (double)above / (double)s->n, rlhf__figure(rlhf__trend_median(s), norm),
                    rlhf__figure(limit, at));
}

void rlhf__rule_slow_reward(const struct rlhf__history *h, struct rlhf__notes *out) {
    const double whole = rlhf__trend_sum(rlhf__measured(h, "time/training")),
                 scoring = rlhf__trend_sum(rlhf__measured(h, "time/reward"));
    const struct rlhf__run_note form = {.level = RLHF__NOTE_INFO,
                                        .id = "slow_reward",
                                        .rule = "time/reward above half of time/training",
                                        .change = "rewards.workers and rewards.overlap"};
    if (!(whole > 0) || !(scoring > 0.5 * whole)) return;
    rlhf__notes_add(out, &form, "Scoring takes %.0f %% of the time.", 100 * scoring / whole);
}
