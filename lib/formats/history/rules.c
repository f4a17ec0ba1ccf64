// rules.c: see rules.h.
#include "history/rules.h"

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

// In this order notes are found and reported. Rules may depend on earlier ones.
static const struct {
    rlhf__rule *find;
    int32_t held; // values at the end that must be beyond the limit; ANY: the rule decides
    uint32_t flags;
} table[] = {
    {rlhf__rule_skipped_steps, ONE, ONCE | AFTER},
    {rlhf__rule_exploded, ONE, ONCE},
    {rlhf__rule_collapsed, ONE, ONCE | LOST | AFTER},
    {rlhf__rule_narrowed, TREND, LOST | AFTER},
    {rlhf__rule_fell_apart, TREND, LOST},
    {rlhf__rule_diverged, ONE, ONCE | LOST},
    {rlhf__rule_far, ONE, ONCE | LOST},
    {rlhf__rule_jumped, ONE, ONCE},
    {rlhf__rule_fell, ONE, ONCE},
    {rlhf__rule_hacked, ANY, AFTER},
    {rlhf__rule_other_reference, ONE, ONCE | AFTER},
    {rlhf__rule_frozen, TREND, 0},
    {rlhf__rule_no_calls, ONE, ONCE},
    {rlhf__rule_rewritten, ONE, ONCE},
    {rlhf__rule_cut_off, ONE, ONCE},
    {rlhf__rule_constant_reward, ONE, ONCE},
    {rlhf__rule_flat_groups, ONE, ONCE},
    {rlhf__rule_calibration, ONE, ONCE},
    {rlhf__rule_right_answers, ANY, AFTER},
    {rlhf__rule_negative_weights, ANY, AFTER},
    {rlhf__rule_drowned, ANY, 0},
    {rlhf__rule_lost_rewards, ANY, 0},
    {rlhf__rule_reward_parts, ANY, 0},
    {rlhf__rule_witnesses, ANY, AFTER},
    {rlhf__rule_lengths, ANY, 0},
    {rlhf__rule_kl_over_target, TREND, 0},
    {rlhf__rule_clipped, TREND, 0},
    {rlhf__rule_critic, TREND, 0},
    {rlhf__rule_gradient, ANY, 0},
    {rlhf__rule_slow_reward, ANY, 0},
};

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
