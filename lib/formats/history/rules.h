// rules.h: the rules that find problems in the metrics of a run. The verdict applies them to a
// whole run. A training run also applies them, so its warnings agree with the report. It does so
// after every phase from the tenth to the 999th, and after some of the later phases. The notes
// constant_reward and kl_over_target, and all notes of level info, appear only in the report.
//
// The rules about rewards are in reward_rules.h. docs/did-it-work.md explains all rules.
#ifndef RLHF_FORMATS_HISTORY_RULES_H
#define RLHF_FORMATS_HISTORY_RULES_H

#include "history/measures.h"
#include "history/notes.h"

// Limits. KL is in nats per token.
#define RLHF__RULE_KL_FAR      1.0 // KL from the reference that is far more than a good run needs
#define RLHF__RULE_KL_AWAY     0.5 // KL from the reference that is suspicious
#define RLHF__RULE_ALIKE       0.1 // share of the first entropy: all responses are nearly the same
#define RLHF__RULE_FLAT        0.5 // share of groups whose responses have the same reward
#define RLHF__RULE_CUT_OFF     0.9 // share of responses that reach the length limit
#define RLHF__RULE_OVER_TARGET 1.5 // multiple of the KL that the settings ask for
#define RLHF__RULE_CLIPPED     0.3 // share of tokens whose ratio is clipped
#define RLHF__RULE_BREVITY     (-0.3) // correlation of length and reward: short responses are rewarded
#define RLHF__RULE_DROWNED     0.05 // share of the largest reward's spread

// A supervised loss has diverged if it is above LOSS_FACTOR times the first phase's loss plus
// LOSS_MARGIN. The margin allows for differences between batches.
#define RLHF__RULE_LOSS_FACTOR 2.0
#define RLHF__RULE_LOSS_MARGIN 2.0

// At least this many values at the end must be beyond a limit. A single value may be due to chance.
enum { RLHF__RULE_HELD = 3 };

// Append the findings of all rules. A note's `held` says since which phase the finding holds. [any]
void rlhf__rules_apply(const struct rlhf__history *, struct rlhf__notes *out);

#endif
