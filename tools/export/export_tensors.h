// export_tensors.h: chooses the tensors of a model to export.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_TENSORS_H
#define RLHF_TOOLS_EXPORT_EXPORT_TENSORS_H

#include "export/export_source.h"
#include "weights/safetensors.h"

// Zero-initialize; release with rlhf__export_tensors_finish, even after a failure.
struct rlhf__export_tensors {
    struct rlhf__weights *weights;
    const struct rlhf__tensor **tensor; // [n], by name; borrowed from weights
    size_t n;
    struct rlhf__tensor table; // a head that is stored instead of its tied embedding, renamed
    int32_t dtype; // dtype of all floats in the file (enum rlhf__tensor_dtype), -1 = mixed
};

// Open the weights and choose the tensors to export. If `exact` is 1 and a checkpoint's
// model.safetensors is rounded, opens the exact weights in the checkpoint's state instead.
//
// Leaves out tensors that transformers does not have, and logs this. These are value heads, buffers
// of old files, and an output table that equals its tied embedding. An output table that is stored
// instead of the embedding gets the embedding's name. Errors: those of rlhf__weights_open. [main]
rlhf_status rlhf__export_tensors_open(struct rlhf__export_tensors *,
                                      const struct rlhf__export_source *, int exact,
                                      struct rlhf__log *log, struct rlhf__error *err);

void rlhf__export_tensors_finish(struct rlhf__export_tensors *); // [main]

#endif
