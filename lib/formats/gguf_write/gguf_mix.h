// gguf_mix.h: writes which layers of a config.json have a state, and the sizes of these layers, as
// keys for llama.cpp: LFM2's convolutions and Qwen3.5's gated delta rule.
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_MIX_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_MIX_H

#include "gguf_write/gguf_config.h"

// Set out->mix, ->mlp and ->every of an LFM2 or a Qwen3.5, whose layers were counted. Errors:
// RLHF_E_INVALID, with the field and its value, for what llama.cpp cannot represent: other kinds of
// layers, Qwen3.5's layers with attention that are not every n-th, heads of keys and values of
// different widths, biases of convolutions. [main]
rlhf_status rlhf__gguf_mix_read(const json_t *config, const char *dir,
                                struct rlhf__gguf_config *out, struct rlhf__error *err);

// Add the keys. Other families get none. [main]
void rlhf__gguf_mix_put(struct rlhf__gguf *g, const struct rlhf__gguf_config *c);

#endif
