// added.h: the added tokens of a tokenizer in a text: they are found before anything else is done
// to it, and the pipeline sees what lies between them.
//
// What it is not: which tokens are added the files say (special.c); internal to text/.
#ifndef RLHF_HOST_TEXT_ADDED_H
#define RLHF_HOST_TEXT_ADDED_H

#include "text/tokenizer_impl.h"

// Append the ids of s[0..n), special tokens recognised with RLHF__ENCODE_SPECIAL, other added ones
// always. Stops early once out->n >= stop_at. Errors: RLHF_E_NOMEM, RLHF_E_UNSUPPORTED (a pattern
// that takes too long). [any]
rlhf_status rlhf__added_encode(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                               const char *s, size_t n, uint32_t flags, size_t stop_at,
                               struct rlhf__ids *out, struct rlhf__error *err);

#endif
