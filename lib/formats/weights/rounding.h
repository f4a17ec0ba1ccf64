// rounding.h: rounds tensors to another dtype and writes them, to one file or to several shards.
//
// The file format is in safetensors_writer.h.
#ifndef RLHF_FORMATS_WEIGHTS_ROUNDING_H
#define RLHF_FORMATS_WEIGHTS_ROUNDING_H

#include "base/folder.h"
#include "tensors/tensor.h"

#include <signal.h>

// The source of numbers, for messages.
struct rlhf__rounding {
    const char *file, *tensor;
    int64_t first; // index of the first number in the tensor
};

// Round n floats to `dtype` and store them in `out` (n elements, little-endian). `dtype` is F32,
// F16 or BF16 (to nearest even) or, if n is a multiple of 32, Q8_0 (as quantize_row_q8_0_ref of
// ggml). If a finite number would become infinite, or if Q8_0 would get a number that is not
// finite, returns RLHF_E_INVALID; the message has the tensor, the position and the number. [any]
rlhf_status rlhf__round_f32(const float *in, size_t n, int32_t dtype, void *out,
                            const struct rlhf__rounding *from, struct rlhf__error *err);

// ---- one file ----

struct rlhf__rounded_file {
    const struct rlhf__tensor *const *tensor; // [n]
    const char *const *name;                  // [n] their names in the file; NULL = unchanged
    size_t n;
    int32_t dtype; // the dtype that floats are rounded to; -1 = unchanged, or F32 if quantised
    const volatile sig_atomic_t *cancelled; // NULL = never
};

// Write the file `name` in a folder. Tensors with wide elements come first, because the format
// requires alignment; otherwise the order of the list is kept. F64 would have to be rounded, so it
// is refused (RLHF_E_UNSUPPORTED). Tensors of dtypes other than F32, F16, BF16 and F64 are copied.
// Other errors: RLHF_E_INVALID (a number that does not fit, a duplicate name), RLHF_E_IO (disk
// full), RLHF_E_NOMEM, RLHF_E_CANCELLED. After an error the file is removed. [main]
rlhf_status rlhf__rounded_write(const struct rlhf__rounded_file *, const struct rlhf__folder *in,
                                const char *name, struct rlhf__error *err);

// ---- shards ----

struct rlhf__file_shards {
    const struct rlhf__tensor *const *tensor; // [n]
    size_t n;
    int32_t dtype;  // the dtype that floats are rounded to; -1 = unchanged
    uint64_t limit; // bytes of tensors in a file; a larger tensor gets its own file
    const volatile sig_atomic_t *cancelled; // NULL = never
};

// The files that were written.
struct rlhf__shards_done {
    size_t n_files;
    int64_t n_parameters;
    uint64_t n_bytes; // of tensors
};

// Write model.safetensors. If several files are needed, write model-00001-of-0000N.safetensors and
// so on, with model.safetensors.index.json. F64 would have to be rounded, so it is refused
// (RLHF_E_UNSUPPORTED). Tensors of dtypes other than F32, F16, BF16 and F64 are copied. Other
// errors: RLHF_E_INVALID (a number that does not fit), RLHF_E_IO (disk full), RLHF_E_NOMEM,
// RLHF_E_CANCELLED. After a failure the caller removes the files. [main]
rlhf_status rlhf__shards_write(const struct rlhf__file_shards *, const struct rlhf__folder *dir,
                               struct rlhf__shards_done *done, struct rlhf__error *err);

#endif
