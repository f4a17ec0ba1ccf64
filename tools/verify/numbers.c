// numbers.c: see numbers.h.
#include "verify/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- metrics ----

// Names, and beginnings of names, of metrics that are not recomputed: times and speeds, metrics of
// sampling and scoring responses, and metrics of training a reward model in an outer loop.
static const char *const left_out[] = {"phase",
                                       "time/",
                                       "perf/",
                                       "episode",
                                       "rewards/",
                                       "judge/",
                                       "eval/",
                                       "reward_model/",
                                       "iteration/pairs",
                                       "sampling/fresh_rounds",
                                       "sampling/prompts",
                                       "sampling/flat_",
                                       "objective/verifiable_correct_rate",
                                       NULL};

// These metrics describe the responses of the first round. If dynamic sampling replaced groups,
// these responses are not in the record.
static const char *const of_first_round[] = {
    "objective/scores", "completions/", "val/num_stop_token_ids", "val/sequence_lengths", NULL};

static int is_in(const char *const *names, const char *name) {
    for (size_t i = 0; names[i]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0) return 1;
    return 0;
}

// Returns 1 for metrics that are the difference between two ways of computing the same number. Such
// a metric is only rounding error.
static int is_rounding(const char *name) {
    return strncmp(name, "sampling/logp_difference", 24) == 0;
}

// A gradient norm below this is not compared relative to itself. If the loss is flat, a gradient is
// the rounding error of terms that cancel, and its norm is at most about 1e-6.
#define LEAST_NORM 1e-2

static double value(const json_t *v) { return json_is_number(v) ? json_number_value(v) : NAN; }

static struct rlhf__recompute_check begin(const char *what, double limit) {
    struct rlhf__recompute_check c = {.limit = limit};
    snprintf(c.what, sizeof c.what, "%s", what);
    return c;
}

static rlhf_status one_metric(const char *name, const json_t *run, const json_t *again,
                              const struct rlhf__check_limits *l,
                              struct rlhf__recompute_check *worst, struct rlhf__checks *c,
                              struct rlhf__error *err) {
    struct rlhf__recompute_check own = begin("metric", l->number);
    const double x = value(run), y = value(again);
    const double scale = is_rounding(name) || !isfinite(y) ? 1 : 1 + fabs(y);
    if (strcmp(name, "lr") == 0 && y != 0) { // small, and computed without rounding errors
        own.limit = l->number > 0 ? 1e-12 : 0;
        rlhf__check_see(&own, x, y, fabs(y), name);
    } else {
        rlhf__check_see(&own, x, y, scale, name);
    }
    if (!(own.relative <= own.limit)) return rlhf__checks_add(c, &own, err);
    rlhf__check_see(worst, x, y, scale, name);
    return RLHF_OK;
}

// The recomputed phase has already compared its log-probs with the recorded ones. Checks the result
// of this comparison.
static rlhf_status sampled(const json_t *again, const struct rlhf__check_limits *l,
                           struct rlhf__checks *c, struct rlhf__error *err) {
    struct rlhf__recompute_check k = begin("log-probs of sampling", l->number);
    const json_t *most = json_object_get(again, "sampling/logp_difference/max");
    if (!most) return RLHF_OK;
    k.difference = k.relative = value(most);
    return rlhf__checks_add(c, &k, err);
}

rlhf_status rlhf__numbers_metrics(const json_t *run, const json_t *again, int has_updates,
                                  const struct rlhf__check_limits *l, struct rlhf__checks *c,
                                  struct rlhf__error *err) {
    struct rlhf__recompute_check worst = begin("", l->number);
    struct rlhf__recompute_check loss = begin("loss", l->number),
                                 norm = begin("gradient norm", l->norm);
    const char *name;
    json_t *v;
    size_t n = 0;
    const int replaced = value(json_object_get(run, "sampling/fresh_rounds")) > 0;
    json_object_foreach((json_t *)(uintptr_t)again, name, v) {
        // With recorded responses, the position in the prompts does not move.
        if (is_in(left_out, name) || (replaced && is_in(of_first_round, name))) continue;
        if (has_updates && strcmp(name, "epoch") == 0) continue;
        // Missing are scores without rewards, and val/var_explained if all returns are the same.
        if (!json_object_get(run, name)) continue;
        n++;
        RLHF_TRY(one_metric(name, json_object_get(run, name), v, l, &worst, c, err));
    }
    snprintf(worst.what, sizeof worst.what, "%zu metrics", n);
    RLHF_TRY(rlhf__checks_add(c, &worst, err));
    RLHF_TRY(sampled(again, l, c, err));
    if (has_updates) return RLHF_OK;
    const double x = value(json_object_get(again, "objective/loss"));
    const double y = value(json_object_get(again, "optim/grad_norm"));
    rlhf__check_see(&loss, value(json_object_get(run, "objective/loss")), x, 1 + fabs(x), "");
    rlhf__check_see(&norm, value(json_object_get(run, "optim/grad_norm")), y,
                    fmax(fabs(y), LEAST_NORM), "");
    RLHF_TRY(rlhf__checks_add(c, &loss, err));
    return rlhf__checks_add(c, &norm, err);
}

// ---- rollouts ----

