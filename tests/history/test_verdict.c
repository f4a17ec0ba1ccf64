// test_verdict.c: the verdict of made-up runs, one for each rule, and next to each a run that the
// rule must not name.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "history/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A metric that changes linearly from `first` to `last`; `noise` is added and subtracted in turn.
// It changes in phases `from` to `to`; if both are 0, in all phases.
struct line {
    const char *name;
    double first, last, noise;
    int64_t from, to;
};

struct run {
    const char *what; // of this row, for messages
    int64_t phases;   // 0: 20
    struct line line[8];
    struct rlhf__run_facts facts;
    const char *kind, *title;
    const char *notes; // their ids, the worst first
    const char *says;  // a part of one of their sentences; NULL: not checked
};

#define REWARD_ROSE                                                                                \
    { "objective/scores", 0.5, 0.9, 0.01, 0, 0 }
#define REWARD_STAYS                                                                               \
    { "objective/scores", 0.5, 0.5, 0.01, 0, 0 }
#define ROSE "Reward rose from 0.49 to 0.889"

static const struct run headlines[] = {
    {"the share of right answers comes first",
     0,
     {REWARD_ROSE, {"objective/verifiable_correct_rate", 0.2, 0.6, 0.01, 0, 0}},
     {0},
     "good",
     "Share of right answers rose from 0.19 to 0.589",
     "",
     NULL},
    {"reward", 0, {REWARD_ROSE, {"objective/loss", 4, 1, 0.01, 0, 0}}, {0}, "good", ROSE, "", NULL},
    {"a reward that falls",
     0,
     {{"objective/scores", 0.9, 0.5, 0.01, 0, 0}},
     {0},
     "bad",
     "Reward fell from 0.89 to 0.511",
     "",
     NULL},
    {"a reward that stays",
     0,
     {REWARD_STAYS},
     {0},
     "warn",
     "Reward did not move: 0.49 before, 0.5 after",
     "",
     NULL},
    {"a move within the noise",
     0,
     {{"objective/scores", 0.5, 0.9, 0.2, 0, 0}},
     {0},
     "warn",
     "Reward went from 0.3 to 0.889, which may be noise",
     "",
     NULL},
    {"accuracy of a reward model",
     0,
     {{"reward_model/accuracy", 0.5, 0.9, 0.01, 0, 0}, {"objective/loss", 4, 1, 0.01, 0, 0}},
     {0},
     "good",
     "Accuracy of the reward model rose",
     "",
     NULL},
    {"preferences",
     0,
     {{"dpo/accuracy", 0.5, 0.9, 0.01, 0, 0}, {"objective/loss", 4, 1, 0.01, 0, 0}},
     {0},
     "good",
     "Preference accuracy rose",
     "",
     NULL},
    {"labels",
     0,
     {{"classify/accuracy", 0.5, 0.9, 0.01, 0, 0}, {"objective/loss", 4, 1, 0.01, 0, 0}},
     {0},
     "good",
     "Accuracy rose",
     "",
     NULL},
    {"texts: lower is better",
     0,
     {{"sft/bits_per_token", 8, 4, 0.01, 0, 0}, {"objective/loss", 1, 4, 0.01, 0, 0}},
     {0},
     "good",
     "Bits per token fell from 7.99 to 4.11",
     "",
     NULL},
    {"a loss that rises",
     0,
     {{"objective/loss", 1, 4, 0.01, 0, 0}},
     {0},
     "bad",
     "Loss rose from 0.99 to 3.92",
     "",
     NULL},
    {"a move of fewer digits than are shown",
     40,
     {{"objective/scores", 0.5, 0.5001, 0, 0, 0}},
     {0},
     "warn",
     "Reward did not move: 0.5 before, 0.5 after",
     "",
     NULL},
    {"four phases",
     4,
     {REWARD_ROSE},
     {0},
     "none",
     "Too short to judge: reward 0.49, then 0.91",
     "",
     NULL},
    {"five phases",
     5,
     {{"objective/scores", 0.5, 0.9, 0.3, 3, 4}},
     {0},
     "warn",
     "Reward did not move",
     "",
     NULL},
    {"one phase", 1, {REWARD_ROSE}, {0}, "none", "Too short to judge", "", NULL},
    {"nothing", 0, {{0}}, {0}, "none", "Nothing to judge yet", "", NULL},
};

