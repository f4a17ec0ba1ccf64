// gguf_config.h: translates config.json to llama.cpp's keys (weights/gguf_names.h).
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_CONFIG_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_CONFIG_H

#include "gguf_write/gguf_rope.h"
#include "gguf_write/gguf_writer.h"
#include "weights/gguf_names.h"

#include <jansson.h>

struct rlhf__gguf_config {
    const char *arch; // llama.cpp's name
    int32_t family;   // enum rlhf__gguf_family
    int32_t layers, heads, kv_heads, head_dim, vocab;
    int32_t mlp;                 // of LFM2: the width of the MLP
    int32_t every;               // of Qwen3.5: every such layer has attention
    struct rlhf__gguf_mix mix;   // layers with a state
    struct rlhf__gguf_rope rope; // of rotary models
};

// Read a config. `dir` is used only in messages. Refuses anything that the file cannot express, and
// names the field and its value: a model_type that llama.cpp's architectures do not cover, a
// classifier, another activation, a sliding window, other rope types, and so on. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__gguf_config_read(const json_t *config, const char *dir,
                                   struct rlhf__gguf_config *out, struct rlhf__error *err);

// Add the config's keys. Errors: RLHF_E_INVALID, as for rlhf__gguf_config_read. [main]
rlhf_status rlhf__gguf_config_put(struct rlhf__gguf *g, const json_t *config, const char *dir,
                                  const struct rlhf__gguf_config *c, struct rlhf__error *err);

#endif
