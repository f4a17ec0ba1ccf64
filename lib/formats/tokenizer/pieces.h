// pieces.h: the text of each token of a sequence. Joined together, the pieces are the text of the
// whole sequence.
#ifndef RLHF_FORMATS_TOKENIZER_PIECES_H
#define RLHF_FORMATS_TOKENIZER_PIECES_H

#include "base/buf.h"
#include "tokenizer/tokenizer.h"

// Append the text of ids[0..n) to *text, as rlhf__tokenizer_text does, including special tokens.
// Set end[i] to the length of *text after piece i. If a character spans several tokens, it belongs
// to the last of them, so a piece may be empty. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__pieces(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                         struct rlhf__buf *text, size_t *end, struct rlhf__error *err);

#endif