#define ENTROPY(first, last)                                                                       \
    { "objective/entropy_per_token", first, last, 0, 3, 4 }
#define DISTINCT(first, last)                                                                      \
    { "completions/distinct_3", first, last, 0, 3, 4 }
#define KL(last)                                                                                   \
    { "objective/kl_per_token", 0, last, 0, 8, 9 }

static const struct run signs[] = {
    {"entropy below a quarter, and no gain",
     0,
     {REWARD_STAYS, ENTROPY(4, 0.9)},
     {0},
     "bad",
     "Collapsed at phase 4",
     "collapsed",
     "entropy fell from 4 to 0.9 nats per token"},
    {"just above it",
     0,
     {REWARD_STAYS, ENTROPY(4, 1.1)},
     {0},
     "warn",
     "Reward did not move",
     "",
     NULL},
    {"below a quarter, but the reward rose",
     0,
     {REWARD_ROSE, ENTROPY(4, 0.9)},
     {0},
     "good",
     ROSE,
     "sign",
     "entropy fell from 4 to 0.9"},
    {"below a tenth, one word only, and well paid",
     0,
     {REWARD_ROSE, ENTROPY(4, 0.3), DISTINCT(0.9, 0.05)},
     {0},
     "bad",
     "Collapsed at phase 4",
     "collapsed",
     "The reward does not see it."},
    {"above a tenth, one word only",
     0,
     {REWARD_ROSE, ENTROPY(4, 0.6), DISTINCT(0.9, 0.05)},
     {0},
     "warn",
     ROSE ", but look at the texts",
     "hacked",
     NULL},
    {"below a tenth, and the texts differ",
     0,
     {REWARD_ROSE, ENTROPY(4, 0.3), DISTINCT(0.9, 0.5)},
     {0},
     "good",
     ROSE,
     "sign",
     NULL},
    {"sure of right answers",
     0,
     {{"objective/verifiable_correct_rate", 0.2, 0.9, 0.01, 0, 0},
      ENTROPY(1, 0.01),
      DISTINCT(0.9, 0.05)},
     {0},
     "good",
     "Share of right answers rose",
     "",
     NULL},
    {"sure of wrong answers",
     0,
     {{"objective/verifiable_correct_rate", 0.2, 0.2, 0.01, 0, 0}, ENTROPY(1, 0.01)},
     {0},
     "bad",
     "Collapsed",
     "collapsed",
     NULL},
    {"tokens at random",
     0,
     {{"objective/scores", 0.9, 0.2, 0.01, 0, 0}, ENTROPY(4, 5.3)},
     {0},
     "bad",
     "Fell apart at phase 4",
     "fell_apart",
     "rose from 4 to 5.3"},
    {"30 % more, but less than a nat",
     0,
     {REWARD_STAYS, ENTROPY(1, 1.9)},
     {0},
     "warn",
     "Reward did not move",
     "",
     NULL},
    {"a nat more, but less than 30 %",
     0,
     {REWARD_STAYS, ENTROPY(4, 5.1)},
     {0},
     "warn",
     "Reward did not move",
     "",
     NULL},
    {"wild, but better", 0, {REWARD_ROSE, ENTROPY(4, 6)}, {0}, "good", ROSE, "", NULL},
    {"far from the reference",
     0,
     {REWARD_ROSE, KL(1.1)},
     {0},
     "warn",
     ROSE ", but look at the texts",
     "hacked",
     "1.1 nats per token away from the reference, which would hardly write this"},
    {"away from it",
     0,
     {REWARD_ROSE, KL(0.9)},
     {0},
     "good",
     ROSE,
     "sign",
     "0.9 nats per token away from the reference."},
    {"near it", 0, {REWARD_ROSE, KL(0.5)}, {0}, "good", ROSE, "", NULL},
    {"two signs",
     0,
     {REWARD_ROSE, KL(0.9), DISTINCT(0.9, 0.4)},
     {0},
     "warn",
     ROSE ", but look at the texts",
     "hacked",
     "distinct 3-grams fell from 0.9 to 0.4"},
    {"one of half size", 0, {REWARD_ROSE, DISTINCT(0.9, 0.46)}, {0}, "good", ROSE, "", NULL},
    {"entropy and 3-grams",
     0,
     {REWARD_ROSE, ENTROPY(4, 0.9), DISTINCT(0.9, 0.4)},
     {0},
     "warn",
     ROSE ", but look at the texts",
     "hacked",
     NULL},
    {"a judge that falls",
     0,
     {REWARD_ROSE, {"judge/mean", 0.8, 0.4, 0.01, 0, 0}},
     {0},
     "warn",
     ROSE ", but a measure that nothing is trained on got worse",
     "measure_worse,sign",
     "Reward improved, but judge/mean fell: 0.79 at first, 0.411 at the end."},
    {"a judge that falls as nothing improves",
     0,
     {REWARD_STAYS, {"judge/mean", 0.8, 0.4, 0.01, 0, 0}},
     {0},
     "warn",
     "Reward did not move",
     "measure",
     "judge/mean fell: 0.79 in its first measurement"},
    {"a judge that rises",
     0,
     {REWARD_ROSE, {"judge/mean", 0.4, 0.8, 0.01, 0, 0}},
     {0},
     "good",
     ROSE,
     "measure",
     "judge/mean rose: 0.39 in its first measurement"},
    {"held-out loss that rises",
     0,
     {{"objective/loss", 4, 1, 0.01, 0, 0}, {"eval/loss", 4, 6, 0.01, 0, 0}},
     {0},
     "warn",
     "Loss fell from 3.99 to 1.08, but a measure that nothing is trained on got worse",
     "measure_worse",
     "Loss improved, but eval/loss rose"},
    {"a reward without gain is not hacked",
     0,
     {REWARD_STAYS, KL(2)},
     {0},
     "warn",
     "Reward did not move",
     "",
     NULL},
};

