// reward_rules.h: rules about rewards. They find a constant reward; a reward that is so large that
// another reward hardly matters; a weight with the wrong sign; and a measure that gets worse while
// the headline improves.
#ifndef RLHF_FORMATS_HISTORY_REWARD_RULES_H
#define RLHF_FORMATS_HISTORY_REWARD_RULES_H

#include "history/measures.h"
#include "history/notes.h"

// Append the findings of these rules. Called by rlhf__rules_apply. [any]
void rlhf__reward_rules_apply(const struct rlhf__history *, struct rlhf__notes *out);

#endif
