// diversity.h: measures how much responses repeat themselves, by distinct n-grams of their tokens.
#ifndef RLHF_HOST_BATCH_DIVERSITY_H
#define RLHF_HOST_BATCH_DIVERSITY_H

#include "batch/rows.h"

// Set *out to the number of distinct n-grams of token ids divided by the number of all n-grams. An
// n-gram lies within one row. If all rows are shorter than n, *out is 1. Row i is ids[begin[i] ..
// end[i]). Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__distinct_n(const int32_t *ids, const int32_t *begin, const int32_t *end,
                             uint32_t rows, int32_t n, double *out, struct rlhf__error *err);

// Set *out to distinct-3 (rlhf__distinct_n with n = 3) of a batch's responses. Each turn counts as
// a separate text. [any]
rlhf_status rlhf__rows_distinct3(const struct rlhf__rows *e, double *out, struct rlhf__error *err);

#endif
