// preference_source.h: batches for algorithms that learn from preferences: the responses of a row
// stand together, share a group number, and the preferred one has label 1.
//
// The rows are data/preferences.h's. It does not know configurations or phases.
#ifndef RLHF_HOST_PREFERENCE_SOURCE_H
#define RLHF_HOST_PREFERENCE_SOURCE_H

#include "batch/rows.h"
#include "data/order.h"
#include "data/preferences.h"

struct rlhf__preference_source {
    struct rlhf__preferences *set;
    struct rlhf__batches batches;
    int32_t max_tokens; // that a row may have
    int32_t mismatched; // 1: behind each row of a batch one more, with another's completion
};

// Read and tokenise the rows; batches can be taken. *s must stay where it is. Errors: those of
// rlhf__preferences_open. Release with rlhf__preference_source_finish, also after a failure. [main]
rlhf_status rlhf__preference_source_open(struct rlhf__preference_source *s,
                                         const struct rlhf__preference_opts *rows,
                                         const struct rlhf__batch_opts *batches,
                                         const struct rlhf__tokenizer *tok,
                                         struct rlhf__error *err);
void rlhf__preference_source_finish(struct rlhf__preference_source *); // zeroed allowed [main]

// The next batch. *e must be zeroed or finished. [main]
rlhf_status rlhf__preference_source_next(struct rlhf__preference_source *s, struct rlhf__rows *e,
                                         struct rlhf__error *err);

// Rows pick[0..n) of a set, written out: every response behind its prompt, flags SHARE_PROMPTS and
// WHOLE_GROUPS, source the row in the set. *e must be zeroed or finished. Errors: RLHF_E_INVALID
// (over 2^31 - 1 tokens), RLHF_E_NOMEM. [any]
rlhf_status rlhf__preference_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, struct rlhf__rows *e, struct rlhf__error *err);

// The same of completions, and behind each row one more of its group: its prompt with the
// completion of the row before it (of the last, behind the first; of the row before it in the set,
// which has two, where it is alone), at most max_tokens of both; label -1. [any]
rlhf_status rlhf__mismatched_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, int32_t max_tokens, struct rlhf__rows *e,
                                  struct rlhf__error *err);

#endif
