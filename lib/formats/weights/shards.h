// shards.h: tensors of open weight files into a model directory, as one safetensors file or several
// with their index, named as transformers names them.
#ifndef RLHF_HOST_WEIGHTS_SHARDS_H
#define RLHF_HOST_WEIGHTS_SHARDS_H

#include "base/folder.h"
#include "weights/tensor.h"

#include <signal.h>

struct rlhf__shards {
    const struct rlhf__tensor *const *tensor; // [n]
    size_t n;
    int32_t dtype; // what floats are rounded to; -1 = they stay what they are
    int32_t reserved;
    uint64_t limit;                         // bytes of tensors a file may have; one has at least
                                            // one tensor
    const volatile sig_atomic_t *cancelled; // NULL = never
};

// What was written.
struct rlhf__shards_done {
    size_t n_files;
    int64_t n_parameters;
    uint64_t n_bytes; // of tensors
};

// Write model.safetensors or model-00001-of-0000N.safetensors with model.safetensors.index.json.
// Tensors of other dtypes than F32, F16 and BF16 are copied. Errors: RLHF_E_INVALID (a number that
// does not fit), RLHF_E_IO (disk full), RLHF_E_NOMEM, RLHF_E_CANCELLED; files of a failure are the
// caller's to remove. [main]
rlhf_status rlhf__shards_write(const struct rlhf__shards *, const struct rlhf__folder *dir,
                               struct rlhf__shards_done *done, struct rlhf__error *err);

#endif
