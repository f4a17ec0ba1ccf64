// rules.h: the rules that find problems in the metrics of a run so far. The verdict applies them to
// a whole run. A training run applies them from the tenth phase on (phase 1,000 and later: not
// after each phase), so a warning and the report agree. It never warns of notes of level info, of
// constant_reward and of kl_over_target; those are only in the report.
//
// reward_rules.h has those about rewards; docs/did-it-work.md explains all of them.
#ifndef RLHF_FORMATS_HISTORY_RULES_H
#define RLHF_FORMATS_HISTORY_RULES_H

#include "history/measures.h"
#include "history/notes.h"

// Limits; rates are nats per token.
#define RLHF__RULE_KL_FAR      1.0  // KL from the reference, far above what a good run needs
#define RLHF__RULE_KL_AWAY     0.5  // KL from the reference, suspicious
#define RLHF__RULE_ALIKE       0.1  // share of the first entropy: all responses are nearly the same
#define RLHF__RULE_FLAT        0.5  // share of groups whose responses have the same reward
#define RLHF__RULE_CUT_OFF     0.9  // share of responses that reach the length limit
#define RLHF__RULE_OVER_TARGET 1.5  // times the KL that the settings ask for
#define RLHF__RULE_CLIPPED     0.3  // share of tokens whose ratio is clipped
#define RLHF__RULE_DROWNED     0.05 // share of the largest reward's spread

// Values at the end that must all be beyond a limit: one of them may be chance.
enum { RLHF__RULE_HELD = 3 };

// Append what all rules find. A note's `held` says since which phase it has been true. [any]
void rlhf__rules_apply(const struct rlhf__history *, struct rlhf__notes *out);

#endif
