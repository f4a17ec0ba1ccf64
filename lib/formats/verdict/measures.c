// measures.c: see measures.h.
#include "verdict/measures.h"

#include <math.h>
#include <string.h>

static const struct rlhf__headline headlines[] = {
    {"objective/verifiable_correct_rate", "Share of right answers", 1},
    {"objective/scores", "Reward", 1},
    {"reward_model/accuracy", "Accuracy of the reward model", 1},
    {"dpo/accuracy", "Preference accuracy", 1},
    {"classify/accuracy", "Accuracy", 1},
    {"sft/bits_per_token", "Bits per token", -1},
    {"objective/loss", "Loss", -1},
};

static const struct rlhf__witness witnesses[] = {
    {"judge/mean", 1, "judge"},
    {"eval/objective/verifiable_correct_rate", 1, "share of right answers"},
    {"eval/reward", 1, "reward"},
    {"eval/accuracy", 1, "accuracy"},
    {"eval/bits_per_byte", -1, "bits per byte"},
    {"eval/loss", -1, "loss"},
};

const struct rlhf__series *rlhf__measured(const struct rlhf__history *h, const char *metric) {
    return rlhf__series_of(h->series, metric);
}

double rlhf__last_of(const struct rlhf__series *s) { return s->n ? rlhf__trend_ends(s).last : 0; }

struct rlhf__headline rlhf__headline_of(const struct rlhf__series_set *s) {
    for (size_t i = 0; i < sizeof headlines / sizeof *headlines; i++)
        if (rlhf__series_of(s, headlines[i].metric)->n > 1) return headlines[i];
    return (struct rlhf__headline){0};
}

static int same_values(const struct rlhf__series *a, const struct rlhf__series *b) {
    return a->n == b->n && a->n > 0 &&
           memcmp(a->value, b->value, (size_t)a->n * sizeof *a->value) == 0;
}

double rlhf__measure_noise(const struct rlhf__series_set *set, const char *metric) {
    const struct rlhf__series *s = rlhf__series_of(set, metric);
    const double steps = rlhf__trend_noise(s);
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    const struct rlhf__series *error = rlhf__series_of(set, "objective/scores_error"),
                              *scores = rlhf__series_of(set, "objective/scores");
    if (error->n < RLHF__TREND_FEWEST || !same_values(s, scores)) return steps;
    const double first = rlhf__trend_rms(error, RLHF__TREND_FEWEST),
                 last = rlhf__trend_rms(error, -RLHF__TREND_FEWEST), width = (double)e.width;
    // the noise at which the difference would have the same standard error
    const double rows = sqrt((first * first + last * last / width) / (1 + 1 / width));
    return rows > 0 && rows < steps ? rows : steps;
}

int rlhf__measure_moved(const struct rlhf__series_set *set, const char *metric) {
    return rlhf__trend_moved_by(rlhf__series_of(set, metric), rlhf__measure_noise(set, metric));
}

int rlhf__headline_is_reward(const struct rlhf__series_set *s) {
    const char *metric = rlhf__headline_of(s).metric;
    return metric && strcmp(metric, "objective/scores") == 0;
}

int rlhf__headline_moved(const struct rlhf__series_set *s) {
    const struct rlhf__headline h = rlhf__headline_of(s);
    return h.metric ? h.better * rlhf__measure_moved(s, h.metric) : 0;
}

const struct rlhf__witness *rlhf__witness_at(size_t i) {
    return i < sizeof witnesses / sizeof *witnesses ? &witnesses[i] : NULL;
}

int rlhf__witness_repeats(const struct rlhf__series_set *set, size_t i) {
    const struct rlhf__series *s = rlhf__series_of(set, witnesses[i].metric);
    for (size_t k = 0; k < i; k++) {
        const struct rlhf__series *o = rlhf__series_of(set, witnesses[k].metric);
        if (same_values(o, s)) return 1;
    }
    return 0;
}

int rlhf__is_failure_metric(const char *name) {
    const size_t n = strlen(name);
    if (strcmp(name, "rewards/not_finite") == 0) return 1;
    return strncmp(name, "rewards/", 8) == 0 && n > 9 && strcmp(name + n - 9, "/failures") == 0;
}
