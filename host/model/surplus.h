// surplus.h: tensors of a weight file that belong to no parameter of the model.
#ifndef RLHF_HOST_MODEL_SURPLUS_H
#define RLHF_HOST_MODEL_SURPLUS_H

#include "model/model.h"
#include "weights/safetensors.h"

// Check the tensors of w that do not belong to a parameter. taken[i] is 1 if a parameter of m is
// read from tensor i of w. `embedding` is the tensor of m's token embedding, or NULL if the tensor
// is not known. These tensors are ignored:
// - masks and tables that old versions of transformers stored (attn.bias, rotary_emb.inv_freq,
//   position_ids);
// - heads for other uses, e.g. a language-model head if m is a classifier;
// - a tied LM head without a parameter, if its values equal the embedding's;
// - with a warning, layers that have higher numbers than the last layer that the config describes.
//
// Any other tensor shows that the checkpoint belongs to another model. Errors: RLHF_E_INVALID, with
// the name of the first such tensor and the number of such tensors. [main]
rlhf_status rlhf__surplus_check(const struct rlhf__model *m, const struct rlhf__weights *w,
                                const uint8_t *taken, const struct rlhf__tensor *embedding,
                                struct rlhf__error *err);

#endif