#define MAY_END .may_end = 1, .max_new_tokens = 64
#define LENGTH(first, last)                                                                        \
    { "completions/mean_length", first, last, 0.1, 0, 0 }
#define CUT(first, last)                                                                           \
    { "completions/clipped_ratio", first, last, 0, 8, 9 }
#define FLAT(last)                                                                                 \
    { "frac_reward_zero_std", 0.1, last, 0, 5, 6 }

#define IN_TWO(name, first, last)                                                                  \
    { name, first, last, 0, 18, 19 }
#define IN_THREE(name, first, last)                                                                \
    { name, first, last, 0, 17, 18 }

static const struct run updates[] = {
    {"two phases beyond the limits may be chance",
     0,
     {REWARD_STAYS, IN_TWO("frac_reward_zero_std", 0, 1), IN_TWO("completions/clipped_ratio", 0, 1),
      IN_TWO("objective/kl", 0, 99), IN_TWO("policy/clipfrac_avg", 0, 1),
      IN_TWO("val/var_explained", 1, -1)},
     {MAY_END, .kl_limit = 6, .kl_setting = "early_stop.kl"},
     "warn",
     "Reward did not move",
     "",
     NULL},
    {"three are not",
     0,
     {REWARD_STAYS, IN_THREE("frac_reward_zero_std", 0, 1),
      IN_THREE("completions/clipped_ratio", 0, 1), IN_THREE("objective/kl", 0, 99),
      IN_THREE("policy/clipfrac_avg", 0, 1), IN_THREE("val/var_explained", 1, -1)},
     {MAY_END, .kl_limit = 6, .kl_setting = "early_stop.kl"},
     "warn",
     "Reward did not move",
     "flat_groups,cut_off,kl_over_target,clipped,critic",
     NULL},
    {"flat groups",
     0,
     {REWARD_STAYS, FLAT(0.62)},
     {0},
     "warn",
     "Reward did not move",
     "flat_groups",
     "In 62 % of the groups"},
    {"half of them", 0, {REWARD_STAYS, FLAT(0.5)}, {0}, "warn", "Reward did not move", "", NULL},
    {"flat because it has learned",
     0,
     {REWARD_ROSE, FLAT(0.62)},
     {0},
     "good",
     ROSE,
     "flat_groups",
     NULL},
    {"all cut off",
     0,
     {REWARD_ROSE, CUT(0.2, 0.95)},
     {MAY_END},
     "good",
     ROSE,
     "cut_off",
     "95 % of the responses reach sampling.max_new_tokens (64)"},
    {"nine of ten", 0, {REWARD_ROSE, CUT(0.2, 0.9)}, {MAY_END}, "good", ROSE, "", NULL},
    {"cut off by design", 0, {REWARD_ROSE, CUT(1, 1)}, {.may_end = -1}, "good", ROSE, "", NULL},
    {"the model decides, and all are as long as can be",
     0,
     {REWARD_ROSE, CUT(1, 1), {"completions/mean_length", 64, 64, 0, 0, 0}},
     {.max_new_tokens = 64},
     "good",
     ROSE,
     "",
     NULL},
    {"the model decides, and some were shorter",
     0,
     {REWARD_ROSE, CUT(0.2, 1), {"completions/mean_length", 60, 64, 0, 0, 0}},
     {.max_new_tokens = 64},
     "good",
     ROSE,
     "cut_off",
     NULL},
    {"responses that shrink",
     0,
     {REWARD_ROSE, LENGTH(40, 15)},
     {MAY_END},
     "good",
     ROSE,
     "lengths",
     "Responses shrink: 39.9 tokens at first, 15.7"},
    {"by less than half", 0, {REWARD_ROSE, LENGTH(40, 22)}, {MAY_END}, "good", ROSE, "", NULL},
    {"as a reward asks",
     0,
     {REWARD_ROSE, LENGTH(40, 15)},
     {MAY_END, .pays_length = 1},
     "good",
     ROSE,
     "",
     NULL},
    {"responses that grow into the limit",
     0,
     {REWARD_ROSE, LENGTH(30, 60), CUT(0.1, 0.7)},
     {MAY_END},
     "good",
     ROSE,
     "lengths",
     "70 % are cut off"},
    {"that grow, and end",
     0,
     {REWARD_ROSE, LENGTH(30, 60), CUT(0.1, 0.3)},
     {MAY_END},
     "good",
     ROSE,
     "",
     NULL},
    {"KL beyond the target",
     0,
     {REWARD_ROSE, {"objective/kl", 0, 9.4, 0, 8, 9}},
     {.kl_limit = 6, .kl_setting = "algo.kl_target"},
     "good",
     ROSE,
     "kl_over_target",
     "KL is 9.4 nats per sequence; the target (algo.kl_target) is 6"},
    {"KL near it",
     0,
     {REWARD_ROSE, {"objective/kl", 0, 8.9, 0, 8, 9}},
     {.kl_limit = 6, .kl_setting = "algo.kl_target"},
     "good",
     ROSE,
     "",
     NULL},
    {"no target", 0, {REWARD_ROSE, {"objective/kl", 0, 90, 0, 8, 9}}, {0}, "good", ROSE, "", NULL},
    {"clipped tokens",
     0,
     {REWARD_ROSE, {"policy/clipfrac_avg", 0, 0.4, 0, 8, 9}},
     {0},
     "good",
     ROSE,
     "clipped",
     "40 % of the tokens are clipped"},
    {"few clipped tokens",
     0,
     {REWARD_ROSE, {"policy/clipfrac_avg", 0, 0.3, 0, 8, 9}},
     {0},
     "good",
     ROSE,
     "",
     NULL},
    {"a critic that never learned",
     0,
     {REWARD_ROSE, {"val/var_explained", -0.5, -0.01, 0, 0, 0}},
     {0},
     "good",
     ROSE,
     "critic",
     "explained variance -0.0229"},
    {"a critic that did",
     0,
     {REWARD_ROSE, {"val/var_explained", -0.5, 0.1, 0, 0, 0}},
     {0},
     "good",
     ROSE,
     "",
     NULL},
    {"gradients",
     0,
     {REWARD_ROSE, {"optim/grad_norm", 5, 5, 0, 0, 0}},
     {.max_grad_norm = 1},
     "good",
     ROSE,
     "gradient",
     "in 100 % of the phases: its norm is 5, the limit 1"},
    {"gradients that were clipped at first",
     0,
     {REWARD_ROSE, {"optim/grad_norm", 5, 0.5, 0, 17, 18}},
     {.max_grad_norm = 1},
     "good",
     ROSE,
     "",
     NULL},
    {"a slow reward",
     0,
     {REWARD_ROSE, {"time/training", 2, 2, 0, 0, 0}, {"time/reward", 1.2, 1.2, 0, 0, 0}},
     {0},
     "good",
     ROSE,
     "slow_reward",
     "Scoring takes 60 % of the time"},
    {"a quick one",
     0,
     {REWARD_ROSE, {"time/training", 2, 2, 0, 0, 0}, {"time/reward", 1, 1, 0, 0, 0}},
     {0},
     "good",
     ROSE,
     "",
     NULL},
};

