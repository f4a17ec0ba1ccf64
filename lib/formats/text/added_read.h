// added_read.h: reads the added tokens from the files of a directory, and prepares the search for
// them.
//
// This file does not read the roles of tokens (tokenizer_config.c does). Internal to text/.
#ifndef RLHF_HOST_TEXT_ADDED_READ_H
#define RLHF_HOST_TEXT_ADDED_READ_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__tokenizer;

// The id of the token that the files spell content[0..len); -1 = none. [any]
int32_t rlhf__added_id(const struct rlhf__tokenizer *tok, const char *content, size_t len);

// Add {"id", "content", "special", ...} for each entry of tokenizer.json's added_tokens. Errors:
// RLHF_E_INVALID (also if the tokenizers library would give a token another id), RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__added_read(struct rlhf__tokenizer *tok, const json_t *list,
                             struct rlhf__error *err);

// Add the tokens of added_tokens.json, {"content": id}. Other files say which of these are special.
// [main]
rlhf_status rlhf__added_read_ids(struct rlhf__tokenizer *tok, json_t *file,
                                 struct rlhf__error *err);

// Add the tokens of added_tokens_decoder in tokenizer_config.json, {"id": {"content", "special",
// ...}}. They must agree with tokenizer.json if both exist. [main]
rlhf_status rlhf__added_read_decoder(struct rlhf__tokenizer *tok, json_t *decoder,
                                     struct rlhf__error *err);

// Mark as special a token that tokenizer_config.json or special_tokens_map.json names. The value
// `named` is "content" or {"content", "lstrip", ...}. A name that is not a token is ignored. [main]
rlhf_status rlhf__added_mark(struct rlhf__tokenizer *tok, const json_t *named,
                             struct rlhf__error *err);

// Mark as special the token with this id, which is from config.json. [main]
rlhf_status rlhf__added_mark_id(struct rlhf__tokenizer *tok, int32_t id, struct rlhf__error *err);

// Prepare the search in texts, after the last token was added. Errors: RLHF_E_NOMEM,
// RLHF_E_UNSUPPORTED (the normalizer has a pattern that takes too long). [main]
rlhf_status rlhf__added_ready(struct rlhf__tokenizer *tok, struct rlhf__error *err);

#endif
