// reward_rules.c: rules about what the rewards teach, and about measures that nothing is trained
// on.
#include "verdict/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FLAT 0.5 // share of groups whose responses have the same reward

// The series rewards/NAME/WHAT, where NAME is the name of reward k and WHAT is `what`.
static const struct rlhf__series *of_reward(const struct rlhf__history *h, size_t k,
                                            const char *what) {
    char name[256];
    snprintf(name, sizeof name, "rewards/%s/%s", h->facts->reward[k].name, what);
    return rlhf__measured(h, name);
}

// Finds the longest run of values at the end of the series that are all worse than the first value.
// Differences within the noise do not count as worse.
static struct rlhf__held worse_since(const struct rlhf__series *s, int better) {
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    const double bar = 3 * rlhf__trend_noise(s) * sqrt(1 + 1 / (double)e.width);
    return better > 0 ? rlhf__trend_below(s, e.first - bar) : rlhf__trend_above(s, e.first + bar);
}

// ---- rewards that are all equal ----

// If the reward failed for some rows at the end of the run, returns the advice to fix the reward
// first. Otherwise returns `otherwise`.
static const char *if_scored(const struct rlhf__history *h, const char *otherwise) {
    for (size_t i = 0; i < h->series->n; i++)
        if (rlhf__is_failure_metric(h->series->all[i].name) &&
            rlhf__trend_above(&h->series->all[i], 0).n)
            return "fix the reward first: it failed for some rows, and the warnings say why";
    return otherwise;
}

// Finds the phases at the end without a learning signal. optim/flat_phases counts them.
static struct rlhf__held flat_at_end(const struct rlhf__history *h) {
    const struct rlhf__series *s = rlhf__measured(h, "optim/flat_phases");
    int64_t i = s->n;
    while (i > 0 && s->value[i - 1] > (i > 1 ? s->value[i - 2] : 0))
        i--;
    if (i == s->n) return (struct rlhf__held){0, 0};
    return (struct rlhf__held){s->phase[i], s->n - i};
}

// In flat phases, rewards still differ between groups if this is above 0.
static double spread_at_end(const struct rlhf__history *h) {
    const struct rlhf__series *s = rlhf__measured(h, "reward_std");
    if (!s->n && h->facts->n_rewards == 1) s = of_reward(h, 0, "std");
    return s->n ? s->value[s->n - 1] : 0;
}

// If the headline has improved, the reason may be that all answers are right, so the note is then
// not a warning.
void rlhf__rule_constant_reward(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *scores = rlhf__measured(h, "objective/scores");
    const int learned = rlhf__headline_moved(h->series) > 0;
    const struct rlhf__run_note form = {
        .level = learned ? RLHF__NOTE_INFO : RLHF__NOTE_BAD,
        .id = "constant_reward",
        .rule = "optim/flat_phases rose, and all rewards of the phase are equal",
        .change =
            if_scored(h, learned ? "the prompts have become easy: harder prompts"
                                 : "check that the reward reads the right field and sees the whole "
                                   "response; a reward with more than two values, easier or harder "
                                   "prompts"),
        .held = flat_at_end(h)};
    char value[40];
    if (!form.held.n || spread_at_end(h) > 1e-12 || !scores->n) return;
    rlhf__notes_add(out, &form, "All responses have the same reward (%s), which teaches nothing.",
                    rlhf__figure(scores->value[scores->n - 1], value));
}

