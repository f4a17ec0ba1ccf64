// gguf_tokens.h: writes the tokenizer of a model directory as keys for llama.cpp. Supports
// byte-level BPE, which llama.cpp calls "gpt2", and BPE with byte fallback, which it calls "llama"
// (a SentencePiece vocabulary).
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_TOKENS_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_TOKENS_H

#include "gguf_write/gguf_writer.h"

#include <jansson.h>

// Add tokens, their types, merges or scores, special ids and the chat template. n_vocab is the
// number of rows of the embedding; ids without a token become unused tokens. Errors: RLHF_E_INVALID
// if llama.cpp does not support the tokenizer's form; those of rlhf__tokenizer_open. [main]
rlhf_status rlhf__gguf_tokens_put(struct rlhf__gguf *g, const char *dir, const json_t *config,
                                  int32_t n_vocab, struct rlhf__error *err);

#endif
