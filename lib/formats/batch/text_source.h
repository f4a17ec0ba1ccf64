// text_source.h: batches for supervised algorithms. Rows are {"text"}, {"messages"} or {"prompt",
// "completion"}, or texts with a label. They are tokenized once. Every pass visits all rows, in a
// new order if `shuffle` is set.
//
// The position in the data is the cursor of the row order: two integers, from which a resumed run
// continues. This file does not depend on configurations or phases.
#ifndef RLHF_HOST_BATCH_TEXT_SOURCE_H
#define RLHF_HOST_BATCH_TEXT_SOURCE_H

#include "batch/rows.h"
#include "data/order.h"
#include "data/token_rows.h"

struct rlhf__text_opts {
    const char *path;
    int64_t limit, skip;      // rows of the file; limit 0 = all
    int64_t batch_size;       // rows per batch, > 0
    int64_t batch_tokens;     // > 0: replaces batch_size: as many rows as fit into it, at least one
    double epochs;            // number of passes; 0 = no end
    int32_t max_len;          // maximum number of tokens in a row, > 0
    int32_t split;            // 1: split long rows into several; 0: cut them
    int32_t labeled;          // 1: every row needs a label; rows are encoded for a classifier
    int32_t assistant_only;   // 1: only the assistant's tokens are in the loss
    int32_t shuffle, threads; // threads 0 = all cores
    int32_t n_labels;         // number of label_names; 0 = count the labels in the rows
    const char *const *label_names; // NULL = labels are integers only
    uint64_t seed;
    const struct rlhf__loading *loading; // NULL = the default limit, and loading cannot be
                                         // cancelled
};

struct rlhf__text_source {
    struct rlhf__dataset *data; // NULL after tokenizing
    struct rlhf__token_rows rows;
    int32_t *label; // [dataset rows], NULL if not labeled
    int64_t n_data; // dataset rows
    int64_t skip;   // rows of the file that come before `data`
    int32_t n_labels;
    uint32_t encode_flags; // enum rlhf__encode_flag, for texts
    struct rlhf__batches batches;
};

// Read and check the file, and set n_labels. Release with rlhf__text_source_finish, even after a
// failure. Errors: those of rlhf__dataset_open. [main]
rlhf_status rlhf__text_source_open(struct rlhf__text_source *, const struct rlhf__text_opts *,
                                   struct rlhf__error *err);
// Tokenize the file. Call this before the first batch. Errors: those of rlhf__token_rows_init.
// [main]
rlhf_status rlhf__text_source_tokenize(struct rlhf__text_source *, const struct rlhf__text_opts *,
                                       const struct rlhf__tokenizer *, struct rlhf__error *err);
void rlhf__text_source_finish(struct rlhf__text_source *); // accepts a zeroed struct [main]

// Set *out to the number of batches in all epochs, or to 0 if the number of epochs is unlimited.
// Visits the whole order to count the batches, and then resets the cursor. [main]
rlhf_status rlhf__text_source_batches(struct rlhf__text_source *, int64_t *out,
                                      struct rlhf__error *err);

// Make the next batch. With assistant_only, prompt_len is the number of tokens before the
// assistant's first token (at least 1), and later tokens of other speakers are left out of the
// loss. For rows with a completion, prompt_len is the number of tokens before the completion. For
// all other rows, prompt_len is 1. Before the call, *e must be zeroed or released
// (rlhf__rows_finish). [main]
rlhf_status rlhf__text_source_next(struct rlhf__text_source *, struct rlhf__rows *e,
                                   struct rlhf__error *err);

#endif