// Adds a note if, in many groups, all responses have the same reward: in all groups of a phase, or
// for three phases in more than half of them.
void rlhf__rule_flat_groups(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = rlhf__measured(h, "frac_reward_zero_std");
    const int learned = rlhf__headline_moved(h->series) > 0;
    const struct rlhf__held flat = flat_at_end(h), many = rlhf__trend_above(s, FLAT);
    const int all = flat.n > 0, lasts = many.n >= 3 && rlhf__last_of(s) > FLAT;
    const struct rlhf__run_note form = {
        .level = learned ? RLHF__NOTE_INFO : RLHF__NOTE_WARN,
        .id = "flat_groups",
        .rule = "frac_reward_zero_std is 1, or for three phases above 0.5",
        .change = if_scored(h, learned ? "the prompts have become easy: harder prompts, or "
                                         "algo.dynamic_sampling=true"
                                       : "easier or harder prompts, more responses per prompt "
                                         "(algo.group_size), a higher sampling.temperature, "
                                         "algo.dynamic_sampling=true"),
        .held = all ? flat : many};
    if (!(all || lasts) || rlhf__notes_find(out, "constant_reward")) return;
    rlhf__notes_add(out, &form,
                    "In %.0f %% of the groups all responses have the same reward, which teaches "
                    "nothing.",
                    all ? 100 : 100 * rlhf__last_of(s));
}

// ---- several rewards ----

// Returns the absolute weight of reward k times its mean standard deviation in the first phases.
// Later phases are not used, because the standard deviation of a reward becomes 0 when the policy
// has learned to satisfy it in every response. That is not a fault.
static double spread_at_first(const struct rlhf__history *h, size_t k) {
    return fabs(h->facts->reward[k].weight) *
           rlhf__trend_mean_of_first(of_reward(h, k, "std"), RLHF__TREND_FEWEST);
}

void rlhf__rule_drowned(const struct rlhf__history *h, struct rlhf__notes *out) {
    const size_t n = h->facts->n_rewards;
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "drowned",
        .rule = "in the first five phases, weight times rewards/NAME/std below a twentieth of the "
                "largest",
        .change = "raise its weight, or set rewards.normalize=before"};
    double most = 0;
    size_t top = 0;
    if (n < 2) return;
    for (size_t k = 0; k < n; k++) {
        const double spread = spread_at_first(h, k);
        if (of_reward(h, k, "std")->n < RLHF__TREND_FEWEST) return;
        if (!(spread > most)) continue;
        most = spread;
        top = k;
    }
    for (size_t k = 0; k < n; k++) {
        const double spread = spread_at_first(h, k);
        struct rlhf__run_note note = form;
        const struct rlhf__series *s = of_reward(h, k, "std");
        if (!(spread > 0) || !(spread < RLHF__RULE_DROWNED * most)) continue;
        note.held = (struct rlhf__held){s->phase[0], s->n};
        rlhf__notes_add(out, &note,
                        "Reward %s drowns in %s: its weighted spread is %.2g %% of the other's.",
                        h->facts->reward[k].name, h->facts->reward[top].name, 100 * spread / most);
    }
}

// Adds a note if reward k moved against the sign of its weight, by more than its standard deviation
// in the first phase. The caller has checked that the weighted sum of all rewards rose.
static void lost_reward(const struct rlhf__history *h, size_t k, struct rlhf__notes *out) {
    const struct rlhf__paid *one = &h->facts->reward[k];
    const struct rlhf__series *s = of_reward(h, k, "mean"), *std = of_reward(h, k, "std");
    const int better = one->weight < 0 ? -1 : 1;
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "lost_reward",
        .rule =
            "objective/scores rose, and rewards/NAME/mean moved against its weight by more than "
            "its standard deviation in the first phase",
        .change = "raise its weight, or set rewards.normalize=before",
        .held = worse_since(s, better)};
    char first[40], last[40];
    if (one->weight == 0 || better * rlhf__trend_moved(s) >= 0) return;
    if (!(fabs(e.last - e.first) > rlhf__trend_ends(std).first)) return;
    rlhf__notes_add(out, &form, "Reward %s is lost to the others: %s at first, %s at the end.",
                    one->name, rlhf__figure(e.first, first), rlhf__figure(e.last, last));
}

void rlhf__rule_lost_rewards(const struct rlhf__history *h, struct rlhf__notes *out) {
    if (h->facts->n_rewards < 2 || rlhf__measure_moved(h->series, "objective/scores") <= 0) return;
    for (size_t k = 0; k < h->facts->n_rewards; k++)
        lost_reward(h, k, out);
}

// ---- signs and measures ----

