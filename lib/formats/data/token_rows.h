// token_rows.h: tokenizes one text field of all rows of a dataset. The rows of tokens differ in
// length.
//
// An id is stored in two bytes if the vocabulary is small enough. The result does not depend on the
// number of threads.
//
// This file does not choose the order of an epoch (data/order.h does), and it does not make
// batches.
#ifndef RLHF_FORMATS_DATA_TOKEN_ROWS_H
#define RLHF_FORMATS_DATA_TOKEN_ROWS_H

#include "data/dataset.h"
#include "tokenizer/tokenizer.h"

// Which tokens rlhf__token_rows.says marks. Unless this is NOTHING, a row is left out if no token
// after its first one is marked.
enum rlhf__says {
    RLHF__SAYS_NOTHING = 0,   // none
    RLHF__SAYS_ASSISTANT = 1, // the assistant's; a row is messages, or prompt and completion
    RLHF__SAYS_COMPLETION = 2 // the completion's; all tokens of a row without a completion
};

enum rlhf__long { RLHF__LONG_TRUNCATE = 0, RLHF__LONG_SPLIT = 1 };

struct rlhf__token_opts {
    int32_t field;         // enum rlhf__field, one of the text fields
    uint32_t encode_flags; // enum rlhf__encode_flag: BOS, EOS, TEMPLATE
    int32_t max_len;       // maximal number of tokens in a row (the context), > 0
    // What happens to a row of more than max_len tokens (enum rlhf__long). SPLIT cuts the row,
    // including bos and eos, into windows of at most max_len tokens. Adjacent windows share one
    // token, so every token of the row except the first is predicted exactly once.
    int32_t long_rows;
    int32_t min_len;                     // rows and windows with fewer tokens are left out; 0 = 1
    int32_t threads;                     // 0 = all online cores
    int32_t says;                        // enum rlhf__says
    const struct rlhf__loading *loading; // NULL = default memory limit, no cancellation
};

struct rlhf__token_rows {
    int64_t n, total;  // number of rows, number of tokens
    int64_t *offset;   // [n + 1]
    int64_t *source;   // [n] the dataset row that each row was made from
    uint16_t *ids16;   // [total], or NULL when the vocabulary has more than 65,536 tokens
    int32_t *ids32;    // [total], or NULL
    uint8_t *says;     // [total] 1 = the token is marked; NULL unless requested
    int64_t chats;     // number of dataset rows that are messages
    int64_t truncated; // number of dataset rows that lost tokens
    int64_t dropped;   // number of dataset rows and windows left out by min_len
    int64_t silent;    // number of rows and windows left out because no token is marked
    int64_t unreached; // number of rows that lost all marked tokens by cutting; not in `silent`
    char first_unreached[256]; // file and line of the first such row
};

// Tokenize every row of ds. The tokenizer's chat template renders messages; no other tokens are
// added to them. Before the call, *out must be zero-initialized or released. Release it with
// rlhf__token_rows_finish. A row that cannot be encoded is an error or, if opts->loading says so, a
// bad row. Errors: RLHF_E_NOMEM, RLHF_E_CANCELLED, those of
// rlhf__conversation_encode, and RLHF_E_INVALID if
//   all rows are left out, a row lacks the field, or max_len is too small
//   bos or eos is requested, but the tokenizer has none
//   opts->says is RLHF__SAYS_ASSISTANT, and a row is a text
//   the rows and tokens need more memory than opts->loading allows
// [main]
rlhf_status rlhf__token_rows_init(struct rlhf__token_rows *out, const struct rlhf__dataset *ds,
                                  const struct rlhf__tokenizer *tok,
                                  const struct rlhf__token_opts *opts, struct rlhf__error *err);

// Accepts a zeroed struct. [main]
void rlhf__token_rows_finish(struct rlhf__token_rows *rows);

// Length of row i in tokens. [any]
static inline int32_t rlhf__token_rows_len(const struct rlhf__token_rows *rows, int64_t i) {
    return (int32_t)(rows->offset[i + 1] - rows->offset[i]);
}

// Copy row i to ids[rlhf__token_rows_len(i)]. [any]
void rlhf__token_rows_copy(const struct rlhf__token_rows *rows, int64_t i, int32_t *ids);

#endif
