// beside.h: tensors that checkpoints hold beside those of the model, and whether two tensors hold
// the same numbers.
#ifndef RLHF_HOST_BESIDE_H
#define RLHF_HOST_BESIDE_H

#include "weights/safetensors.h"

// Masks, angles and tables that old versions of transformers stored and models compute: attn.bias,
// attn.masked_bias, rotary_emb.inv_freq, embeddings.position_ids, behind a dot or alone. [any]
int rlhf__tensor_is_buffer(const char *name);

// v_head.*: trl names them v_head.summary, we v_head.fc and v_head.out. [any]
int rlhf__tensor_is_value_head(const char *name);

// *same = 1 when both have one shape and, read as f32, the same bits. Errors: as
// rlhf__tensor_read_f32, RLHF_E_NOMEM. [any]
rlhf_status rlhf__tensor_same(const struct rlhf__tensor *a, const struct rlhf__tensor *b, int *same,
                              struct rlhf__error *err);

#endif
