// tests/models/decoders.h: the configs of Llama and its descendants that make_vectors.py has.
#ifndef TESTS_MODELS_DECODERS_H
#define TESTS_MODELS_DECODERS_H

#include "support.h"

// file: vectors/<file>.bin. partly: it has only some gradients.
struct decoder {
    const char *file, *plugin;
    const struct setting *settings;
    int32_t partly, reserved;
};

enum { N_DECODERS = 10 };
extern const struct decoder decoders[N_DECODERS];
// Two of them that together cover everything: grouped heads, biases, tied head; norms of heads,
// wide heads, untied head, stretched positions.
extern const struct setting tiny_qwen2[], tiny_qwen3[];
// With a tied head; as wide as wider_gpt2 of families.h, with more heads than d / head_dim.
extern const struct setting tied_qwen3[], wider_qwen3[];
extern const struct setting llama_score[], qwen3_score[]; // pad_token_id 29

#endif
