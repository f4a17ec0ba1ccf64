// reward_rules.h: rules about rewards: a reward is constant, a reward is so large that another
// hardly counts, a weight has the wrong sign, or a measure gets worse while the headline improves.
#ifndef RLHF_FORMATS_HISTORY_REWARD_RULES_H
#define RLHF_FORMATS_HISTORY_REWARD_RULES_H

#include "history/measures.h"
#include "history/notes.h"

// Append what these rules find; called by rlhf__rules_apply. [any]
void rlhf__reward_rules_apply(const struct rlhf__history *, struct rlhf__notes *out);

#endif
