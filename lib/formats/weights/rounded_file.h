// rounded_file.h: tensors of open weight files as one safetensors file, floats as they are or
// rounded.
#ifndef RLHF_HOST_WEIGHTS_ROUNDED_FILE_H
#define RLHF_HOST_WEIGHTS_ROUNDED_FILE_H

#include "base/folder.h"
#include "weights/tensor.h"

#include <signal.h>

struct rlhf__rounded_file {
    const struct rlhf__tensor *const *tensor; // [n]
    const char *const *name;                  // [n] what they are called there; NULL = as they are
    size_t n;
    int32_t dtype; // what floats are rounded to; -1 = they stay what they are
    int32_t reserved;
    const volatile sig_atomic_t *cancelled; // NULL = never
};

// What tensor t is written in: dtype, where it is above -1 and t can be read as floats. [any]
int32_t rlhf__rounded_dtype(const struct rlhf__tensor *t, int32_t dtype);

// Write the file `name` in a folder, wide dtypes first, as the format's alignment asks, else in the
// order of the list. Tensors of other dtypes than F32, F16 and BF16 are copied, but for F64, which
// would have to be rounded (RLHF_E_UNSUPPORTED). Errors: RLHF_E_INVALID (a number that does not
// fit, a name that is there twice), RLHF_E_IO (disk full), RLHF_E_NOMEM, RLHF_E_CANCELLED; no file
// is left behind then. [main]
rlhf_status rlhf__rounded_write(const struct rlhf__rounded_file *, const struct rlhf__folder *in,
                                const char *name, struct rlhf__error *err);

#endif