#define MEAN(name, first, last)                                                                    \
    { "rewards/" name "/mean", first, last, 0.01, 0, 0 }
#define STD(name, std)                                                                             \
    { "rewards/" name "/std", std, std, 0, 0, 0 }
#define TWO .reward = {{"a", 1}, {"b", 1}}, .n_rewards = 2

static const struct run rewards[] = {
    {"all responses have the same reward",
     0,
     {{"objective/scores", 0.5, 0.5, 0, 0, 0}, {"reward_std", 0, 0, 0, 0, 0}, FLAT(1)},
     {0},
     "warn",
     "Reward did not move: 0.5 before, 0.5 after",
     "constant_reward",
     "All responses have the same reward (0.5)"},
    {"the same, where nothing reports the spread",
     0,
     {{"objective/scores", 0.5, 0.5, 0, 0, 0}, STD("a", 0)},
     {.reward = {{"a", 1}}, .n_rewards = 1},
     "warn",
     "Reward did not move",
     "constant_reward",
     NULL},
    {"the same for four phases, which may be chance",
     0,
     {REWARD_ROSE, {"reward_std", 1, 0, 0, 16, 17}},
     {0},
     "good",
     ROSE,
     "",
     NULL},
    {"for five",
     0,
     {REWARD_ROSE, {"reward_std", 1, 0, 0, 15, 16}},
     {0},
     "good",
     ROSE,
     "constant_reward",
     NULL},
    {"a reward that differs",
     0,
     {REWARD_ROSE, {"reward_std", 0, 0.1, 0, 8, 9}},
     {0},
     "good",
     ROSE,
     "",
     NULL},
    {"a reward that drowns",
     0,
     {REWARD_ROSE, STD("a", 1), STD("b", 0.04)},
     {TWO},
     "good",
     ROSE,
     "drowned",
     "Reward b drowns in a: its weighted spread is 4 %"},
    {"a reward that is heard",
     0,
     {REWARD_ROSE, STD("a", 1), STD("b", 0.06)},
     {TWO},
     "good",
     ROSE,
     "",
     NULL},
    {"by its weight",
     0,
     {REWARD_ROSE, STD("a", 1), STD("b", 0.04)},
     {.reward = {{"a", 1}, {"b", -3}}, .n_rewards = 2},
     "good",
     ROSE,
     "",
     NULL},
    {"a reward that is met from the start",
     0,
     {REWARD_ROSE, STD("a", 1), STD("b", 0)},
     {TWO},
     "good",
     ROSE,
     "",
     NULL},
    {"a reward that is met later",
     0,
     {REWARD_ROSE, STD("a", 1), {"rewards/b/std", 0.3, 0, 0, 8, 9}},
     {TWO},
     "good",
     ROSE,
     "",
     NULL},
    {"a reward that is lost",
     0,
     {REWARD_ROSE, MEAN("a", 0, 3), STD("a", 1), MEAN("b", 1, 0.3), STD("b", 0.5)},
     {TWO},
     "good",
     ROSE,
     "lost_reward",
     "Reward b is lost to the others: 0.99 at first, 0.318 at the end"},
    {"a reward that is lost, and no gain",
     0,
     {REWARD_STAYS, MEAN("a", 0, 3), STD("a", 1), MEAN("b", 1, 0.3), STD("b", 0.5)},
     {TWO},
     "warn",
     "Reward did not move",
     "",
     NULL},
    {"a reward that loses a little",
     0,
     {REWARD_ROSE, MEAN("a", 0, 3), STD("a", 1), MEAN("b", 1, 0.6), STD("b", 0.5)},
     {TWO},
     "good",
     ROSE,
     "",
     NULL},
    {"a penalty that falls is what its weight asks for",
     0,
     {REWARD_ROSE, MEAN("a", 0, 3), STD("a", 1), MEAN("b", 1, 0.3), STD("b", 0.5)},
     {.reward = {{"a", 1}, {"b", -1}}, .n_rewards = 2},
     "good",
     ROSE,
     "",
     NULL},
    {"a penalty that rises",
     0,
     {REWARD_ROSE, MEAN("a", 0, 3), STD("a", 1), MEAN("b", 0.3, 1), STD("b", 0.5)},
     {.reward = {{"a", 1}, {"b", -1}}, .n_rewards = 2},
     "good",
     ROSE,
     "lost_reward",
     NULL},
    {"a sign",
     0,
     {{"objective/scores", -0.9, -0.5, 0.01, 0, 0}, MEAN("a", 0.9, 0.5)},
     {.reward = {{"a", -1}}, .n_rewards = 1},
     "good",
     "Reward rose from -0.91",
     "negative_weights",
     "The policy learns to lower a, whose weight is negative (-1): 0.89 at first, 0.511 at the "
     "end."},
    {"a sign that has no effect yet",
     0,
     {{"objective/scores", -0.5, -0.5, 0.01, 0, 0}, MEAN("a", 0.5, 0.5)},
     {.reward = {{"a", -1}}, .n_rewards = 1},
     "warn",
     "Reward did not move",
     "",
     NULL},
    {"the right sign",
     0,
     {REWARD_ROSE, MEAN("a", 0.9, 0.5)},
     {.reward = {{"a", 1}}, .n_rewards = 1},
     "good",
     ROSE,
     "",
     NULL},
    {"wrong answers are rewarded",
     0,
     {REWARD_ROSE, {"objective/verifiable_correct_rate", 0.6, 0.1, 0.01, 0, 0}},
     {0},
     "bad",
     "Share of right answers fell from 0.59 to 0.113",
     "right_answers_fell",
     "The reward rises while the share of right answers falls, from 0.59 to 0.113."},
    {"a measure that is the same twice is named once",
     0,
     {REWARD_ROSE,
      {"eval/reward", 0.5, 0.6, 0.01, 0, 0},
      {"eval/objective/verifiable_correct_rate", 0.5, 0.6, 0.01, 0, 0}},
     {0},
     "good",
     ROSE,
     "measure",
     "eval/objective/verifiable_correct_rate rose"},
};

