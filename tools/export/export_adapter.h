// export_adapter.h: what `rlhf-host export` does with an adapter: its PEFT directory again, or its
// base with the adapter in it (--merge).
#ifndef RLHF_HOST_EXPORT_ADAPTER_H
#define RLHF_HOST_EXPORT_ADAPTER_H

#include "export/export_tensors.h"

// The adapter's weights, and what they make of the base's. Zero-initialise; release with
// rlhf__export_adapter_finish, also after a failure.
struct rlhf__export_adapter {
    struct rlhf__weights *weights;
    struct rlhf__tensor *made;    // [n_made] of the model's, with what is added to them
    struct rlhf__low_rank **plus; // [n_plus]
    size_t n_made, n_plus;
};

// Put the adapter into the chosen tensors of its base: A and B into their matrix, a score head
// beside them, without the LM head that a classifier has none of. exact as in
// rlhf__export_tensors_open. Errors: RLHF_E_INVALID (a layer that the base does not have, or of
// another shape). [main]
rlhf_status rlhf__export_adapter_merge(struct rlhf__export_adapter *, struct rlhf__export_tensors *,
                                       const struct rlhf__export_source *, int exact,
                                       struct rlhf__error *err);

void rlhf__export_adapter_finish(struct rlhf__export_adapter *); // [main]

// Write adapter_config.json and adapter_model.safetensors into `to`, with a config.json where the
// adapter has one beside it, and the tokenizer's files. dtype: enum rlhf__tensor_dtype, -1 = as
// stored; base_model: what base_model_name_or_path becomes, NULL = what it is. *n_parameters counts
// them. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__export_adapter_write(const struct rlhf__export_source *, int32_t dtype,
                                       const char *base_model, const struct rlhf__folder *to,
                                       int64_t *n_parameters, struct rlhf__error *err);

#endif
