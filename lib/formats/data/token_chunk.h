// token_chunk.h: tokenizes some consecutive rows of a dataset, for token_rows.c.
#ifndef RLHF_FORMATS_DATA_TOKEN_CHUNK_H
#define RLHF_FORMATS_DATA_TOKEN_CHUNK_H

#include "data/token_rows.h"

// How texts become rows of tokens. All pointers are borrowed.
struct rlhf__token_cut {
    const struct rlhf__tokenizer *tok;
    const struct rlhf__token_opts *opts;
    int32_t narrow, template; // `narrow`: ids take 2 bytes; `template`: special tokens are added
};

// The tokens of some consecutive rows of the dataset.
struct rlhf__token_chunk {
    int32_t *len;    // [n] number of tokens of each row made
    int64_t *source; // [n] the dataset row that each row was made from
    size_t n, cap;
    void *ids;     // [total] of 2 or 4 bytes; set by rlhf__token_chunk_store
    uint8_t *says; // [total] if opts->says; set likewise
    int64_t total, truncated, dropped, silent, chats;
    int64_t unreached, first_unreached; // see struct rlhf__token_rows
    struct rlhf__bad_rows *bad;         // rows that were left out because they are bad; NULL: none
};

// Append the ids of row `source` to *ids, and append the rows made from them to the chunk. Errors:
// RLHF_E_NOMEM, RLHF_E_INVALID (no such field; messages that cannot be rendered). [any]
rlhf_status rlhf__token_chunk_add(struct rlhf__token_chunk *c, const struct rlhf__token_cut *how,
                                  int64_t source, const struct rlhf__data_row *row,
                                  struct rlhf__ids *ids, struct rlhf__error *err);

// Copy the ids of all rows to the chunk, and clear RLHF__TOKEN_SAYS in *ids. Call this function
// once, after the last row. [any]
rlhf_status rlhf__token_chunk_store(struct rlhf__token_chunk *c, const struct rlhf__token_cut *how,
                                    struct rlhf__ids *ids, struct rlhf__error *err);

void rlhf__token_chunk_finish(struct rlhf__token_chunk *c); // accepts a zeroed struct [any]

#endif
