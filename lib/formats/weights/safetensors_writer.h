// safetensors_writer.h: writes weight files in the safetensors format (safetensors.h).
#ifndef RLHF_FORMATS_WEIGHTS_SAFETENSORS_WRITER_H
#define RLHF_FORMATS_WEIGHTS_SAFETENSORS_WRITER_H

#include "base/folder.h"
#include "tensors/tensor.h"

// A tensor of the file to write. `name` and `shape` are read only during rlhf__weights_writer_open.
struct rlhf__tensor_spec {
    const char *name;
    int32_t dtype, ndim; // dtype: any of RLHF__TENSOR_DTYPE_MAP
    int64_t shape[RLHF__TENSOR_MAX_DIMS];
};

struct rlhf__weights_writer; // opaque

// Start the file `name` in a folder. If the folder is NULL, `name` is a path. The file appears only
// when rlhf__weights_commit is called. The header is written first, then the data of the tensors in
// the order of `specs`. Put wide dtypes first, because a wide tensor after a narrow one may be
// unaligned (RLHF_E_INVALID). `metadata` has n_meta pairs of key and value; if it is NULL, the
// metadata is {"format": "pt"}. Errors: RLHF_E_INVALID (also for a duplicate name or an invalid
// shape), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__weights_writer_open(const struct rlhf__folder *in, const char *name,
                                      const struct rlhf__tensor_spec *specs, size_t n,
                                      const char *const (*metadata)[2], size_t n_meta,
                                      struct rlhf__weights_writer **out, struct rlhf__error *err);

// Append `count` floats to the current tensor, converted to that tensor's dtype: F32, BF16 or F16,
// rounded to nearest even. When a tensor is full, the next one begins. One call must not write to
// two tensors. Errors: RLHF_E_INVALID (too many numbers, or not a float dtype), RLHF_E_IO (disk
// full). [main]
rlhf_status rlhf__weights_put_f32(struct rlhf__weights_writer *w, const float *data, size_t count,
                                  struct rlhf__error *err);

// Append bytes to the current tensor, unchanged; otherwise like rlhf__weights_put_f32. [main]
rlhf_status rlhf__weights_put_bytes(struct rlhf__weights_writer *w, const void *data, size_t len,
                                    struct rlhf__error *err);

// Check that every tensor is full, sync the file and rename it. Always frees the writer. Errors:
// RLHF_E_INVALID, RLHF_E_IO; the file is then removed. [main]
rlhf_status rlhf__weights_commit(struct rlhf__weights_writer *w, struct rlhf__error *err);

// Remove the file and free the writer. NULL allowed. [main]
void rlhf__weights_abort(struct rlhf__weights_writer *w);

#endif
