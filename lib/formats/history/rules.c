// rules.c: see rules.h.
#include "history/rules.h"

#include "history/reward_rules.h"

static const struct rlhf__series *of(const struct rlhf__history *h, const char *name) {
    return rlhf__series_of(h->series, name);
}

// Returns 1 if the rule holds, i.e. if both the mean at the end of the series (`beyond` is 1) and
// each of the last RLHF__RULE_HELD values are beyond the rule's limit.
static int holds(const struct rlhf__run_note *form, int beyond) {
    return beyond && form->held.n >= RLHF__RULE_HELD;
}

static double last_of(const struct rlhf__series *s) { return s->n ? rlhf__trend_ends(s).last : 0; }

// ---- responses ----

// Returns 1 if responses may end before the length limit. If the settings do not decide this, the
// result depends on whether the mean length was ever below the limit.
static int may_end(const struct rlhf__history *h) {
    const struct rlhf__run_facts *f = h->facts;
    const struct rlhf__series *length = of(h, "completions/mean_length");
    if (f->may_end) return f->may_end > 0;
    for (int64_t i = 0; i < length->n; i++)
        if (length->value[i] < (double)f->max_new_tokens) return 1;
    return 0;
}

static void cut_off(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = of(h, "completions/clipped_ratio");
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "cut_off",
        .rule = "completions/clipped_ratio above 0.9, although responses may end by themselves",
        .change = "raise sampling.max_new_tokens, check that sampling.stop names the token that "
                  "ends a response, or set sampling.stop_at_eos=false if they need not end",
        .held = rlhf__trend_above(s, RLHF__RULE_CUT_OFF)};
    if (!holds(&form, last_of(s) > RLHF__RULE_CUT_OFF) || !may_end(h)) return;
    rlhf__notes_add(
        out, &form,
        "%.0f %% of the responses reach sampling.max_new_tokens (%lld) and are cut off.",
        100 * last_of(s), (long long)h->facts->max_new_tokens);
}

// Adds a note about responses that shrink. It is a warning, unless the reward asks for it: within
// phases, shorter responses had higher rewards.
static void shorter(const struct rlhf__history *h, const char *first, const char *last,
                    double limit, struct rlhf__notes *out) {
    const struct rlhf__series *by = of(h, "completions/length_score_correlation");
    const double paid = rlhf__trend_mean(by);
    const int asked = by->n >= RLHF__TREND_FEWEST && paid < RLHF__RULE_BREVITY;
    const struct rlhf__run_note form = {
        .level = asked ? RLHF__NOTE_INFO : RLHF__NOTE_WARN,
        .id = asked ? "shorter" : "lengths",
        .rule = asked ? "completions/mean_length below half of its beginning, and "
                        "completions/length_score_correlation below -0.3 on average"
                      : "completions/mean_length below half of its beginning",
        .change = asked
                      ? "nothing, if short responses are wanted; otherwise check the reward on an "
                        "empty response"
                      : "short responses are rewarded or long ones are penalised: check the "
                        "reward on an empty response",
        .held = rlhf__trend_below(of(h, "completions/mean_length"), limit)};
    char figure[40];
    if (asked)
        rlhf__notes_add(out, &form,
                        "Responses shrink, as the reward asks: %s tokens at first, %s at the end; "
                        "shorter ones score higher (correlation %s).",
                        first, last, rlhf__figure(paid, figure));
    else
        rlhf__notes_add(out, &form, "Responses shrink: %s tokens at first, %s at the end.", first,
                        last);
}

