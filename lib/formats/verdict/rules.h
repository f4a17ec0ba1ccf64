// rules.h: the one table of rules about a run. Everything that says something about a run applies
// it: the log and run.stop_on after each phase, and the verdict (verdict.h) at the end, in
// 'runs show' and in the report. So they use the same conditions. A rule sees nothing but the
// metrics so far and the settings. docs/did-it-work.md explains all rules.
//
// A rule that compares one metric with a limit is a row of the table in rules.c. The others are in
// policy_rules.c, update_rules.c, text_rules.c, reward_rules.c and reward_parts.c.
#ifndef RLHF_FORMATS_VERDICT_RULES_H
#define RLHF_FORMATS_VERDICT_RULES_H

#include "base/buf.h"
#include "verdict/measures.h"
#include "verdict/notes.h"

// Limits that more than one file uses.
#define RLHF__RULE_KL_FAR  1.0  // KL from the reference that is far more than a good run needs
#define RLHF__RULE_KL_AWAY 0.5  // KL from the reference that is suspicious
#define RLHF__RULE_DROWNED 0.05 // share of the largest reward's spread

// A rule. It appends at most a few notes. A note's `held` says since which phase it holds.
typedef void rlhf__rule(const struct rlhf__history *, struct rlhf__notes *out);

// policy_rules.c: the policy of the newest phase, and how the reward came about
rlhf__rule rlhf__rule_collapsed, rlhf__rule_narrowed, rlhf__rule_fell_apart, rlhf__rule_diverged,
    rlhf__rule_far, rlhf__rule_fell, rlhf__rule_hacked, rlhf__rule_other_reference,
    rlhf__rule_frozen;
// update_rules.c: steps, gradients, time
rlhf__rule rlhf__rule_jumped, rlhf__rule_exploded, rlhf__rule_skipped_steps,
    rlhf__rule_not_finite_rows, rlhf__rule_kl_over_target, rlhf__rule_gradient,
    rlhf__rule_slow_reward;
// text_rules.c: lengths and ends
rlhf__rule rlhf__rule_cut_off, rlhf__rule_lengths;
// reward_rules.c and reward_parts.c: what rewards teach, and measures that nothing is trained on
rlhf__rule rlhf__rule_constant_reward, rlhf__rule_flat_groups, rlhf__rule_calibration,
    rlhf__rule_right_answers, rlhf__rule_negative_weights, rlhf__rule_drowned,
    rlhf__rule_lost_rewards, rlhf__rule_reward_parts, rlhf__rule_measure_stays,
    rlhf__rule_witnesses;

// Append the notes of all rules or, if `trends` is 0, only of those that are said at once. If the
// policy is lost (RLHF__NOTE_LOST), the consequences are left out. [any]
void rlhf__rules_apply(const struct rlhf__history *, int trends, struct rlhf__notes *out);

// Returns 1 if the problem is a consequence of a policy that was lost in phase `lost`: if it did
// not begin before that phase, and does not have the flag RLHF__NOTE_AFTER. [any]
int rlhf__rules_follows(const struct rlhf__run_note *, int64_t lost);

// Returns 1 if a run whose newest phase is `phase` must warn of the note: if it is a problem that
// is said at once, or a trend that has lasted for five phases, from phase 10 on. [any]
int rlhf__rules_due(const struct rlhf__run_note *, int64_t phase);

// ---- for the rules ----

// Write the setting to change first: the KL penalty if the policy drifted away slowly, otherwise
// the learning rate. `phase` is the phase in which the problem began.
void rlhf__put_cause(const struct rlhf__history *, int64_t phase, struct rlhf__buf *out);

// The first phase in which the policy jumped away from the reference, or in which a gradient
// exploded; 0: none. Otherwise sets the two numbers that the rule compares.
int64_t rlhf__jump(const struct rlhf__history *, double *before, double *kl);
int64_t rlhf__explosion(const struct rlhf__history *, double *usual, double *norm);

#endif