static void put_line(struct rlhf__series_set *s, const struct line *l, int64_t phases) {
    const int64_t from = l->to ? l->from : 1, to = l->to ? l->to : phases;
    for (int64_t p = 1; p <= phases; p++) {
        double at = to > from ? (double)(p - from) / (double)(to - from) : 0;
        at = at < 0 ? 0 : at > 1 ? 1 : at;
        const double v = l->first + (l->last - l->first) * at + (p % 2 ? -l->noise : l->noise);
        assert_int_equal(rlhf__series_set_put(s, l->name, p, v, NULL), RLHF_OK);
    }
}

static void ids_of(const struct rlhf__verdict *v, char *out, size_t cap) {
    *out = '\0';
    for (size_t i = 0; i < v->notes.n; i++) {
        if (i) strncat(out, ",", cap - strlen(out) - 1);
        strncat(out, v->notes.all[i].id, cap - strlen(out) - 1);
    }
}

static int says(const struct rlhf__verdict *v, const char *part) {
    for (size_t i = 0; i < v->notes.n; i++)
        if (strstr(v->notes.all[i].text, part)) return 1;
    return 0;
}

// 1 for notes that doubt the run itself.
static int is_bad(const char *id) {
    static const char *const ids[] = {"collapsed", "fell_apart", "hacked", "constant_reward",
                                      "right_answers_fell"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (strcmp(id, ids[i]) == 0) return 1;
    return 0;
}

// Checks that the verdict's rule is the one that its title follows from.
static void check_rule(const struct rlhf__verdict *v) {
    const struct rlhf__run_note *n = rlhf__notes_find(&v->notes, "collapsed");
    if (!n) n = rlhf__notes_find(&v->notes, "fell_apart");
    if (v->kind == RLHF__VERDICT_NONE) return;
    if (n && v->width) {
        assert_string_equal(v->rule, n->rule);
        return;
    }
    assert_non_null(strstr(v->rule, v->headline.metric));
    if ((n = rlhf__notes_find(&v->notes, "hacked")) ||
        (strstr(v->title, "got worse") && (n = rlhf__notes_find(&v->notes, "measure_worse"))))
        assert_string_equal(v->rule + strlen(v->rule) - strlen(n->rule), n->rule);
    else
        assert_null(strstr(v->title, ", but "));
}

// The advice of the note of this id.
static const char *advice(const struct line *line, size_t n, const struct rlhf__run_facts *facts,
                          const char *id) {
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    for (size_t i = 0; i < n; i++)
        put_line(&s, &line[i], 20);
    const struct rlhf__history h = {&s, facts};
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    const struct rlhf__run_note *note = rlhf__notes_find(&v.notes, id);
    const char *change = note ? note->change : "no note"; // static, or NULL
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
    return change;
}

static void judged(const struct run *r) {
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    char ids[256];
    for (size_t i = 0; i < 8 && r->line[i].name; i++)
        put_line(&s, &r->line[i], r->phases ? r->phases : 20);
    const struct rlhf__history h = {&s, &r->facts};
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    ids_of(&v, ids, sizeof ids);
    if (strcmp(rlhf__verdict_kind_name(v.kind), r->kind) != 0 ||
        strncmp(v.title, r->title, strlen(r->title)) != 0 || strcmp(ids, r->notes) != 0)
        fail_msg("%s: %s, '%s', found %s; want %s, '%s', %s", r->what,
                 rlhf__verdict_kind_name(v.kind), v.title, ids, r->kind, r->title, r->notes);
    if (r->says && !says(&v, r->says))
        fail_msg("%s: no sentence has '%s', but '%s'", r->what, r->says, v.notes.all[0].text);
    for (size_t i = 0; i < v.notes.n; i++) {
        const struct rlhf__run_note *n = &v.notes.all[i];
        if (!n->rule || (n->level != RLHF__NOTE_INFO && !n->change))
            fail_msg("%s: %s has no rule or no advice", r->what, n->id);
        if ((n->level == RLHF__NOTE_BAD) != is_bad(n->id))
            fail_msg("%s: %s has the level %s", r->what, n->id, rlhf__note_level_name(n->level));
    }
    check_rule(&v);
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
}

#define JUDGED(table)                                                                              \
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)                                      \
    judged(&table[i])

