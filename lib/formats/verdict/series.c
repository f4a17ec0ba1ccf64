// series.c: see series.h.
#include "verdict/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MAX = 256 }; // series of a run; enough for 32 rewards (run_facts.h)

// Sorted by name.
static const char *const read_by_name[] = {
    "classify/accuracy",
    "completions/clipped_ratio",
    "completions/distinct_3",
    "completions/length_score_correlation",
    "completions/mean_length",
    "dpo/accuracy",
    "dpo/margin",
    "episodes/rewritten_turns",
    "eval/accuracy",
    "eval/bits_per_byte",
    "eval/loss",
    "eval/margin",
    "eval/objective/verifiable_correct_rate",
    "eval/reward",
    "frac_reward_zero_std",
    "judge/mean",
    "objective/entropy_per_token",
    "objective/kl",
    "objective/kl_per_token",
    "objective/loss",
    "objective/scores",
    "objective/scores_error",
    "objective/scores_noise",
    "objective/verifiable_correct_rate",
    "optim/flat_phases",
    "optim/grad_norm",
    "optim/grad_norm_max",
    "optim/not_finite_rows",
    "optim/preferred_fall",
    "optim/skipped_steps",
    "policy/clipfrac_avg",
    "reward_model/accuracy",
    "reward_std",
    "sampling/logp_difference/max",
    "sft/bits_per_token",
    "time/reward",
    "time/training",
    "tools/call_frequency",
    "val/num_stop_token_ids",
    "val/var_explained",
};

// Returns 1 for rewards/NAME/mean, rewards/NAME/std, rewards/NAME/failures and rewards/not_finite.
// Metrics that the reward plugins report themselves are not read.
static int is_of_reward(const char *name) {
    static const char *const ends[] = {"/mean", "/std", "/failures"};
    const size_t n = strlen(name);
    if (strncmp(name, "rewards/", 8) != 0) return 0;
    if (strcmp(name, "rewards/not_finite") == 0) return 1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t k = strlen(ends[i]);
        if (n > 8 + k && strcmp(name + n - k, ends[i]) == 0) return 1;
    }
    return 0;
}

static int by_name(const void *name, const void *at) {
    return strcmp(name, *(const char *const *)at);
}

int rlhf__series_is_read(const char *name) {
    return bsearch(name, read_by_name, sizeof read_by_name / sizeof *read_by_name,
                   sizeof *read_by_name, by_name) ||
           is_of_reward(name);
}

void rlhf__series_set_finish(struct rlhf__series_set *s) {
    for (size_t i = 0; i < s->n; i++) {
        free(s->all[i].name);
        free(s->all[i].phase);
        free(s->all[i].value);
    }
    free(s->all);
    *s = (struct rlhf__series_set){0};
}

static struct rlhf__series *find(const struct rlhf__series_set *s, const char *name) {
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->all[i].name, name) == 0) return &s->all[i];
    return NULL;
}

const struct rlhf__series *rlhf__series_of(const struct rlhf__series_set *s, const char *name) {
    static const struct rlhf__series none = {0};
    const struct rlhf__series *found = find(s, name);
    return found ? found : &none;
}

static struct rlhf__series *append_series(struct rlhf__series_set *s, const char *name) {
    if (s->n == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 32;
        struct rlhf__series *all = realloc(s->all, cap * sizeof *all);
        if (!all) return NULL;
        s->all = all;
        s->cap = cap;
    }
    char *copy = strdup(name);
    if (!copy) return NULL;
    s->all[s->n] = (struct rlhf__series){.name = copy};
    return &s->all[s->n++];
}

// Make room for one more value. Returns 0 if memory runs out.
static int grow(struct rlhf__series *one) {
    if (one->n < one->cap) return 1;
    const int64_t cap = one->cap ? 2 * one->cap : 32;
    int64_t *phase = realloc(one->phase, (size_t)cap * sizeof *phase);
    if (phase) one->phase = phase;
    double *value = phase ? realloc(one->value, (size_t)cap * sizeof *value) : NULL;
    if (value) one->value = value;
    if (value) one->cap = cap;
    return value != NULL;
}

rlhf_status rlhf__series_set_put(struct rlhf__series_set *s, const char *name, int64_t phase,
                                 double value, struct rlhf__error *err) {
    struct rlhf__series *one = find(s, name);
    if (!isfinite(value)) return RLHF_OK;
    if (one && one->n > 0 && one->phase[one->n - 1] >= phase) return RLHF_OK;
    if (!one && s->n == SERIES_MAX) return RLHF_OK;
    if (!one) one = append_series(s, name);
    if (!one || !grow(one)) return RLHF__NOMEM(err, "out of memory for the series of metrics");
    one->phase[one->n] = phase;
    one->value[one->n++] = value;
    return RLHF_OK;
}

