// token_table.h: a table of tokens with their log-probs, one token per line, colored by the
// log-ratio to a reference.
#ifndef RLHF_TOOLS_PROMPT_TOKEN_TABLE_H
#define RLHF_TOOLS_PROMPT_TOKEN_TABLE_H

#include "tokenizer/tokenizer.h"

// Append a token's text. A space becomes a dot, because tokens often begin with one; control
// characters are escaped. [any]
void rlhf__put_piece(struct rlhf__buf *out, rlhf_str piece);

struct rlhf__token_table {
    const struct rlhf__tokenizer *tok;
    const int32_t *ids;           // [n]
    const float *logp, *ref;      // [n]; ref NULL: without a reference
    const float *entropy, *value; // [n]; NULL: without the column
    size_t n;
    int32_t color; // 1: the terminal shows colors
};

// Append the table, with a heading. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__token_table_put(const struct rlhf__token_table *, struct rlhf__buf *out,
                                  struct rlhf__error *err);

#endif