static void by_headline(void **state) {
    (void)state;
    JUDGED(headlines);
}

static void by_signs(void **state) {
    (void)state;
    JUDGED(signs);
}

static void by_updates(void **state) {
    (void)state;
    JUDGED(updates);
}

static void by_rewards(void **state) {
    (void)state;
    JUDGED(rewards);
}

static void advice_fits_the_run(void **state) {
    (void)state;
    const struct rlhf__run_facts some = {0}, none = {.no_kl = 1};
    const struct line alike[] = {REWARD_STAYS, ENTROPY(4, 0.9)};
    assert_null(strstr(advice(alike, 2, &some, "collapsed"), "which is 0"));
    assert_non_null(strstr(advice(alike, 2, &none, "collapsed"), "algo.kl_coef, which is 0"));
    const struct line flat[] = {REWARD_ROSE, FLAT(0.62), {"judge/mean", 0.8, 0.4, 0.01, 0, 0}};
    assert_non_null(strstr(advice(flat, 2, &some, "flat_groups"), "have become easy"));
    assert_null(advice(flat, 3, &some, "flat_groups")); // the reward may be the wrong one
}

// eval/reward that only repeats the share of right answers is one sign, not two.
static void a_repeated_measure_counts_once(void **state) {
    (void)state;
    const struct rlhf__run_facts facts = {0};
    const struct line line[] = {REWARD_ROSE,
                                {"eval/objective/verifiable_correct_rate", 0.8, 0.4, 0.01, 0, 0},
                                {"eval/reward", 0.8, 0.4, 0.01, 0, 0},
                                {"eval/accuracy", 0.9, 0.4, 0.01, 0, 0}};
    assert_string_equal(advice(line, 3, &facts, "hacked"), "no note");
    assert_null(advice(line, 3, &facts, "sign"));
    assert_string_not_equal(advice(line, 4, &facts, "hacked"), "no note");
}

