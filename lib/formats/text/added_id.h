// added_id.h: which of a model's tokens an added token is, by what it is written as.
//
// What it is not: the list of added tokens is added_tokens.h; internal to text/.
#ifndef RLHF_HOST_TEXT_ADDED_ID_H
#define RLHF_HOST_TEXT_ADDED_ID_H

#include "base/error.h"

struct rlhf__tokenizer;

// The bytes of a token that is written so: those of its stand-ins, where the model sees bytes and
// all of it is stand-ins, else its own; *stands: they are what the model's tokens are written in.
// The caller frees *out. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__added_bytes(const struct rlhf__tokenizer *tok, const char *s, size_t len,
                              char **out, size_t *n, int *stands, struct rlhf__error *err);
// Id of the model's token of these bytes, as rlhf__added_bytes gave them; -1 = none. [any]
int32_t rlhf__added_model_id(const struct rlhf__tokenizer *tok, const char *bytes, size_t n,
                             int stands);
// Id of the token that is written so in the files, -1 = none. [any]
int32_t rlhf__added_id(const struct rlhf__tokenizer *tok, const char *content, size_t len);

#endif
