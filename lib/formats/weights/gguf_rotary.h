// gguf_rotary.h: reads the rotary positions of a GGUF file into a config's rope_parameters. The
// reverse is lib/formats/gguf_write/gguf_rope.c.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_ROTARY_H
#define RLHF_FORMATS_WEIGHTS_GGUF_ROTARY_H

#include "tensors/gguf_file.h"

#include <jansson.h>

// The file and what its other keys say.
struct rlhf__gguf_positions {
    const struct rlhf__gguf_file *file;
    const char *arch; // with which the keys begin
    int32_t family, head_dim;
    int32_t by_kind; // 1: layers with a window have positions of their own
    double context;  // the longest context
};

// Set rope_parameters of a config: the types default, linear and yarn; llama3 from the divisors in
// rope_freqs.weight; for Phi-3 longrope from rope_factors_long.weight and
// rope_factors_short.weight, with partial_rotary_factor and original_max_position_embeddings; with
// by_kind those of both kinds of layers. Errors: RLHF_E_INVALID, RLHF_E_UNSUPPORTED (other types,
// divisors that are not those of llama3), RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_rotary(const struct rlhf__gguf_positions *p, json_t *config,
                              struct rlhf__error *err);

#endif
