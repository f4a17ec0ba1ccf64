// gguf_complete.h: checks that the tensors of a GGUF file make a whole model.
#ifndef RLHF_FORMATS_WEIGHTS_GGUF_COMPLETE_H
#define RLHF_FORMATS_WEIGHTS_GGUF_COMPLETE_H

#include "weights/gguf_metadata.h"

// Check a tensor that the architecture has: its type can be read as floats, its layer exists, and
// its shape is the one that follows from the file's keys. Errors: RLHF_E_INVALID,
// RLHF_E_UNSUPPORTED (the type). [any]
rlhf_status rlhf__gguf_check_tensor(const struct rlhf__gguf_shape *, const struct rlhf__tensor *,
                                    struct rlhf__error *err);

// Returns RLHF_E_INVALID if a tensor that the model needs is missing. [any]
rlhf_status rlhf__gguf_check_complete(const struct rlhf__gguf_file *,
                                      const struct rlhf__gguf_shape *, struct rlhf__error *err);

#endif
