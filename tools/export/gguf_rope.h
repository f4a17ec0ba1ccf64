// gguf_rope.h: writes the rotary positions of a config.json as keys for llama.cpp. The config has
// rope_parameters (transformers 5), or rope_theta and rope_scaling (older versions).
#ifndef RLHF_TOOLS_EXPORT_GGUF_ROPE_H
#define RLHF_TOOLS_EXPORT_GGUF_ROPE_H

#include "export/gguf_writer.h"

#include <jansson.h>

// Check that llama.cpp supports the config's rope type. llama.cpp supports the types `default`,
// `linear` and, with its default attention factor, `yarn`. For models of the Llama architecture, it
// also supports `llama3`. For this type, sets *llama3 to 1, and the file needs rope_freqs.weight.
// Errors: RLHF_E_INVALID, with the type, for any other type. [main]
rlhf_status rlhf__gguf_rope_check(const json_t *config, const char *dir, const char *arch,
                                  int32_t *llama3, struct rlhf__error *err);

// Add the keys of a checked config. [main]
void rlhf__gguf_rope_put(struct rlhf__gguf *g, const json_t *config, const char *arch);

// Set `out` to the divisors of the head_dim / 2 frequencies for the rope type llama3 (Llama 3.1),
// in f32, as transformers computes them. [any]
void rlhf__gguf_llama3_rope(const json_t *config, int32_t head_dim, float *out);

#endif
