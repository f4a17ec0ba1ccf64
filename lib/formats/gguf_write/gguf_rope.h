// gguf_rope.h: writes the rotary positions of a config.json as keys for llama.cpp. The config has
// rope_parameters (transformers 5), or rope_theta and rope_scaling (older versions).
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_ROPE_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_ROPE_H

#include "gguf_write/gguf_writer.h"

#include <jansson.h>

// A tensor of divisors of the frequencies, f32 [dim / 2].
struct rlhf__gguf_divisors {
    const char *name;
    const char *list; // the list in config.json that it is; NULL: computed for the type llama3
};

// How the heads are rotated.
struct rlhf__gguf_rope {
    int32_t dim; // elements of a head that are rotated
    int32_t n;   // number of tensors of divisors
    struct rlhf__gguf_divisors divisors[2];
    int32_t has_sections, sections[3]; // of Qwen3.5: pairs by axis of an image
};

// Check that llama.cpp supports the config's rope type, and set *out. llama.cpp supports the types
// `default`, `linear` and, with its default attention factor, `yarn`. For models of the Llama
// architecture, it also supports `llama3`, with rope_freqs.weight. For Phi-3, it supports `default`
// and `longrope` (also called `su` or `yarn`), with two such tensors, and a rotation of a part of
// each head. Errors: RLHF_E_INVALID, with the type, for any other type. [main]
rlhf_status rlhf__gguf_rope_check(const json_t *config, const char *dir, const char *arch,
                                  int32_t head_dim, struct rlhf__gguf_rope *out,
                                  struct rlhf__error *err);

// Add the keys of a checked config. [main]
void rlhf__gguf_rope_put(struct rlhf__gguf *g, const json_t *config, const char *arch,
                         const struct rlhf__gguf_rope *r);

// Set `out` to the numbers of tensor i of divisors, as transformers computes them. [any]
void rlhf__gguf_rope_divisors(const json_t *config, const struct rlhf__gguf_rope *r, int32_t i,
                              float *out);

#endif
