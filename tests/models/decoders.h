// tests/models/decoders.h: the configs of Llama and its descendants that make_vectors.py has.
#ifndef TESTS_MODELS_DECODERS_H
#define TESTS_MODELS_DECODERS_H

#include "support.h"

// `vectors` is the name in vectors.bin. `partly` is set if it has only some gradients there.
struct decoder {
    const char *vectors, *plugin;
    const struct setting *settings;
    int32_t partly, reserved;
};

enum { N_DECODERS = 36 };
extern const struct decoder decoders[N_DECODERS];
// Two models that together cover everything. tiny_qwen2 has grouped heads, biases and a tied head.
// tiny_qwen3 has norms of heads, wide heads, an untied head and stretched positions.
extern const struct setting tiny_qwen2[], tiny_qwen3[];
extern const struct setting tiny_granite[], tiny_hybrid[]; // four factors; and a fused, tied one
extern const struct setting tiny_smollm3[]; // biases of attention; the second layer does not rotate
// mistral: every layer has a window of 4 tokens. qwen2, as wide as wider_qwen3: all layers but the
// first have a window of 23 tokens.
extern const struct setting tiny_window[], wider_window[];
// tied_qwen3 has a tied head. wider_qwen3 is as wide as wider_gpt2 of families.h, and has more
// heads than d / head_dim.
extern const struct setting tied_qwen3[], wider_qwen3[];
// norms around blocks, windows and positions by kind of layer
extern const struct setting tiny_gemma3[];
extern const struct setting tiny_gemma2[]; // capped scores; a window in every second layer
// three quarters of a head rotate, and every layer has a window; longrope with the long factors
extern const struct setting tiny_phi3[], long_phi3[];
// norms after blocks, and of all queries and all keys of a token
extern const struct setting tiny_olmo2[];
// the same with windows and positions by kind of layer
extern const struct setting tiny_olmo3[];
// a gated short convolution and attention; the delta rule and attention with gates
extern const struct setting tiny_lfm2[], tiny_qwen3_5[];
// the same with biases; attention comes first
extern const struct setting biased_lfm2[], biased_qwen3_5[];
// as wide as wider_qwen3
extern const struct setting wider_lfm2[], wider_qwen3_5[];
// pad_token_id 29
extern const struct setting llama_score[], qwen3_score[], smollm3_score[], gemma2_score[],
    phi3_score[], olmo2_score[];

#endif
