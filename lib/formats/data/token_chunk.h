// token_chunk.h: the tokens of some rows of a dataset, in the order of the rows. Internal to data/.
#ifndef RLHF_HOST_DATA_TOKEN_CHUNK_H
#define RLHF_HOST_DATA_TOKEN_CHUNK_H

#include "data/token_rows.h"
#include "text/tokenizer.h"

// How texts become rows of tokens; all borrowed.
struct rlhf__token_cut {
    const struct rlhf__tokenizer *tok;
    const struct rlhf__token_opts *opts;
    int32_t narrow, template; // ids take 2 bytes; the tokenizer frames the text itself
};

struct rlhf__token_chunk {
    int32_t *len;    // [n] tokens of each row made
    int64_t *source; // [n] row of the dataset it is of
    size_t n, cap;
    void *ids;     // [total], 2 or 4 bytes each; set by rlhf__token_chunk_store
    uint8_t *says; // [total] where opts->says; set there too
    int64_t total, truncated, dropped, silent, chats;
};

// Append the ids of row `source` to *ids and what rows they make to the chunk. Errors:
// RLHF_E_NOMEM, RLHF_E_INVALID (no such field; messages that cannot be rendered). [any]
rlhf_status rlhf__token_chunk_add(struct rlhf__token_chunk *, const struct rlhf__token_cut *,
                                  int64_t source, const struct rlhf__data_row *row,
                                  struct rlhf__ids *ids, struct rlhf__error *err);

// Copy the ids of all its rows, done once at the end; RLHF__TOKEN_SAYS leaves *ids. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__token_chunk_store(struct rlhf__token_chunk *, const struct rlhf__token_cut *,
                                    struct rlhf__ids *ids, struct rlhf__error *err);

void rlhf__token_chunk_finish(struct rlhf__token_chunk *); // accepts a zeroed one [any]

#endif
