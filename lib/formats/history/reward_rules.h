// reward_rules.h: the rules of rules.h about rewards and what they teach: rewards that do not
// differ, one that drowns another, a sign that is wrong, a measure that gets worse as the headline
// gets better.
#ifndef RLHF_FORMATS_HISTORY_REWARD_RULES_H
#define RLHF_FORMATS_HISTORY_REWARD_RULES_H

#include "history/measures.h"
#include "history/notes.h"

// Append what they find; called by rlhf__rules_apply. [any]
void rlhf__reward_rules_apply(const struct rlhf__history *, struct rlhf__notes *out);

#endif
