// meteor.h: METEOR (Lavie and Agarwal 2007), with the parameters of nltk: alpha 0.9, beta 3, gamma
// 0.5. Words match that are equal, or that have equal stems. Synonyms do not match, because the
// program has no dictionary of them (nltk takes them from WordNet).
#ifndef RLHF_REWARDS_GRADER_METEOR_H
#define RLHF_REWARDS_GRADER_METEOR_H

#include "grader/word_pair.h"

// The words must be in lower case (RLHF__WORDS_13A_LOWER). Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__meteor(const struct rlhf__word_pair *, double *out);

#endif
