// preference_source.h: batches for algorithms that learn from preferences. The responses of a row
// are adjacent and share a group number; the preferred one has label 1.
//
// The rows come from data/preferences.h. This file does not depend on configurations or phases.
#ifndef RLHF_HOST_PREFERENCE_SOURCE_H
#define RLHF_HOST_PREFERENCE_SOURCE_H

#include "batch/rows.h"
#include "data/order.h"
#include "data/preferences.h"

struct rlhf__preference_source {
    struct rlhf__preferences *set;
    struct rlhf__batches batches;
    int32_t max_tokens; // limit for a row
    int32_t mismatched; // 1: each row of a batch is followed by one more, with another row's
                        // completion
};

// Read and tokenise the rows. *s must not move. Errors: those of rlhf__preferences_open. Release
// with rlhf__preference_source_finish, also after a failure. [main]
rlhf_status rlhf__preference_source_open(struct rlhf__preference_source *s,
                                         const struct rlhf__preference_opts *rows,
                                         const struct rlhf__batch_opts *batches,
                                         const struct rlhf__tokenizer *tok,
                                         struct rlhf__error *err);
void rlhf__preference_source_finish(struct rlhf__preference_source *); // zeroed allowed [main]

// The next batch. *e must be zeroed or finished. [main]
rlhf_status rlhf__preference_source_next(struct rlhf__preference_source *s, struct rlhf__rows *e,
                                         struct rlhf__error *err);

// Rows pick[0..n) of a set: each response follows its prompt, the flags are SHARE_PROMPTS and
// WHOLE_GROUPS, and source is the row in the set. *e must be zeroed or finished. Errors:
// RLHF_E_INVALID (over 2^31 - 1 tokens), RLHF_E_NOMEM. [any]
rlhf_status rlhf__preference_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, struct rlhf__rows *e, struct rlhf__error *err);

// The same for completions, with a mismatched row after each: its prompt and another row's
// completion, label -1, in the same group. The completion is that of the previous row of the batch;
// for the first row, that of the last. A single row takes the previous row of the set, which must
// have at least two. Prompt and completion together have at most max_tokens. [any]
rlhf_status rlhf__mismatched_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, int32_t max_tokens, struct rlhf__rows *e,
                                  struct rlhf__error *err);

#endif
