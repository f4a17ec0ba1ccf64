// reward_rules.h: rules about rewards: constant rewards, a reward that drowns another, a wrong
// sign, a measure that gets worse while the headline improves.
#ifndef RLHF_FORMATS_HISTORY_REWARD_RULES_H
#define RLHF_FORMATS_HISTORY_REWARD_RULES_H

#include "history/measures.h"
#include "history/notes.h"

// Append what these rules find; called by rlhf__rules_apply. [any]
void rlhf__reward_rules_apply(const struct rlhf__history *, struct rlhf__notes *out);

#endif
