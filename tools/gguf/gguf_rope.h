// gguf_rope.h: rotary positions of a config.json (rope_parameters of transformers 5, rope_theta and
// rope_scaling before it) as llama.cpp's keys.
#ifndef RLHF_HOST_WEIGHTS_GGUF_ROPE_H
#define RLHF_HOST_WEIGHTS_GGUF_ROPE_H

#include "gguf/gguf_writer.h"

#include <jansson.h>

// Supports the rope types default, linear, yarn with its default attention factor and, for llama,
// llama3 (then *llama3 = 1: the file needs rope_freqs.weight); others are refused by name. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__gguf_rope_check(const json_t *config, const char *dir, const char *arch,
                                  int32_t *llama3, struct rlhf__error *err);

// Add the keys of a checked config. [main]
void rlhf__gguf_rope_put(struct rlhf__gguf *g, const json_t *config, const char *arch);

// The divisors of the head_dim / 2 frequencies under "llama3" scaling (Llama 3.1, as transformers
// computes them), f32. [any]
void rlhf__gguf_llama3_rope(const json_t *config, int32_t head_dim, float *out);

#endif
