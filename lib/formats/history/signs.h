// signs.h: signs that the policy of a run is no longer worth its reward: it has collapsed, it draws
// tokens at random, or it meets the reward and not its purpose.
#ifndef RLHF_FORMATS_HISTORY_SIGNS_H
#define RLHF_FORMATS_HISTORY_SIGNS_H

#include "history/measures.h"
#include "history/notes.h"

// Append at most one note with the id "collapsed", "fell_apart", "hacked" or "sign"; the last one
// says that there is a sign, but too little to doubt the run. [any]
void rlhf__signs_apply(const struct rlhf__history *, struct rlhf__notes *out);

#endif
