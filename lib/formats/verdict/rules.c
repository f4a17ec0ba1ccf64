// rules.c: see rules.h.
#include "verdict/rules.h"

#include <string.h>

// A single value beyond a limit may be due to chance, so a trend must have held for three. A
// problem of one phase is said at once.
enum { ONE = 1, TREND = 3, ANY = 0 };

// While a run trains, a trend may still turn: it is reported from phase FROM onward, if it has
// lasted for LASTED phases.
enum { FROM = 10, LASTED = 5 };

#define ONCE  RLHF__NOTE_ONCE
#define LOST  RLHF__NOTE_LOST
#define AFTER RLHF__NOTE_AFTER

// A metric that must not be above (sign 1) or below (sign -1) a limit.
struct limit {
    const char *id, *metric;
    double sign, limit, unit;         // unit: 100 shows a share as a percentage
    const char *rule, *text, *change; // "%s" in the text is the mean at the end
};

static const struct limit no_calls = {
    "no_calls",
    "tools/call_frequency",
    -1,
    1e-12,
    1,
    "tools/call_frequency is 0",
    "None of the episodes called a tool.",
    "teach the form of calls first, by sft.so on rows with calls (docs/calculator.md); look at the "
    "prompt with 'rlhf-host play'"};
static const struct limit rewritten = {
    "rewritten",
    "episodes/rewritten_turns",
    1,
    0,
    100,
    "episodes/rewritten_turns above 0",
    "The chat template would render %s %% of the turns differently once later turns follow; rows "
    "keep what the policy wrote.",
    "nothing, if the policy is used by programs that keep what it wrote; programs that render the "
    "whole conversation for each turn do not show it to the model"};
static const struct limit noisy_reward = {
    "noisy_reward",
    "objective/scores_noise",
    1,
    0.5,
    100,
    "objective/scores_noise above 0.5",
    "Equal responses to the same prompt get different rewards: %s %% of the rewards' variance is "
    "chance.",
    "look for chance in the reward; with a judge that samples, the mean of several judgments"};
static const struct limit clipped = {
    "clipped",
    "policy/clipfrac_avg",
    1,
    0.3,
    100,
    "policy/clipfrac_avg above 0.3",
    "%s %% of the tokens are clipped: updates are larger than the clip range allows.",
    "lower optim.lr, algo.epochs or algo.minibatches"};
static const struct limit critic = {
    "critic",
    "val/var_explained",
    -1,
    -0.1,
    1,
    "val/var_explained below -0.1",
    "The critic is worse than predicting the mean (explained variance %s).",
    "raise algo.value_coef or value.lr; if the reward grows quickly, rewards.normalize keeps its "
    "scale"};

// In this order notes are found and reported. Rules may depend on earlier ones.
static const struct {
    rlhf__rule *find;
    int32_t held; // values at the end that must be beyond the limit; ANY: the rule decides
    uint32_t flags;
    const struct limit *limit; // instead of `find`
} table[] = {
    {rlhf__rule_skipped_steps, ONE, ONCE | AFTER, NULL},
    {rlhf__rule_not_finite_rows, ONE, ONCE | AFTER, NULL},
    {rlhf__rule_exploded, ONE, ONCE, NULL},
    {rlhf__rule_collapsed, ONE, ONCE | LOST | AFTER, NULL},
    {rlhf__rule_narrowed, TREND, LOST | AFTER, NULL},
    {rlhf__rule_fell_apart, TREND, LOST, NULL},
    {rlhf__rule_diverged, ONE, ONCE | LOST, NULL},
    {rlhf__rule_far, ONE, ONCE | LOST, NULL},
    {rlhf__rule_jumped, ONE, ONCE, NULL},
    {rlhf__rule_fell, ONE, ONCE, NULL},
    {rlhf__rule_hacked, ANY, AFTER, NULL},
    {rlhf__rule_other_reference, ONE, ONCE | AFTER, NULL},
    {rlhf__rule_frozen, TREND, 0, NULL},
    {NULL, ONE, ONCE, &no_calls},
    {NULL, ONE, ONCE, &rewritten},
    {rlhf__rule_cut_off, ONE, ONCE, NULL},
    {rlhf__rule_constant_reward, ONE, ONCE, NULL},
    {rlhf__rule_flat_groups, ONE, ONCE, NULL},
    {rlhf__rule_calibration, ONE, ONCE, NULL},
    {NULL, TREND, AFTER, &noisy_reward},
    {rlhf__rule_right_answers, ANY, AFTER, NULL},
    {rlhf__rule_negative_weights, ANY, AFTER, NULL},
    {rlhf__rule_drowned, ANY, 0, NULL},
    {rlhf__rule_lost_rewards, ANY, 0, NULL},
    {rlhf__rule_reward_parts, ANY, 0, NULL},
    {rlhf__rule_measure_stays, TREND, 0, NULL},
    {rlhf__rule_witnesses, ANY, AFTER, NULL},
    {rlhf__rule_lengths, ANY, 0, NULL},
    {rlhf__rule_kl_over_target, TREND, 0, NULL},
    {NULL, TREND, 0, &clipped},
    {NULL, TREND, 0, &critic},
    {rlhf__rule_gradient, ANY, 0, NULL},
    {rlhf__rule_slow_reward, ANY, 0, NULL},
};