// Compare arrays of numbers, also nested ones. If an array is absent or null on both sides, there
// is nothing to compare.
static int see_numbers(struct rlhf__recompute_check *worst, const json_t *run, const json_t *again,
                       const char *where) {
    if (json_is_array(run) && json_is_array(again)) {
        const size_t n = json_array_size(run);
        int ok = n == json_array_size(again);
        for (size_t i = 0; ok && i < n; i++)
            ok = see_numbers(worst, json_array_get(run, i), json_array_get(again, i), where);
        return ok;
    }
    if (json_is_array(run) || json_is_array(again)) return 0;
    if (json_is_null(run) && json_is_null(again)) return 1;
    const double x = value(run), y = value(again);
    if (run && again) rlhf__check_see(worst, x, y, isfinite(y) ? 1 + fabs(y) : 1, where);
    return 1;
}

static rlhf_status compare_key(const json_t *run, const json_t *again, const char *key,
                               const char *what, const char *line,
                               const struct rlhf__check_limits *l, struct rlhf__checks *c,
                               struct rlhf__error *err) {
    struct rlhf__recompute_check worst = begin(what, l->number);
    char where[64];
    int ok = json_array_size(run) == json_array_size(again);
    for (size_t i = 0; ok && i < json_array_size(run); i++) {
        snprintf(where, sizeof where, "%s %zu", line, i);
        ok = see_numbers(&worst, json_object_get(json_array_get(run, i), key),
                         json_object_get(json_array_get(again, i), key), where);
    }
    if (!ok) return rlhf__checks_fail(c, what, "the lines have other lengths", err);
    return worst.has_values ? rlhf__checks_add(c, &worst, err) : RLHF_OK;
}

// Compare the log-probs of named models. Each row has them as an object of arrays.
static rlhf_status compare_named(const json_t *run, const json_t *again,
                                 const struct rlhf__check_limits *l, struct rlhf__checks *c,
                                 struct rlhf__error *err) {
    struct rlhf__recompute_check worst = begin("log-probs of named models", l->number);
    char where[64];
    const char *name;
    json_t *v;
    int ok = 1;
    for (size_t i = 0; i < json_array_size(again); i++) {
        const json_t *theirs = json_object_get(json_array_get(run, i), "named");
        snprintf(where, sizeof where, "row %zu", i);
        json_object_foreach(json_object_get(json_array_get(again, i), "named"), name, v) ok =
            ok && see_numbers(&worst, json_object_get(theirs, name), v, where);
    }
    if (!ok) return rlhf__checks_fail(c, worst.what, "the lines have other lengths", err);
    return worst.has_values ? rlhf__checks_add(c, &worst, err) : RLHF_OK;
}

// Checks that the run and the recomputed phase have the same steps, with the same rows, and leave
// the same rows out of the loss.
static rlhf_status compare_steps(const json_t *run, const json_t *again, struct rlhf__checks *c,
                                 struct rlhf__error *err) {
    static const char *const keys[] = {"epoch", "minibatch", "rows", "masked", "skipped"};
    if (json_array_size(run) != json_array_size(again))
        return rlhf__checks_fail(c, "steps", "the run has another number of them", err);
    for (size_t i = 0; i < json_array_size(run); i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            json_t *x = json_object_get(json_array_get(run, i), keys[k]);
            json_t *y = json_object_get(json_array_get(again, i), keys[k]);
            if ((x || y) && !json_equal(x, y))
                return rlhf__checks_fail(c, "steps: their rows differ", keys[k], err);
        }
    return RLHF_OK;
}

static rlhf_status compare_norms(const json_t *run, const json_t *again,
                                 const struct rlhf__check_limits *l, struct rlhf__checks *c,
                                 struct rlhf__error *err) {
    struct rlhf__recompute_check worst = begin("gradient norm", l->norm);
    char where[64];
    double most = 0;
    for (size_t i = 0; i < json_array_size(again); i++) {
        const double x = value(json_object_get(json_array_get(again, i), "grad_norm"));
        if (x > most) most = x;
    }
    for (size_t i = 0; i < json_array_size(run); i++) {
        snprintf(where, sizeof where, "step %zu", i);
        rlhf__check_see(&worst, value(json_object_get(json_array_get(run, i), "grad_norm")),
                        value(json_object_get(json_array_get(again, i), "grad_norm")),
                        fmax(most, LEAST_NORM), where);
    }
    return rlhf__checks_add(c, &worst, err);
}

rlhf_status rlhf__numbers_rollouts(const struct rlhf__recorded *run,
                                   const struct rlhf__recorded *again,
                                   const struct rlhf__check_limits *l, struct rlhf__checks *c,
                                   struct rlhf__error *err) {
    static const struct {
        const char *key, *what;
    } keys[] = {{"logp_old", "log-probs of ratios"},
                {"logp_ref", "log-probs of the reference"},
                {"value", "values"},
                {"advantage", "advantages"},
                {"returns", "returns"}};
    const json_t *rows = rlhf__recorded_rows(run), *mine = rlhf__recorded_rows(again);
    const json_t *steps = rlhf__recorded_updates(run), *my_steps = rlhf__recorded_updates(again);
    RLHF_TRY(compare_key(steps, my_steps, "loss", "loss", "step", l, c, err));
    RLHF_TRY(compare_norms(steps, my_steps, l, c, err));
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        RLHF_TRY(compare_key(rows, mine, keys[k].key, keys[k].what, "row", l, c, err));
    RLHF_TRY(compare_named(rows, mine, l, c, err));
    RLHF_TRY(compare_key(steps, my_steps, "advantage", "advantages of steps", "step", l, c, err));
    RLHF_TRY(compare_key(steps, my_steps, "returns", "returns of steps", "step", l, c, err));
    return compare_steps(steps, my_steps, c, err);
}
