// ids.h: a growable array of token ids, the output of the tokenizers.
//
// What it is not: a ragged batch; see data/token_rows.h for many rows.
#ifndef RLHF_HOST_TEXT_IDS_H
#define RLHF_HOST_TEXT_IDS_H

#include "base/error.h"

// Zero-initialise; release with rlhf__ids_finish. data[0..n) are valid.
struct rlhf__ids {
    int32_t *data;
    size_t n, cap;
};

// Make room for `more` further ids. Errors: RLHF_E_NOMEM. [any, one thread per array]
rlhf_status rlhf__ids_reserve(struct rlhf__ids *ids, size_t more, struct rlhf__error *err);

// Append one id. Errors: RLHF_E_NOMEM. [any, one thread per array]
rlhf_status rlhf__ids_push(struct rlhf__ids *ids, int32_t id, struct rlhf__error *err);

// Free the memory and make the array empty; accepts an empty array. [any]
void rlhf__ids_finish(struct rlhf__ids *ids);

#endif
