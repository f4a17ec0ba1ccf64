// surplus.h: tensors of a checkpoint that no parameter takes: those that may be left, and those
// that say that the checkpoint is of another model.
#ifndef RLHF_HOST_SURPLUS_H
#define RLHF_HOST_SURPLUS_H

#include "model/model.h"
#include "weights/safetensors.h"

// taken[i] is 1 when tensor i of w has become a parameter of m; embedding is the tensor that its
// token embedding is read from, NULL: none is known. What may be left: masks and tables that old
// versions of transformers stored beside the weights (attn.bias, rotary_emb.inv_freq,
// position_ids), heads of other uses (of a language model in a classifier, and so on), and the LM
// head of a language model that has no parameter for it, since it is tied: its numbers must be the
// embedding's. Errors: RLHF_E_INVALID, naming the first other tensor and how many there are.
// [main]
rlhf_status rlhf__surplus_check(const struct rlhf__model *m, const struct rlhf__weights *w,
                                const uint8_t *taken, const struct rlhf__tensor *embedding,
                                struct rlhf__error *err);

#endif
