// added_read.h: reads the added tokens from the files of a directory, and prepares the search for
// them.
//
// This file does not read the roles of tokens (tokenizer_config.c does). Internal to text/.
#ifndef RLHF_FORMATS_TOKENIZER_ADDED_READ_H
#define RLHF_FORMATS_TOKENIZER_ADDED_READ_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__tokenizer;

// The id of the token that the files write as content[0..len); -1 = there is no such token. [any]
int32_t rlhf__added_id(const struct rlhf__tokenizer *tok, const char *content, size_t len);

// Add the tokens of tokenizer.json's added_tokens: {"id", "content", "special", ...} for each
// token. Errors: RLHF_E_INVALID (also if the tokenizers library would give a token another id),
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__added_read(struct rlhf__tokenizer *tok, const json_t *list,
                             struct rlhf__error *err);

// Add the tokens of added_tokens.json, {"content": id}. Other files say which of these tokens are
// special. [main]
rlhf_status rlhf__added_read_ids(struct rlhf__tokenizer *tok, json_t *file,
                                 struct rlhf__error *err);

// Add the tokens of added_tokens_decoder in tokenizer_config.json, {"id": {"content", "special",
// ...}}. If there is a tokenizer.json, the entries must agree with it. [main]
rlhf_status rlhf__added_read_decoder(struct rlhf__tokenizer *tok, json_t *decoder,
                                     struct rlhf__error *err);

// Mark a token as special because tokenizer_config.json or special_tokens_map.json names it.
// `named` is the value in that file: "content" or {"content", "lstrip", ...}. A name that is not a
// token is ignored. [main]
rlhf_status rlhf__added_mark(struct rlhf__tokenizer *tok, const json_t *named,
                             struct rlhf__error *err);

// Mark the token with this id as special, because config.json names the id. [main]
rlhf_status rlhf__added_mark_id(struct rlhf__tokenizer *tok, int32_t id, struct rlhf__error *err);

// Prepare the search for added tokens. Call this function after the last token is added. Errors:
// RLHF_E_NOMEM, RLHF_E_UNSUPPORTED (the normalizer has a pattern that takes too long). [main]
rlhf_status rlhf__added_ready(struct rlhf__tokenizer *tok, struct rlhf__error *err);

#endif
