// diversity.h: how much responses repeat themselves, by distinct n-grams of their tokens.
#ifndef RLHF_HOST_DIVERSITY_H
#define RLHF_HOST_DIVERSITY_H

#include "batch/rows.h"

// Distinct n-grams of token ids divided by all n-grams of that size, within rows; 1 if there are
// none. Row i is ids[begin[i] .. end[i]). Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__distinct_n(const int32_t *ids, const int32_t *begin, const int32_t *end,
                             uint32_t rows, int32_t n, double *out, struct rlhf__error *err);

// distinct-3 of a batch's responses, each turn by itself: a measure of how much they repeat
// themselves. [any]
rlhf_status rlhf__rows_distinct3(const struct rlhf__rows *e, double *out, struct rlhf__error *err);

#endif
