// gguf_config.h: config.json as the keys of llama.cpp's architectures llama, qwen2, qwen3 and gpt2.
#ifndef RLHF_HOST_WEIGHTS_GGUF_CONFIG_H
#define RLHF_HOST_WEIGHTS_GGUF_CONFIG_H

#include "gguf/gguf_names.h"
#include "gguf/gguf_writer.h"

#include <jansson.h>

struct rlhf__gguf_config {
    const char *arch; // llama.cpp's name
    int32_t family;   // enum rlhf__gguf_family
    int32_t layers, heads, kv_heads, head_dim, vocab;
    int32_t llama3_rope; // 1: the file has rope_freqs.weight (gguf_rope.h)
};

// Read a config; dir is for messages. Values that the file cannot express are refused with field
// and value: a model_type without such an architecture, a classifier, another activation, a sliding
// window, other rope types, ... Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__gguf_config_read(const json_t *config, const char *dir,
                                   struct rlhf__gguf_config *out, struct rlhf__error *err);

// Add its keys. Errors: RLHF_E_INVALID, as above. [main]
rlhf_status rlhf__gguf_config_put(struct rlhf__gguf *g, const json_t *config, const char *dir,
                                  const struct rlhf__gguf_config *c, struct rlhf__error *err);

#endif
