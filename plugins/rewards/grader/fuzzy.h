// fuzzy.h: how alike two texts are, letter by letter: WRatio of rapidfuzz (3.10) with its
// default_process, divided by 100. It is the best of several ratios, each with a weight: of the
// whole texts, of their words in order of the alphabet, of their words without repetitions and, if
// one text is longer by half or more, of the shorter one and the best part of the longer one.
#ifndef RLHF_REWARDS_GRADER_FUZZY_H
#define RLHF_REWARDS_GRADER_FUZZY_H

#include "grader/word_pair.h"

// The words must be of the form RLHF__WORDS_FUZZY. *out is NaN if one text has many thousand
// letters and the other several times as many, which takes too long to compare. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__fuzzy(const struct rlhf__word_pair *, double *out);

#endif
