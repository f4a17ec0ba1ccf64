// export_config.h: writes config.json, generation_config.json and the tokenizer's files of an
// exported directory.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_CONFIG_H
#define RLHF_TOOLS_EXPORT_EXPORT_CONFIG_H

#include "base/folder.h"
#include "export/export_source.h"
#include "weights/safetensors.h"

// Update the source's config for the export. Derives `architectures` from the tensors if it is
// missing. Sets `dtype` (enum rlhf__tensor_dtype; -1 = unchanged). Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__export_config_set(struct rlhf__export_source *, const struct rlhf__weights *,
                                    int32_t dtype, struct rlhf__error *err);

// Write config.json, generation_config.json and the tokenizer's files. For a run that sampled,
// generation_config.json has the run's sampling settings. Otherwise it is a copy of the source's
// file. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__export_config_write(const struct rlhf__export_source *,
                                      const struct rlhf__folder *to, struct rlhf__error *err);

// Returns the pooling ("mean", ...) that a classifier or a reward model applies to hidden states,
// or NULL if transformers applies the same pooling. If `theirs` is not NULL, sets *theirs to the
// pooling of transformers, "first" or "last". Both strings are borrowed. [any]
const char *rlhf__export_pooling(const struct rlhf__export_source *, const char **theirs);

// Returns the run's sampling settings, or NULL if the run did not sample. Borrowed. [any]
const json_t *rlhf__export_sampling(const struct rlhf__export_source *);

#endif
