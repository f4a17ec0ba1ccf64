// gguf_text.h: the tokenizer's files of a model directory, made from the keys of a GGUF file:
// tokenizer.json, tokenizer_config.json and generation_config.json.
//
// They are those of the published tokenizer as far as the file tells. Supported are byte-level BPE
// (which llama.cpp calls "gpt2") with the rules of gguf_pre.h, and SentencePiece vocabularies with
// scores ("llama"). An id whose text is [PAD<id>] has no token in the published tokenizer, so it is
// left out.
#ifndef RLHF_FORMATS_GGUF_GGUF_TEXT_H
#define RLHF_FORMATS_GGUF_GGUF_TEXT_H

#include "tensors/gguf_file.h"

#include <jansson.h>

// Make a file's JSON object: *out is a new reference. `path` is for messages. Errors:
// RLHF_E_INVALID (a missing key, a key of another type, an id without a token, a text that is not
// UTF-8), RLHF_E_UNSUPPORTED (another kind of tokenizer), RLHF_E_NOMEM. [main]

// The tokens, the merges, the steps before and after them, and the special tokens as added tokens.
rlhf_status rlhf__gguf_tokenizer(const struct rlhf__gguf_file *, const char *path, json_t **out,
                                 struct rlhf__error *err);

// The special tokens by their roles, and the chat templates.
rlhf_status rlhf__gguf_tokenizer_config(const struct rlhf__gguf_file *, const char *path,
                                        json_t **out, struct rlhf__error *err);

// The ids that end a text: eos_token_id, eot_token_id and eom_token_id. A file without
// eot_token_id may still have a token that ends a turn; as in llama.cpp, it is found by its text.
rlhf_status rlhf__gguf_generation_config(const struct rlhf__gguf_file *, const char *path,
                                         json_t **out, struct rlhf__error *err);

#endif