// Adds a note if all rewards have negative weights and the run has learned to lower one of them.
void rlhf__rule_negative_weights(const struct rlhf__history *h, struct rlhf__notes *out) {
    struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "negative_weights",
        .rule = "every reward has a negative weight, and rewards/NAME/mean fell",
        .change = "if a higher score is better, its weight must be positive"};
    const size_t n = h->facts->n_rewards;
    char first[40], last[40];
    for (size_t k = 0; k < n; k++)
        if (!(h->facts->reward[k].weight < 0)) return;
    for (size_t k = 0; k < n; k++) {
        const struct rlhf__series *s = of_reward(h, k, "mean");
        const struct rlhf__first_last e = rlhf__trend_ends(s);
        if (rlhf__trend_moved(s) >= 0) continue;
        form.held = worse_since(s, 1);
        rlhf__notes_add(
            out, &form,
            "The policy learns to lower %s, whose weight is negative (%g): %s at first, "
            "%s at the end.",
            h->facts->reward[k].name, h->facts->reward[k].weight, rlhf__figure(e.first, first),
            rlhf__figure(e.last, last));
        return;
    }
}

// Returns 1 if the measure should move as the headline does: a judge, or the headline on held-out
// rows.
static int confirms(const char *headline, const char *measure) {
    const char *what = strcmp(headline, "objective/scores") == 0 ? "reward" : headline;
    if (strcmp(measure, "judge/mean") == 0) return 1;
    if (strncmp(measure, "eval/", 5) != 0) return 0;
    const char *slash = strrchr(what, '/');
    return strcmp(measure + 5, what) == 0 || (slash && strcmp(measure + 5, slash + 1) == 0);
}

// The standard error of the difference between the last and the first value.
static double error_of(const struct rlhf__history *h, const char *metric) {
    const struct rlhf__first_last e = rlhf__trend_ends(rlhf__measured(h, metric));
    return rlhf__measure_noise(h->series, metric) * sqrt(1 + 1 / (double)e.width);
}

// Adds a note if the headline improved, but a measure that should confirm it did not move, and
// gained less than a quarter as much; the difference must be above three standard errors.
// rlhf__rule_witnesses says if the measure got worse.
void rlhf__rule_measure_stays(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__headline top = rlhf__headline_of(h->series);
    const struct rlhf__witness *w;
    if (rlhf__headline_moved(h->series) <= 0) return;
    const struct rlhf__first_last t = rlhf__trend_ends(rlhf__measured(h, top.metric));
    for (size_t i = 0; (w = rlhf__witness_at(i)); i++) {
        const struct rlhf__series *s = rlhf__measured(h, w->metric);
        const struct rlhf__first_last e = rlhf__trend_ends(s);
        const struct rlhf__run_note form = {
            .level = RLHF__NOTE_WARN,
            .id = "measure_stays",
            .rule =
                "the headline improved, and a judge or the headline on held-out rows did not move "
                "and gained less than a quarter of that",
            .change = *w->metric == 'j'
                          ? "check what the reward pays for (samples.jsonl)"
                          : "more prompts or rows, or fewer passes over them (epoch shows "
                            "how often each was used)",
            .held = {s->n ? s->phase[0] : 0, s->n}};
        const double gain = w->better * (e.last - e.first), rise = top.better * (t.last - t.first);
        const double error = error_of(h, w->metric), error_top = error_of(h, top.metric);
        char first[40], last[40];
        if (s->n < RLHF__TREND_FEWEST || !confirms(top.metric, w->metric) ||
            rlhf__trend_moved(s) != 0 || rlhf__witness_repeats(h->series, i) || gain > rise / 4 ||
            rise - gain < 3 * sqrt(error * error + error_top * error_top))
            continue;
        rlhf__notes_add(out, &form, "%s improved, but %s did not: %s at first, %s at the end.",
                        top.word, w->metric, rlhf__figure(e.first, first),
                        rlhf__figure(e.last, last));
    }
}

