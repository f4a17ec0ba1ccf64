// preference_source.h: batches for algorithms that learn from preferences. The responses of one
// preference are adjacent rows with the same group number, and the preferred one has label 1.
//
// The preferences come from data/preferences.h. This file does not depend on configurations or
// phases.
#ifndef RLHF_HOST_BATCH_PREFERENCE_SOURCE_H
#define RLHF_HOST_BATCH_PREFERENCE_SOURCE_H

#include "batch/rows.h"
#include "data/order.h"
#include "data/preferences.h"

struct rlhf__preference_source {
    struct rlhf__preferences *set;
    struct rlhf__batches batches;
    int32_t max_tokens; // maximum number of tokens in a row
    int32_t mismatched; // 1: after each row, add its prompt with another row's completion
};

// Read and tokenize the rows. Do not move *s afterwards. Release with
// rlhf__preference_source_finish, even after a failure. Errors: those of rlhf__preferences_open.
// [main]
rlhf_status rlhf__preference_source_open(struct rlhf__preference_source *s,
                                         const struct rlhf__preference_opts *rows,
                                         const struct rlhf__batch_opts *batches,
                                         const struct rlhf__tokenizer *tok,
                                         struct rlhf__error *err);
void rlhf__preference_source_finish(struct rlhf__preference_source *); // zeroed allowed [main]

// Make the next batch. Before the call, *e must be zeroed or released (rlhf__rows_finish). [main]
rlhf_status rlhf__preference_source_next(struct rlhf__preference_source *s, struct rlhf__rows *e,
                                         struct rlhf__error *err);

// Make rows from preferences pick[0..n) of a set. Each row is a prompt and one response. The batch
// gets the flags SHARE_PROMPTS and WHOLE_GROUPS. A row's source is its preference's row number in
// the files (rlhf__preference.row). Before the call, *e must be zeroed or released
// (rlhf__rows_finish). Errors: RLHF_E_INVALID (more than 2^31 - 1 tokens), RLHF_E_NOMEM. [any]
rlhf_status rlhf__preference_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, struct rlhf__rows *e, struct rlhf__error *err);

// Make two rows from each of the completions pick[0..n). The first row is the prompt with its
// completion. The second row, the mismatched one, has the same prompt and group, the label -1, and
// the completion of the preceding pick or, for the first pick, of the last pick. If n is 1, that
// completion is instead the one before the pick in the set (for the first one in the set, the last
// one). The set must then have at least two completions. The mismatched completion is cut so that
// its row has at most max_tokens tokens. [any]
rlhf_status rlhf__mismatched_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, int32_t max_tokens, struct rlhf__rows *e,
                                  struct rlhf__error *err);

#endif
