// text_source.h: batches for supervised algorithms: {"text"}, {"messages"} or {"prompt",
// "completion"} rows, or texts with a label, tokenised once and visited in a fresh order on every
// pass.
//
// The cursor is that of the order (two integers), so a resumed run goes on with the next row. It
// does not know configurations or phases.
#ifndef RLHF_HOST_TEXT_SOURCE_H
#define RLHF_HOST_TEXT_SOURCE_H

#include "batch/rows.h"
#include "data/order.h"
#include "data/token_rows.h"

struct rlhf__text_opts {
    const char *path;
    int64_t limit, skip;  // rows of the file; limit 0 = all
    int64_t batch_size;   // rows a batch, > 0
    int64_t batch_tokens; // > 0: instead, as many rows as fit in this many tokens, at least one
    double epochs;        // passes after which the batches end; 0 = never
    int32_t max_len;      // tokens a row may have, > 0
    int32_t split;        // 1: long rows become several, 0: they are cut
    int32_t labelled;     // 1: every row needs a label; rows are encoded as a classifier reads them
    int32_t assistant_only; // 1: what an assistant does not say is left out of the loss
    int32_t reserved;
    int32_t shuffle, threads;       // threads 0 = all cores
    int32_t n_labels;               // of label_names; 0 = take the number from the rows
    const char *const *label_names; // NULL = only integers
    uint64_t seed;
    const struct rlhf__loading *loading; // NULL = the default bound, never stopped
};

struct rlhf__text_source {
    struct rlhf__dataset *data; // until it is tokenised
    struct rlhf__token_rows rows;
    int32_t *label; // [dataset rows], NULL when not labelled
    int64_t n_data; // dataset rows
    int32_t n_labels;
    uint32_t encode_flags; // of texts: enum rlhf__encode_flag
    struct rlhf__batches batches;
};

// Read and check the file; n_labels is known then. Errors: those of rlhf__dataset_open. Release
// with rlhf__text_source_finish, also after a failure. [main]
rlhf_status rlhf__text_source_open(struct rlhf__text_source *, const struct rlhf__text_opts *,
                                   struct rlhf__error *err);
// Then tokenise it; batches can be taken. Errors: those of rlhf__token_rows_init. [main]
rlhf_status rlhf__text_source_tokenise(struct rlhf__text_source *, const struct rlhf__text_opts *,
                                       const struct rlhf__tokenizer *, struct rlhf__error *err);
void rlhf__text_source_finish(struct rlhf__text_source *); // accepts a zeroed one [main]

// How many batches there are until the end; 0 when there is no end. Walks the order: the cursor is
// put back. [main]
rlhf_status rlhf__text_source_batches(struct rlhf__text_source *, int64_t *out,
                                      struct rlhf__error *err);

// The next batch; prompt_len is 1 (at most the row's length); with assistant_only it is what stands
// before the assistant's first token, and what it does not say behind that is left out. *e must be
// zeroed or finished. [main]
rlhf_status rlhf__text_source_next(struct rlhf__text_source *, struct rlhf__rows *e,
                                   struct rlhf__error *err);

#endif