// Adds a sentence about each measure. The sentence is a warning if the measure gets worse while the
// headline improves.
void rlhf__rule_witnesses(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__headline top = rlhf__headline_of(h->series);
    const int improves = rlhf__headline_moved(h->series) > 0;
    const struct rlhf__witness *w;
    for (size_t i = 0; (w = rlhf__witness_at(i)); i++) {
        const struct rlhf__series *s = rlhf__measured(h, w->metric);
        const int rise = rlhf__trend_moved(s), warns = improves && rise * w->better < 0;
        const struct rlhf__first_last e = rlhf__trend_ends(s);
        const char *verb = rise > 0 ? " rose" : rise < 0 ? " fell" : "";
        char first[40], last[40];
        const struct rlhf__run_note form = {
            .level = warns ? RLHF__NOTE_WARN : RLHF__NOTE_INFO,
            .id = warns ? "measure_worse" : "measure",
            .rule = "nothing is trained on it; whether it moved is said from five measurements on",
            .change = !warns ? NULL
                             : "raise algo.kl_coef, add a penalty, or end the run earlier "
                               "(checkpoint.best keeps the best one); if it was so from the start, "
                               "check the sign of the reward",
            .held = warns ? worse_since(s, w->better) : (struct rlhf__held){0, 0}};
        if (s->n < 2 || rlhf__witness_repeats(h->series, i)) continue;
        rlhf__figure(e.first, first);
        rlhf__figure(e.last, last);
        if (warns)
            rlhf__notes_add(out, &form, "%s improved, but %s%s: %s at first, %s at the end.",
                            top.word, w->metric, verb, first, last);
        else
            rlhf__notes_add(out, &form, "%s%s: %s %s, %s in its last.", w->metric, verb, first,
                            rlhf__series_begins_with_chance(h->series, w->metric)
                                ? "by chance"
                                : "in its first measurement",
                            last);
    }
}

// Adds a note if the reward rises while the share of right answers, which is the headline, falls.
void rlhf__rule_right_answers(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *right = rlhf__measured(h, "objective/verifiable_correct_rate");
    const struct rlhf__first_last e = rlhf__trend_ends(right);
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_BAD,
        .id = "right_answers_fell",
        .rule = "objective/scores rose and objective/verifiable_correct_rate fell",
        .change = "check the signs and weights of the rewards: wrong answers score higher",
        .held = worse_since(right, 1)};
    char first[40], last[40];
    if (rlhf__measure_moved(h->series, "objective/scores") <= 0 || rlhf__trend_moved(right) >= 0)
        return;
    rlhf__notes_add(out, &form,
                    "The reward rises while the share of right answers falls, from %s to %s.",
                    rlhf__figure(e.first, first), rlhf__figure(e.last, last));
}

// ---- a reward model's scale ----

// Coefficients such as algo.kl_coef are chosen for scores with mean 0 and standard deviation 1.
void rlhf__rule_calibration(const struct rlhf__history *h, struct rlhf__notes *out) {
    enum { FEWEST = 32 }; // responses; the mean of fewer responses is not reliable
    for (size_t k = 0; h->facts->batch_size >= FEWEST && k < h->facts->n_rewards; k++) {
        const struct rlhf__series *mean = of_reward(h, k, "mean"), *std = of_reward(h, k, "std");
        const struct rlhf__run_note form = {
            .level = RLHF__NOTE_WARN,
            .id = "calibration",
            .rule =
                "a reward model's scores begin at a mean beyond 1 or a standard deviation beyond 3 "
                "or 1/3",
            .change = "fit it again (score.calibrate), or change what is weighed against it "
                      "(algo.kl_coef) by as much",
            .held = {mean->n ? mean->phase[0] : 0, 1}};
        if (!h->facts->reward[k].is_model || !mean->n || !std->n) continue;
        const double m = mean->value[0], s = std->value[0];
        if (fabs(m) < 1 && s > 1.0 / 3 && s < 3) continue;
        rlhf__notes_add(
            out, &form,
            "Reward %s begins at mean %.2f and standard deviation %.2f, where a reward model is "
            "fitted to 0 and 1 (score.calibrate): it was fitted on other prompts or another "
            "policy's responses.",
            h->facts->reward[k].name, m, s);
    }
}