// Adds a note if lengths grow to the limit or shrink to nothing, unless a reward asks for a certain
// length.
static void lengths(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = of(h, "completions/mean_length"),
                              *cut = of(h, "completions/clipped_ratio");
    const struct rlhf__first_last e = rlhf__trend_ends(s), c = rlhf__trend_ends(cut);
    const int moved = rlhf__trend_moved(s);
    char first[40], last[40];
    struct rlhf__run_note form = {.level = RLHF__NOTE_WARN, .id = "lengths"};
    if (h->facts->pays_length || !moved || !may_end(h)) return;
    rlhf__figure(e.first, first);
    rlhf__figure(e.last, last);
    if (moved < 0 && e.last < e.first / 2) {
        shorter(h, first, last, e.first / 2, out);
    } else if (moved > 0 && e.last > 1.5 * e.first && c.first < 0.25 && c.last > 0.5) {
        form.rule = "completions/mean_length above 1.5 times its beginning, and more than half of "
                    "the responses are cut off, at first less than a quarter";
        form.change = "length is rewarded, on purpose or not: add a length penalty (length.so), or "
                      "raise sampling.max_new_tokens if longer responses are better";
        form.held = rlhf__trend_above(cut, 0.5);
        rlhf__notes_add(out, &form,
                        "Responses grow into the length limit: %s tokens at first, %s at the end, "
                        "and %.0f %% are cut off.",
                        first, last, 100 * c.last);
    }
}

// ---- updates ----

static void kl_over_target(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = of(h, "objective/kl");
    const double limit = RLHF__RULE_OVER_TARGET * h->facts->kl_limit;
    const struct rlhf__run_note form = {.level = RLHF__NOTE_WARN,
                                        .id = "kl_over_target",
                                        .rule = "objective/kl above 1.5 times the target",
                                        .change = "raise algo.kl_coef or lower optim.lr",
                                        .held = rlhf__trend_above(s, limit)};
    char kl[40], target[40];
    if (!(limit > 0) || !holds(&form, last_of(s) > limit)) return;
    rlhf__notes_add(out, &form, "KL is %s nats per sequence; the target (%s) is %s.",
                    rlhf__figure(last_of(s), kl), h->facts->kl_setting,
                    rlhf__figure(h->facts->kl_limit, target));
}

static void clipped(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = of(h, "policy/clipfrac_avg");
    const struct rlhf__run_note form = {.level = RLHF__NOTE_WARN,
                                        .id = "clipped",
                                        .rule = "policy/clipfrac_avg above 0.3",
                                        .change = "lower optim.lr, algo.epochs or algo.minibatches",
                                        .held = rlhf__trend_above(s, RLHF__RULE_CLIPPED)};
    if (!holds(&form, last_of(s) > RLHF__RULE_CLIPPED)) return;
    rlhf__notes_add(out, &form,
                    "%.0f %% of the tokens are clipped: updates are larger than the clip range "
                    "allows.",
                    100 * last_of(s));
}

static void critic(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = of(h, "val/var_explained");
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "critic",
        .rule = "val/var_explained below 0",
        .change = "raise algo.value_coef or value.lr; if the reward grows quickly, "
                  "rewards.normalize keeps its scale",
        .held = rlhf__trend_below(s, 0)};
    char fit[40];
    if (!holds(&form, last_of(s) < 0)) return;
    rlhf__notes_add(out, &form,
                    "The critic is worse than predicting the mean (explained variance %s).",
                    rlhf__figure(last_of(s), fit));
}

static void gradient(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = of(h, "optim/grad_norm");
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

static void slow_reward(const struct rlhf__history *h, struct rlhf__notes *out) {
    const double whole = rlhf__trend_sum(of(h, "time/training")),
                 scoring = rlhf__trend_sum(of(h, "time/reward"));
    const struct rlhf__run_note form = {.level = RLHF__NOTE_INFO,
                                        .id = "slow_reward",
                                        .rule = "time/reward above half of time/training",
                                        .change = "rewards.workers and rewards.overlap"};
    if (!(whole > 0) || !(scoring > 0.5 * whole)) return;
    rlhf__notes_add(out, &form, "Scoring takes %.0f %% of the time.", 100 * scoring / whole);
}

void rlhf__rules_apply(const struct rlhf__history *h, struct rlhf__notes *out) {
    rlhf__reward_rules_apply(h, out);
    cut_off(h, out);
    lengths(h, out);
    kl_over_target(h, out);
    clipped(h, out);
    critic(h, out);
    gradient(h, out);
    slow_reward(h, out);
}
