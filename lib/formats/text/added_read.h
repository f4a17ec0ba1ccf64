// added_read.h: the added tokens that the files of a directory list, and preparing the search for
// them.
//
// What it is not: the roles of tokens, which tokenizer_config.c reads; internal to text/.
#ifndef RLHF_HOST_TEXT_ADDED_READ_H
#define RLHF_HOST_TEXT_ADDED_READ_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__tokenizer;

// Id of the token that the files write as content[0..len), -1 = none. [any]
int32_t rlhf__added_id(const struct rlhf__tokenizer *tok, const char *content, size_t len);

// Add {"id", "content", "special", ...} for each entry of tokenizer.json's added_tokens. Errors:
// RLHF_E_INVALID (also if the tokenizers library would give a token another id), RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__added_read(struct rlhf__tokenizer *tok, const json_t *list,
                             struct rlhf__error *err);

// The same for added_tokens.json, {"content": id}; other files say which are special. [main]
rlhf_status rlhf__added_read_ids(struct rlhf__tokenizer *tok, json_t *file,
                                 struct rlhf__error *err);

// The same for added_tokens_decoder of tokenizer_config.json, {"id": {"content", "special", ...}}.
// It must agree with tokenizer.json if both exist. [main]
rlhf_status rlhf__added_read_decoder(struct rlhf__tokenizer *tok, json_t *decoder,
                                     struct rlhf__error *err);

// Mark the token that tokenizer_config.json or special_tokens_map.json names as special. The value
// is "content" or {"content", "lstrip", ...}. A name that is not a token is ignored. [main]
rlhf_status rlhf__added_mark(struct rlhf__tokenizer *tok, const json_t *named,
                             struct rlhf__error *err);

// Mark the token with an id from config.json as special. [main]
rlhf_status rlhf__added_mark_id(struct rlhf__tokenizer *tok, int32_t id, struct rlhf__error *err);

// Prepare the search in texts, after the last token was added. Errors: RLHF_E_NOMEM,
// RLHF_E_UNSUPPORTED (the normaliser has a pattern that takes too long). [main]
rlhf_status rlhf__added_ready(struct rlhf__tokenizer *tok, struct rlhf__error *err);

#endif
