// pipeline.h: a text without added tokens to ids: normaliser, pre-tokeniser, model.
//
// What it is not: added tokens are added.h's, the tokens around a text frame.c's, ids to text
// decoder.h's; internal to text/.
#ifndef RLHF_HOST_TEXT_PIPELINE_H
#define RLHF_HOST_TEXT_PIPELINE_H

#include "text/tokenizer_impl.h"

// The normal form of s[0..n) in *out, *len: s itself without a normaliser, else in work->normal.
// Errors: RLHF_E_NOMEM, RLHF_E_UNSUPPORTED (a pattern that takes too long). [any, one thread per
// work]
rlhf_status rlhf__pipeline_normal(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                                  const char *s, size_t n, const char **out, size_t *len,
                                  struct rlhf__error *err);

// Append the ids of the normal text s[0..n), stopping early once out->n >= stop_at (a whole word
// may overshoot). at_start: the whole text begins here. Errors: RLHF_E_NOMEM, RLHF_E_UNSUPPORTED.
// [any, one thread per work]
rlhf_status rlhf__pipeline_words(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                                 const char *s, size_t n, int at_start, size_t stop_at,
                                 struct rlhf__ids *out, struct rlhf__error *err);

#endif