// Replaces a first accuracy of 0, which measures nothing. Until the first optimizer step, policy
// and reference are equal, so every margin is 0, and a tie counts as wrong. So the series begins
// with the accuracy of chance, which is 0.5 for two responses per row. With more responses per row,
// chance may be lower, so the series begins with the first measured accuracy if that is below 0.5.
static rlhf_status begin_with_chance(struct rlhf__series_set *s, const char *accuracy,
                                     const char *margin, int64_t phase, struct rlhf__error *err) {
    struct rlhf__series *a = find(s, accuracy), *m = find(s, margin);
    if (!a || !m || a->n != 1 || a->phase[0] != phase || m->n == 0 || m->phase[m->n - 1] != phase)
        return RLHF_OK;
    if (m->value[m->n - 1] == 0 && a->value[0] == 0) a->n = 0;
    if (a->n == 0 || m->n == 1) return RLHF_OK;
    if (!grow(a)) return RLHF__NOMEM(err, "out of memory for the series of metrics");
    a->phase[1] = a->phase[0];
    a->value[1] = a->value[0];
    a->phase[0] = m->phase[0];
    a->value[0] = fmin(0.5, a->value[1]);
    a->n = 2;
    return RLHF_OK;
}

int rlhf__series_begins_with_chance(const struct rlhf__series_set *s, const char *name) {
    const int of_eval = strcmp(name, "eval/accuracy") == 0;
    if (!of_eval && strcmp(name, "dpo/accuracy") != 0) return 0;
    const struct rlhf__series *a = rlhf__series_of(s, name),
                              *m = rlhf__series_of(s, of_eval ? "eval/margin" : "dpo/margin");
    return a->n > 0 && m->n > 0 && m->value[0] == 0 && a->phase[0] == m->phase[0];
}

// Some algorithms report only the KL of whole responses.
static rlhf_status kl_per_token(struct rlhf__series_set *s, int64_t phase,
                                struct rlhf__error *err) {
    const struct rlhf__series *kl = find(s, "objective/kl"),
                              *length = find(s, "completions/mean_length");
    if (!kl || !length || kl->n == 0 || length->n == 0 || kl->phase[kl->n - 1] != phase ||
        length->phase[length->n - 1] != phase || !(length->value[length->n - 1] > 0))
        return RLHF_OK;
    return rlhf__series_set_put(s, "objective/kl_per_token", phase,
                                kl->value[kl->n - 1] / length->value[length->n - 1], err);
}

rlhf_status rlhf__series_set_derive(struct rlhf__series_set *s, int64_t phase,
                                    struct rlhf__error *err) {
    RLHF_TRY(kl_per_token(s, phase, err));
    RLHF_TRY(begin_with_chance(s, "dpo/accuracy", "dpo/margin", phase, err));
    return begin_with_chance(s, "eval/accuracy", "eval/margin", phase, err);
}

rlhf_status rlhf__series_set_row(struct rlhf__series_set *s, const json_t *row, int64_t phase,
                                 struct rlhf__error *err) {
    const char *name;
    json_t *value;
    if (phase < 0) return RLHF_OK;
    json_object_foreach((json_t *)(uintptr_t)row, name, value) {
        if (!json_is_number(value) || !rlhf__series_is_read(name)) continue;
        RLHF_TRY(rlhf__series_set_put(s, name, phase, json_number_value(value), err));
    }
    return rlhf__series_set_derive(s, phase, err);
}

// ---- the curve ----

// Returns the mean of the values in column i of n columns.
static double column(const struct rlhf__series *s, int64_t i, int64_t n) {
    const int64_t from = i * s->n / n, to = (i + 1) * s->n / n;
    double sum = 0;
    for (int64_t k = from; k < to; k++)
        sum += s->value[k];
    return sum / (double)(to - from);
}

void rlhf__put_sparkline(struct rlhf__buf *out, const struct rlhf__series *s, int columns) {
    const int64_t n = s->n < columns ? s->n : columns;
    double least = INFINITY, most = -INFINITY;
    if (n < 2) return;
    for (int64_t i = 0; i < n; i++) {
        least = fmin(least, column(s, i, n));
        most = fmax(most, column(s, i, n));
    }
    for (int64_t i = 0; i < n; i++) {
        const double at = most > least ? (column(s, i, n) - least) / (most - least) : 0.5;
        const int level = at >= 1 ? 7 : (int)(8 * at);
        rlhf__buf_printf(out, "\xe2\x96%c", 0x81 + level); // U+2581 to U+2588
    }
}