static void figures(void **state) {
    (void)state;
    char out[40];
    assert_string_equal(rlhf__figure(0.56789, out), "0.568");
    assert_string_equal(rlhf__figure(-1234.5, out), "-1234");
    assert_string_equal(rlhf__figure(12345, out), "12345");
    assert_string_equal(rlhf__figure(1e20, out), "1e+20");
    assert_string_equal(rlhf__figure(0, out), "0");
    assert_string_equal(rlhf__figure(999.6, out), "1000");
    assert_string_equal(rlhf__figure(-999.4, out), "-999");
}

// Checks first, last, best and noise, the text after a collapse, and the phase since which a note
// holds.
static void numbers_of_a_verdict(void **state) {
    (void)state;
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    const struct rlhf__run_facts facts = {.phases = 10};
    static const double reward[] = {1, 2, 3, 9, 4, 4, 4, 3, 3, 1};
    for (int64_t p = 1; p <= 10; p++) {
        rlhf__series_set_put(&s, "objective/scores", p, reward[p - 1], NULL);
        rlhf__series_set_put(&s, "objective/entropy_per_token", p, p < 6 ? 4 : 0.5, NULL);
    }
    rlhf__series_set_put(&s, "objective/verifiable_correct_rate", 1, 0.5,
                         NULL); // once: no headline
    const struct rlhf__history h = {&s, &facts};
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    assert_true(v.first == 1 && v.last == 1 && v.best == 9 && v.best_phase == 4 && v.width == 1);
    assert_true(fabs(v.noise - 1.05) < 1e-12 && v.moved == 0);
    assert_string_equal(v.title, "Collapsed at phase 6");
    assert_string_equal(v.text, "Reward went from 1 to 1; its best was 9 in phase 4.");
    assert_true(v.notes.all[0].held.phase == 6 && v.notes.all[0].held.n == 5);
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
}

