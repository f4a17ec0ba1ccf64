// similarity.h: the graders that compare two texts: string_check and text_similarity.
#ifndef RLHF_REWARDS_GRADER_SIMILARITY_H
#define RLHF_REWARDS_GRADER_SIMILARITY_H

#include "grader/spec.h"

// Set *out to the grade of a text, from 0 to 1, or to NaN if the texts are too long to compare.
// Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__similarity(const rlhf_host *host, const struct rlhf__grader *, rlhf_str text,
                             rlhf_str reference, double *out);

#endif
