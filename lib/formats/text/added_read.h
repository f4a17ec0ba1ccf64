// added_read.h: what the files of a directory say of added tokens.
//
// What it is not: which token has which role is special.c's; internal to text/.
#ifndef RLHF_HOST_TEXT_ADDED_READ_H
#define RLHF_HOST_TEXT_ADDED_READ_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__tokenizer;

// Add {"id", "content", "special", ...} for each entry of tokenizer.json's added_tokens. Errors:
// RLHF_E_INVALID (also where the tokenizers library would give a token another id), RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__added_read(struct rlhf__tokenizer *tok, const json_t *list,
                             struct rlhf__error *err);

// The same of added_tokens.json, {"content": id}; which are special, other files say. [main]
rlhf_status rlhf__added_read_ids(struct rlhf__tokenizer *tok, json_t *file,
                                 struct rlhf__error *err);

// The same of added_tokens_decoder of tokenizer_config.json, {"id": {"content", "special", ...}}.
// Beside a tokenizer.json it must say the same. [main]
rlhf_status rlhf__added_read_decoder(struct rlhf__tokenizer *tok, json_t *decoder,
                                     struct rlhf__error *err);

// Make a token special that tokenizer_config.json or special_tokens_map.json names: "content" or
// {"content", "lstrip", ...}. One that no token is written as is left alone. [main]
rlhf_status rlhf__added_mark(struct rlhf__tokenizer *tok, const json_t *named,
                             struct rlhf__error *err);

// Make a token special whose id config.json names. [main]
rlhf_status rlhf__added_mark_id(struct rlhf__tokenizer *tok, int32_t id, struct rlhf__error *err);

#endif
