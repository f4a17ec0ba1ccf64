// signs.h: signs that a run's reward makes the policy look better than it is: the policy has
// collapsed, samples tokens at random, or exploits the reward.
#ifndef RLHF_FORMATS_HISTORY_SIGNS_H
#define RLHF_FORMATS_HISTORY_SIGNS_H

#include "history/measures.h"
#include "history/notes.h"

// Append at most one note, with the id "collapsed", "fell_apart", "hacked" or "sign". "sign" means
// that one sign was found, which is not enough to doubt the run. [any]
void rlhf__signs_apply(const struct rlhf__history *, struct rlhf__notes *out);

#endif
