// export_tensors.h: which tensors of a model go into its export.
#ifndef RLHF_HOST_EXPORT_TENSORS_H
#define RLHF_HOST_EXPORT_TENSORS_H

#include "export/export_source.h"
#include "weights/safetensors.h"

// Zero-initialise; release with rlhf__export_tensors_finish, also after a failure.
struct rlhf__export_tensors {
    struct rlhf__weights *weights;
    const struct rlhf__tensor **tensor; // [n], by name; borrowed from weights
    size_t n;
    struct rlhf__tensor table; // what is called otherwise than in the file: a head that stands for
                               // the table that it is tied to
    int32_t dtype; // what all floats are stored in (enum rlhf__tensor_dtype), -1 = mixed
    int32_t reserved;
};

// Open the weights and choose. exact: a checkpoint whose model.safetensors is rounded gives the
// exact weights that it goes on with. What transformers has no place for is left out, and the log
// says so: value heads, buffers of old files, an output table that is the embedding's twin; one
// that stands for the embedding gets the embedding's name. Errors: as rlhf__weights_open. [main]
rlhf_status rlhf__export_tensors_open(struct rlhf__export_tensors *,
                                      const struct rlhf__export_source *, int exact,
                                      struct rlhf__log *log, struct rlhf__error *err);

void rlhf__export_tensors_finish(struct rlhf__export_tensors *); // [main]

#endif