static const struct rlhf__verdict_check *find(const struct rlhf__verdict *v, const char *text) {
    for (size_t i = 0; i < v->n_checks; i++)
        if (strcmp(v->check[i].text, text) == 0) return &v->check[i];
    fail_msg("no check '%s'", text);
    return NULL;
}

static void put(struct rlhf__series_set *s, const char *name, double a, double b) {
    assert_int_equal(rlhf__series_set_put(s, name, 1, a, NULL), RLHF_OK);
    assert_int_equal(rlhf__series_set_put(s, name, 2, b, NULL), RLHF_OK);
}

static void checks(void **state) {
    (void)state;
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    struct rlhf__run_facts facts = {.phases = 2};
    const struct rlhf__history h = {&s, &facts};
    put(&s, "objective/scores", 1, 2);
    put(&s, "sampling/logp_difference/max", 0, 0);
    put(&s, "optim/skipped_steps", 0, 0);
    put(&s, "judge/mean", 1, 1);
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    assert_int_equal(v.n_checks, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(v.check[i].ok, 1);
    find(&v, "all 2 phases");
    find(&v, "sampled and trained log-probs equal");
    find(&v, "no step skipped");
    find(&v, "every response scored");
    find(&v, "a measure that nothing is trained on");
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
    facts.phases = 7;
    put(&s, "objective/scores", 1, 2);
    put(&s, "sampling/logp_difference/max", 0.25, 0);
    put(&s, "optim/skipped_steps", 0, 1);
    put(&s, "rewards/a/failures", 2, 1);
    put(&s, "rewards/not_finite", 0, 1);
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    assert_int_equal(find(&v, "2 of 7 phases")->ok, 0);
    assert_int_equal(find(&v, "sampled and trained log-probs differ by up to 0.25")->ok, 0);
    assert_int_equal(find(&v, "1 step skipped")->ok, 0);
    assert_int_equal(find(&v, "4 rewards failed or not finite")->ok, 0);
    assert_int_equal(find(&v, "no held-out measure, no judge")->ok, -1);
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
}

static void what_could_not_be_read(void **state) {
    (void)state;
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    static const char *const trouble[] = {"metrics.jsonl ends within a line"};
    const struct rlhf__run_facts facts = {.trouble = trouble, .n_trouble = 1};
    const struct rlhf__history h = {&s, &facts};
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    assert_string_equal(v.notes.all[0].id, "unreadable");
    assert_string_equal(v.notes.all[0].text, "metrics.jsonl ends within a line.");
    assert_int_equal(find(&v, "0 phases of an unknown number")->ok, -1);
    rlhf__verdict_finish(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_headline),
        cmocka_unit_test(by_signs),
        cmocka_unit_test(by_updates),
        cmocka_unit_test(by_rewards),
        cmocka_unit_test(advice_fits_the_run),
        cmocka_unit_test(a_repeated_measure_counts_once),
        cmocka_unit_test(figures),
        cmocka_unit_test(numbers_of_a_verdict),
        cmocka_unit_test(checks),
        cmocka_unit_test(what_could_not_be_read),
    };
    return cmocka_run_group_tests_name("history_verdict", tests, NULL, NULL);
}
