// export_adapter.h: exports an adapter: as a PEFT directory, as a LoRA file of llama.cpp, or merged
// into its base (--merge).
#ifndef RLHF_TOOLS_EXPORT_EXPORT_ADAPTER_H
#define RLHF_TOOLS_EXPORT_EXPORT_ADAPTER_H

#include "export/export_tensors.h"

#include <signal.h>

// The adapter's weights and the base's weights. Zero-initialize; release with
// rlhf__export_adapter_finish, even after a failure.
struct rlhf__export_adapter {
    struct rlhf__weights *weights;
    struct rlhf__tensor *made;    // [n_made] changed tensors of the model
    struct rlhf__low_rank **plus; // [n_plus]
    size_t n_made, n_plus;
};

// Merge the adapter into its base: adds scale B A to the matrices among the chosen tensors. If the
// adapter has a score head, adds it and leaves out the LM head, because a classifier has no LM
// head. `exact` is as in rlhf__export_tensors_open. Errors: RLHF_E_INVALID (the base lacks a layer,
// or the layer has another shape). [main]
rlhf_status rlhf__export_adapter_merge(struct rlhf__export_adapter *, struct rlhf__export_tensors *,
                                       const struct rlhf__export_source *, int exact,
                                       struct rlhf__error *err);

void rlhf__export_adapter_finish(struct rlhf__export_adapter *); // [main]

// Write adapter_config.json and adapter_model.safetensors to `to`, with the tokenizer's files and,
// if it exists, the adapter's config.json. `dtype` is an enum rlhf__tensor_dtype, or -1 to keep the
// stored dtypes. `base_model` is the new value of base_model_name_or_path, or NULL to keep the old
// value. Sets *n_parameters to the number of parameters. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__export_adapter_write(const struct rlhf__export_source *, int32_t dtype,
                                       const char *base_model, const struct rlhf__folder *to,
                                       int64_t *n_parameters, struct rlhf__error *err);

// Write the adapter for llama.cpp, under the name `name` of rlhf__gguf_adapter_write in the folder
// `in`. `dtype` is as above; -1: F32, from the exact weights. If `name` is NULL, only checks.
// `title` is the adapter's name in the file. Errors: those of rlhf__gguf_adapter_write. [main]
rlhf_status rlhf__export_adapter_gguf(const struct rlhf__export_source *, int32_t dtype,
                                      const char *title, const volatile sig_atomic_t *cancelled,
                                      const struct rlhf__folder *in, const char *name,
                                      struct rlhf__error *err);

#endif