static void compare(const struct rlhf__history *h, const struct limit *l, struct rlhf__notes *out) {
    const struct rlhf__series *s = rlhf__measured(h, l->metric);
    const double last = rlhf__last_of(s);
    const struct rlhf__run_note form = {.level = RLHF__NOTE_WARN,
                                        .id = l->id,
                                        .rule = l->rule,
                                        .change = l->change,
                                        .held = l->sign > 0 ? rlhf__trend_above(s, l->limit)
                                                            : rlhf__trend_below(s, l->limit)};
    char figure[40];
    if (s->n && l->sign * last > l->sign * l->limit)
        rlhf__notes_add(out, &form, l->text, rlhf__figure(l->unit * last, figure));
}

int rlhf__rules_follows(const struct rlhf__run_note *n, int64_t lost) {
    return n->level != RLHF__NOTE_INFO && !(n->flags & AFTER) && n->held.phase >= lost;
}

// Removes the consequences of a lost policy.
static void drop_consequences(struct rlhf__notes *l) {
    int64_t lost = INT64_MAX;
    for (size_t i = 0; i < l->n; i++)
        if ((l->all[i].flags & LOST) && l->all[i].held.phase < lost) lost = l->all[i].held.phase;
    for (size_t i = l->n; i-- > 0;)
        if (!(l->all[i].flags & LOST) && rlhf__rules_follows(&l->all[i], lost))
            rlhf__notes_drop(l, i);
}

// If other notes say that the reward may be wrong, removes the advice from the fact that groups are
// flat. A user who follows that advice would help the policy to learn the wrong reward.
static void keep_prompts(struct rlhf__notes *l) {
    static const char *const doubts[] = {"sign", "hacked", "measure_worse", "negative_weights"};
    int doubted = 0;
    for (size_t i = 0; i < sizeof doubts / sizeof *doubts; i++)
        doubted |= rlhf__notes_find(l, doubts[i]) != NULL;
    for (size_t i = 0; doubted && i < l->n; i++)
        if (strcmp(l->all[i].id, "flat_groups") == 0 && l->all[i].level == RLHF__NOTE_INFO)
            rlhf__notes_silence(l, i);
}

void rlhf__rules_apply(const struct rlhf__history *h, int trends, struct rlhf__notes *out) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const size_t before = out->n;
        if (!trends && !(table[i].flags & ONCE)) continue;
        if (table[i].limit)
            compare(h, table[i].limit, out);
        else
            table[i].find(h, out);
        for (size_t k = out->n; k-- > before;) {
            struct rlhf__run_note *n = &out->all[k];
            n->flags = n->level == RLHF__NOTE_INFO ? 0 : table[i].flags;
            if (n->level != RLHF__NOTE_INFO && n->held.n < table[i].held) rlhf__notes_drop(out, k);
        }
    }
    drop_consequences(out);
    keep_prompts(out);
}

int rlhf__rules_due(const struct rlhf__run_note *n, int64_t phase) {
    if (n->level == RLHF__NOTE_INFO) return 0;
    return (n->flags & ONCE) || (phase >= FROM && n->held.n >= LASTED);
}
